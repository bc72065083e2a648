package tagline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

func someID(name string) (uint64, error) {
	if name == "missing" {
		return 0, errors.New("unknown bucket")
	}
	return 7, nil
}

// parseLine returns the change that a line says.
func parseLine(src []byte) (tags.Change, error) {
	var l line
	return l.parse(src, someID)
}

func TestParse(t *testing.T) {
	c, err := parseLine([]byte(
		`{"bucket":"b","metric":["a","b\\x00"],"collection":"c","name":["cpu"],"tags":{"ns:host":"web1","a\\:b":"x:y"},"remove":["old"],"replace":true}`))
	slices.SortFunc(c.Set, func(a, b tags.Tag) int { return bytes.Compare(a.Name, b.Name) })
	want := tags.Change{
		Bucket: 7, Key: []byte("\x01a\x02b\x00"), Collection: []byte("c"), Name: []byte("\x03cpu"),
		Replace: true,
		Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("a:b")}, Value: []byte("x:y")},
			{TagName: tags.TagName{Namespace: []byte("ns"), Name: []byte("host")}, Value: []byte("web1")}},
		Removed: []tags.TagName{{Name: []byte("old")}},
	}
	if err != nil || string(c.Key) != string(want.Key) || len(c.Set) != 2 ||
		string(c.Set[0].Name) != "a:b" || string(c.Set[1].Namespace) != "ns" ||
		string(c.Removed[0].Name) != "old" || !c.Replace || string(c.Collection) != "c" ||
		string(c.Name) != string(want.Name) {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	if c, err := parseLine(
		[]byte(
			`{"bucket":"b","metric":["a","x"],"tags":{"ddb:part_2":"x","ddb:key_length":"2","ddb:host":"h"}}`)); err != nil || len(c.Set) != 3 {
		t.Errorf("%+v, %v: what the metric says may be said again", c, err)
	}
	if c, err := parseLine([]byte(`{"bucket":"b","metric":["a"]}`)); err != nil ||
		string(c.Collection) != "b" || c.Name != nil {
		t.Errorf("%+v, %v: the collection is the bucket, and the name the metric, unless they are given",
			c, err)
	}
}

