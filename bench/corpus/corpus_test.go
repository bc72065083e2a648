package corpus

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func labels(name string) []Label { return []Label{{"__name__", name}, {"cpu", "0"}} }

// small has a series for every form of values.
func small() *Corpus {
	times := []int64{1_700_000_000_123, 1_700_000_001_119, 1_700_000_002_125, 1_700_000_007_124}
	c := &Corpus{Name: "small", About: "every form", Interval: 1000}
	for i, values := range [][]string{
		{"0", "7", "-3", "9223372036854775807"},
		{"0.04", "-0.05", "12.00", "7.10"},
		{"0.5", "12", "-0.25", "3"},
		{"NaN", "+Inf", "1e+09", "33.54234557565646"},
		{"-0", "007", "", "0x1p-2"},
		{"0", "0", "0", "0"},
	} {
		c.Series = append(c.Series, Series{labels(fmt.Sprint("m", i)), times, values})
	}
	c.Series = append(c.Series, Series{labels("short"), times[1:2], []string{"5"}},
		Series{Labels: labels("empty"), Times: []int64{}, Values: []string{}})
	return c
}

func TestRoundTrip(t *testing.T) {
	c := small()
	raw, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, c) {
		t.Fatalf("got %v, want %v", got, c)
	}
}

// TestForms says which values are numbers in a file, and which are texts.
func TestForms(t *testing.T) {
	for _, tc := range []struct {
		values []string
		form   byte
	}{
		{[]string{"1", "-2"}, 0},
		{[]string{"1.50", "-0.02"}, 2},
		{[]string{"1.5", "2"}, trimmed + 1},
		{[]string{"0.00000000000000001"}, 17},
		{[]string{"-9223372036854775808"}, 0},
		{[]string{"9223372036854775808"}, texts},
		{[]string{"-0.0"}, texts},
		{[]string{"1.", "2"}, texts},
		{[]string{".5"}, texts},
		{[]string{"1.2.3"}, texts},
		{[]string{"1e5"}, texts},
	} {
		dst := appendValues(nil, tc.values)
		if dst[0] != tc.form {
			t.Errorf("%q: form %d, want %d", tc.values, dst[0], tc.form)
		}
		d := decoder{rest: dst}
		if got := d.values(len(tc.values)); d.err != nil || !reflect.DeepEqual(got, tc.values) {
			t.Errorf("%q: got %q, %v", tc.values, got, d.err)
		}
	}
}

// TestRandomValues brings back texts that look like numbers.
func TestRandomValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		places := r.IntN(5)
		values := make([]string, 1+r.IntN(9))
		for i := range values {
			v := strconv.FormatFloat(float64(int64(r.Uint64()>>r.IntN(64)))/1000, 'f', places, 64)
			if r.IntN(4) == 0 {
				v = strings.Map(func(c rune) rune { return rune("0123456789.-"[r.IntN(12)]) }, v)
			}
			values[i] = v
		}
		d := decoder{rest: appendValues(nil, values)}
		if got := d.values(len(values)); d.err != nil || !reflect.DeepEqual(got, values) {
			t.Fatalf("got %q, %v, want %q", got, d.err, values)
		}
	}
}

func TestCutFiles(t *testing.T) {
	raw, err := Encode(small())
	if err != nil {
		t.Fatal(err)
	}
	for n := range raw {
		if _, err := Decode(raw[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read without an error", n, len(raw))
		}
	}
	for i := range raw {
		damaged := bytes.Clone(raw)
		damaged[i] ^= 0x40
		if c, err := Decode(damaged); err == nil && !reflect.DeepEqual(c, small()) {
			t.Fatalf("a damaged byte %d is not noticed", i)
		}
	}
}

// TestSizesAreBounded gives the decoder counts without what they count.
func TestSizesAreBounded(t *testing.T) {
	head := appendString(appendString(nil, "x"), "y")
	for _, body := range [][]byte{
		append(bytes.Clone(head), 2, 0xff, 0xff, 0xff, 0xff, 0x7f),
		append(bytes.Clone(head), 2, 1, 0xff, 0xff, 0xff, 0xff, 0x7f),
		append(bytes.Clone(head), 2, 1, 0, ownTimes, 0xff, 0xff, 0xff, 0xff, 0x7f),
		append(bytes.Clone(head), 0),
	} {
		if _, err := Decode(frame(t, body)); err == nil {
			t.Errorf("% x is read without an error", body)
		}
	}
	if _, err := Decode(frame(t, make([]byte, maxPlain+1))); err == nil ||
		!strings.Contains(err.Error(), "more than") {
		t.Errorf("a file of more than %d bytes: %v", maxPlain, err)
	}
}

func frame(t *testing.T, body []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(body, []byte(magic))
}

func FuzzPlain(f *testing.F) {
	plain, err := Plain(small())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := decoder{rest: raw}
		c := d.corpus()
		if d.err != nil || c == nil {
			return
		}
		again, err := Plain(c)
		if err != nil {
			t.Fatal(err)
		}
		d = decoder{rest: again}
		got := d.corpus()
		if d.err != nil {
			t.Fatal(d.err)
		}
		if twice, err := Plain(got); err != nil || !bytes.Equal(twice, again) {
			t.Fatalf("got %v, %v, want %v", got, err, c)
		}
	})
}

func TestEachIsInOrder(t *testing.T) {
	c := small()
	c.Series[2].Times = []int64{c.Series[2].Times[0], c.Series[2].Times[0] + 1, c.Series[2].Times[2],
		c.Series[2].Times[2] + 9999}
	seen, last := map[string]int{}, int64(0)
	err := c.Each(func(at int64, series, index []int) error {
		if at <= last {
			t.Errorf("%d comes after %d", at, last)
		}
		last = at
		for k, i := range series {
			s := &c.Series[i]
			if seen[s.String()] != index[k] || s.Times[index[k]] != at {
				t.Errorf("sample %d of %s at %d", index[k], s, at)
			}
			seen[s.String()]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Series {
		if s := &c.Series[i]; seen[s.String()] != len(s.Times) {
			t.Errorf("%s has %d of %d samples", s, seen[s.String()], len(s.Times))
		}
	}
}

func TestThin(t *testing.T) {
	c := &Corpus{Interval: 1000,
		Series: []Series{{labels("a"), []int64{1000, 1999, 2000, 4500}, []string{"1", "2", "3", "4"}}}}
	if n := c.Thin(); n != 1 || !reflect.DeepEqual(c.Series[0].Values, []string{"1", "3", "4"}) {
		t.Errorf("%d were left out, %v is left", n, c.Series[0].Values)
	}
}

// TestRecordings reads what is in the repository.
func TestRecordings(t *testing.T) {
	names, err := Names("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		c, err := Load("data", name)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != name || c.About == "" || c.Points() == 0 {
			t.Errorf("%s names itself %s, %q, and has %d points", name, c.Name, c.About, c.Points())
		}
		for i := range c.Series {
			for _, v := range c.Series[i].Values {
				if _, err := Word(v); err != nil {
					t.Fatalf("%s: %s: %v", name, &c.Series[i], err)
				}
			}
		}
	}
}