func TestMalformedLines(t *testing.T) {
	many := `"t3":"first"`
	for i := range 20 {
		many += fmt.Sprintf(`,"t%d":"x"`, i)
	}
	for src, want := range map[string]string{
		``:                            "malformed line",
		`{`:                           "malformed line",
		`{"bucket":"b","bucket":"b"}`: `field "bucket" is there twice`,
		`{"bucket":"b","metric":["a"],"tags":{"a":"x","a":"x"}}`: `tag "a" is there twice`,
		`{"bucket":"b","metric":["a"],"replace":1}`:              "true or false is wanted",
		"{\"bucket\":\"b\",\"metric\":[\"a\xff\"]}":              "not UTF-8",
		"{\"bucket\":\"b\",\"metric\":[\"a\x00\"]}":              "control character",
		"{\"bucket\":\"b\",\"metric\":\x00[\"a\"]}":              "a list of texts is wanted",
		`{"bucket":"b","metric":["a`:                             "the end of a text is wanted",
		`{"bucket":"b","metric":["a\`:                            "the end of a text is wanted",
		`{"bucket":"b","metric":["\q"]}`:                         "malformed line",
		`[]`:                                                     "malformed line",
		`{"bucket":"b","metric":["a"]} {}`: "there is more behind the " +
			"object",
		`{"bucket":"b","metric":["a"],"x":1}`:                         `unknown field "x"`,
		`{"metric":["a"]}`:                                            "want the name of a bucket",
		`{"bucket":"missing","metric":["a"]}`:                         "unknown bucket",
		`{"bucket":"b"}`:                                              "want the parts of a metric",
		`{"bucket":"b","metric":["a"],"tags":{"":"x"}}`:               "a tag has no name",
		`{"bucket":"b","metric":["a"],"tags":{"n\\":"x"}}`:            "a backslash at the end",
		`{"bucket":"b","metric":["a"],"collection":""}`:               "it names no collection",
		`{"bucket":"b","metric":["a"],"tags":{"ddb:part_1":"b"}}`:     `tag "ddb:part_1": it is "a" by the metric, and cannot be "b"`,
		`{"bucket":"b","metric":["a"],"tags":{"ddb:part_2":"a"}}`:     "the metric has no such part",
		`{"bucket":"b","metric":["a"],"tags":{"ddb:key_length":"2"}}`: `it is "1" by the metric`,
		`{"bucket":"b","metric":["a"],"remove":["ddb:part_1"]}`:       "cannot be removed",
		`{"bucket":"b","metric":["` + strings.Repeat("a", 70_000) +
			`"]}`: "part 1 of the metric has 70000 bytes",
		`{"bucket":1}`: "the name of a bucket is wanted",
		`{"bucket":"b","metric":["a"],"collection":1}`:        "the name of a collection is wanted",
		`{"bucket":"b","metric":["a"],"collection":"c\\"}`:    "collection: ",
		`{"bucket":"b","metric":["a"],"name":["a\\"]}`:        "name [",
		`{"bucket":"b","metric":["a"],"remove":[1]}`:          "a text is wanted",
		`{"bucket":"b","metric":["a"],"remove":["x\\"]}`:      "a backslash at the end",
		`{"bucket":"b","metric":["a"],"tags":{"a":"x\\"}}`:    "a backslash at the end",
		`{"bucket":"b","metric":["a"],"tags":{"a" "x"}}`:      "malformed line",
		`{"bucket":"b","metric":["a"],"tags":{1:"x"}}`:        "malformed line",
		`{"bucket":"b","metric":["a"],"tags":["a"]}`:          "malformed line",
		`{"bucket":"b","metric":["a"],"tags":{` + many + `}}`: `tag "t3" is there twice`,
	} {
		if _, err := parseLine([]byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", src, err, want)
		}
	}
}

// What is written is read again, whatever bytes it has.
func TestLinesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string, min int) []byte {
			return rapid.SliceOfN(rapid.Byte(), min, 6).Draw(t, label)
		}
		name := func() tags.TagName {
			return tags.TagName{Namespace: text("namespace", 0), Name: text("tag", 1)}
		}
		c := tags.Change{Bucket: 7, Key: text("key", 1), Collection: text("collection", 1),
			Name: text("name", 0), Replace: rapid.Bool().Draw(t, "replace")}
		for range rapid.IntRange(0, 3).Draw(t, "set") {
			c.Set = append(c.Set, tags.Tag{TagName: name(), Value: text("value", 0)})
		}
		for range rapid.IntRange(0, 3).Draw(t, "removed") {
			c.Removed = append(c.Removed, name())
		}
		byName := func(a, b tags.TagName) int {
			return cmp.Or(bytes.Compare(a.Namespace, b.Namespace), bytes.Compare(a.Name, b.Name))
		}
		normal := func(c *tags.Change) {
			slices.SortFunc(c.Set, func(a, b tags.Tag) int { return byName(a.TagName, b.TagName) })
			slices.SortFunc(c.Removed, byName)
		}
		normal(&c)
		c.Set = slices.CompactFunc(c.Set, func(a, b tags.Tag) bool {
			return byName(a.TagName, b.TagName) == 0
		})
		src, err := Append(nil, "b", &c)
		if err != nil || src[len(src)-1] != '\n' {
			t.Fatalf("%q, %v", src, err)
		}
		got, err := parseLine(src)
		normal(&got)
		if err != nil || !bytes.Equal(tags.AppendChange(nil, &got), tags.AppendChange(nil, &c)) ||
			reflect.DeepEqual(got, tags.Change{}) {
			t.Fatalf("%s became %+v, %v; it was %+v", src, got, err, c)
		}
	})
}

// Any texts come out of a line as a decoder of any JSON reads them.
func TestParserReadsWhatADecoderReads(t *testing.T) {
	texts := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{"", "\\", "\"", "a\\x00b", "é\u2028", "\x7f\n\t"}))
	rapid.Check(t, func(t *rapid.T) {
		want := written{
			Bucket: texts.Draw(t, "bucket"), Metric: rapid.SliceOf(texts).Draw(t, "metric"),
			Name: rapid.SliceOf(texts).Draw(t, "name"),
			Tags: rapid.MapOf(texts, texts).Draw(t, "tags"), Remove: rapid.SliceOf(texts).Draw(t, "remove"),
			Replace: rapid.Bool().Draw(t, "replace"),
		}
		if rapid.Bool().Draw(t, "has a collection") {
			text := texts.Draw(t, "collection")
			want.Collection = &text
		}
		var src bytes.Buffer
		enc := json.NewEncoder(&src)
		enc.SetEscapeHTML(rapid.Bool().Draw(t, "HTML"))
		enc.SetIndent("", rapid.SampledFrom([]string{"", "\t ", " \r"}).Draw(t, "indent"))
		if err := enc.Encode(&want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(src.Bytes(), &want); err != nil { // as far as JSON has the texts
			t.Fatal(err)
		}
		var l line
		p := parser{src: src.String()}
		if err := p.line(&l); err != nil {
			t.Fatalf("%s: %v", &src, err)
		}
		got := written{Bucket: l.bucket, Metric: append([]string{}, l.metric...), Name: l.name,
			Remove: l.remove, Replace: l.replace}
		if l.hasCollection {
			got.Collection = &l.collection
		}
		for _, tag := range l.tags {
			if got.Tags == nil {
				got.Tags = make(map[string]string)
			}
			got.Tags[tag.name] = tag.value
		}
		want.Metric = append([]string{}, want.Metric...) // not nil
		a, err1 := json.Marshal(&got)
		b, err2 := json.Marshal(&want)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Fatalf("%s is read as %s", &src, a)
		}
	})
}

// fakeStore takes changes, and refuses what names it so.
type fakeStore struct {
	got     []string
	fail    int // after so many changes; 0 for never
	largest int // changes at once
	bytes   int // of their tags, at most
}

func (s *fakeStore) Apply(_ context.Context, list []tags.Change) (a tagstore.Applied, err error) {
	bytes := 0
	for i := range list {
		for _, tag := range list[i].Set {
			bytes += len(tag.Value)
		}
	}
	s.largest, s.bytes = max(s.largest, len(list)), max(s.bytes, bytes)
	for i := range list {
		if s.fail > 0 && len(s.got) >= s.fail {
			return a, errors.New("the disk is full")
		}
		if key := metric.Text(list[i].Key); strings.Contains(key, "bad") {
			a.Refused = append(a.Refused, tagstore.Refusal{At: i, Err: errors.New("refused")})
		} else {
			s.got = append(s.got, key)
			a.Changed++
			a.Token = wal.LSN(len(s.got))
		}
	}
	return a, nil
}

func nothing(int64) {}

// Every line is taken once, in its order, or is in the summary, whatever stands beside it.
func TestImport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var src strings.Builder
		var want []string
		var refused []int64
		n := rapid.IntRange(0, 4000).Draw(t, "lines")
		for i := range n {
			switch rapid.IntRange(0, 100).Draw(t, "line") {
			case 0:
				src.WriteString("nonsense\n")
				refused = append(refused, int64(i+1))
			case 1:
				fmt.Fprintf(&src, `{"bucket":"b","metric":["bad%d"]}`+"\n", i)
				refused = append(refused, int64(i+1))
			default:
				fmt.Fprintf(&src, `{"bucket":"b","metric":["m%d"],"tags":{"a":"b"}}`+"\n", i)
				want = append(want, fmt.Sprintf("'m%d'", i))
			}
		}
		var s fakeStore
		out, err := Import(t.Context(), strings.NewReader(src.String()), &s, someID, nothing)
		if err != nil || !slices.Equal(s.got, want) || out.Lines != int64(n) ||
			out.Refused != int64(len(refused)) || out.Changed != int64(len(want)) {
			t.Fatalf("%d of %d lines are taken, %+v, %v", len(s.got), n, out, err)
		}
		for i, e := range out.Errors {
			if e.Line != refused[i] {
				t.Fatalf("error %d is that of line %d, want %d", i, e.Line, refused[i])
			}
		}
		if len(out.Errors) != min(len(refused), maxLineErrors) {
			t.Fatalf("%d errors", len(out.Errors))
		}
	})
}

// What ends an import is told, whichever side it is, and nothing behind it is taken.
func TestAnImportThatEnds(t *testing.T) {
	lines := strings.Repeat(`{"bucket":"b","metric":["m"]}`+"\n", 10_000)
	s := fakeStore{fail: 2500}
	out, err := Import(t.Context(), strings.NewReader(lines), &s, someID, nothing)
	if err == nil || len(s.got) != 2500 || out.Changed != 2500 {
		t.Errorf("%d are taken, %+v, %v", len(s.got), out, err)
	}
	s = fakeStore{}
	out, err = Import(t.Context(),
		io.MultiReader(strings.NewReader(lines), iotest.ErrReader(errors.New("cut"))), &s, someID,
		nothing)
	if err == nil || len(s.got) != 10_000 || out.Lines != 10_000 {
		t.Errorf("%d are taken, %+v, %v", len(s.got), out, err)
	}
	long := `{"bucket":"b","metric":["` + strings.Repeat("a", MaxLine) + `"]}` + "\n"
	s = fakeStore{}
	if out, err = Import(t.Context(), strings.NewReader(lines+long+lines), &s, someID,
		nothing); err != nil || out.Refused != 1 || out.Errors[0].Line != 10_001 || len(s.got) != 20_000 {
		t.Errorf("%d are taken, %+v, %v", len(s.got), out, err)
	}
}

func BenchmarkParse(b *testing.B) {
	src := []byte(
		`{"bucket":"b","metric":["base","host-00777","cpu","core3"],"name":["cpu"],"tags":{"tag1":"value-77.net","tag2":"value-7.net","tag3":"value-777.net","tag4":"value-7777.net","tag5":"value-77777.net"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseLine(src); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"bucket":"b","metric":["a"],"tags":{"a:b":"c"}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := parseLine(src)
		if err == nil && c.Check() != nil {
			t.Fatalf("%q is read as a change that is not valid: %v", src, c.Check())
		}
	})
}

// TestImportCountsWhatItDoesNotList: all refused lines are counted, the first ones are listed, and
// a line that is too long does not spoil the next one.
func TestImportCountsWhatItDoesNotList(t *testing.T) {
	good := func(name string) string {
		return `{"bucket":"b","metric":["` + name + `"],"tags":{"a":"b"}}` + "\n"
	}
	src := strings.Repeat("nonsense\n", 2*maxLineErrors) + good("one") +
		strings.Repeat("x", 2*MaxLine+1) + "\n" + good("two") + good("bad") + good("three")
	var s fakeStore
	out, err := Import(t.Context(), strings.NewReader(src), &s, someID, nothing)
	if err != nil || out.Lines != 2*maxLineErrors+5 || out.Refused != 2*maxLineErrors+2 ||
		out.Changed != 3 || !slices.Equal(s.got, []string{"'one'", "'two'", "'three'"}) {
		t.Errorf("%q, %+v, %v", s.got, out, err)
	}
	if len(out.Errors) != maxLineErrors || out.Errors[maxLineErrors-1].Line != maxLineErrors ||
		out.Last.Token != 3 {
		t.Errorf("%d errors, %+v; %+v", len(out.Errors), out.Errors[len(out.Errors)-1], out.Last)
	}
	out, err = Import(t.Context(),
		strings.NewReader(good("one")+strings.Repeat("x", MaxLine+1)+"\n"+good("two")), &s, someID,
		nothing)
	if err != nil || len(out.Errors) != 1 || out.Errors[0].Line != 2 ||
		!strings.Contains(out.Errors[0].Error, "more than 1048576 bytes") {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestImportAppliesLittleAtOnce: neither lines nor bytes that are applied together grow with the
// input.
func TestImportAppliesLittleAtOnce(t *testing.T) {
	for _, size := range []int{1, 4000} { // of a value, of 20
		length, texts := 20*size, ""
		for i := range 20 {
			texts += fmt.Sprintf(`,"t%d":"%s"`, i, strings.Repeat("v", size))
		}
		line := `{"bucket":"b","metric":["a"],"tags":{` + texts[1:] + "}}\n"
		var s fakeStore
		n := min(4*batchLines+3, 6*batchBytes/length)
		out, err := Import(t.Context(), strings.NewReader(strings.Repeat(line, n)), &s, someID, nothing)
		if err != nil || out.Changed != int64(n) || s.largest > batchLines ||
			s.bytes > batchBytes+length {
			t.Errorf("%d lines of %d bytes: %+v, %v; %d lines or %d bytes at once", n, len(line), out, err,
				s.largest, s.bytes)
		}
		if want := min(batchLines, batchBytes/length); s.largest < want-1 {
			t.Errorf("at most %d lines at once, want %d", s.largest, want)
		}
	}
}
