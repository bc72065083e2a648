package catalogue

import (
	"encoding/hex"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/identity"
	"dalmatiner/internal/model/metric"
)

// The format is frozen: identities are written as these bytes, and read from
// them.
func TestFrozenRecords(t *testing.T) {
	f := func(s segment.Series, key, value string) {
		t.Helper()
		k, v := appendKey(nil, &s), appendValue(nil, &s)
		if hex.EncodeToString(k) != key || hex.EncodeToString(v) != value {
			t.Errorf("the format is frozen: %+v is now written as %x, %x", s, k, v)
		}
		got, err := parseKey(fromHex(t, key))
		if err == nil {
			err = parseValue(fromHex(t, value), &got)
		}
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%s, %s is read as %+v, %v", key, value, got, err)
		}
	}
	f(segment.Series{Bucket: 1, Hash: segment.Hash{1, 2, 15: 0xff}, Group: 70_000, Column: 255,
		Since: 1 << 40, Key: []byte("\x01a\x00\x02bc")},
		"69"+"0000000000000001"+"00011170"+"00ff"+"010200000000000000000000000000ff",
		"0000010000000000"+"00"+"01610002"+"6263")
	f(segment.Series{Bucket: 1, Hash: segment.Hash{1, 2, 15: 0xff}, Group: 70_000, Column: 255,
		Since: 1 << 40, Incarnation: 1<<60 + 300, Key: []byte("\x01a")},
		"69"+"0000000000000001"+"00011170"+"00ff"+"010200000000000000000000000000ff",
		"0000010000000000"+"ac8280808080808010"+"0161")
	f(segment.Series{Bucket: 1<<64 - 1, Hash: segment.Hash{9}, Key: []byte{}},
		"69"+"ffffffffffffffff"+"00000000"+"0000"+"09000000000000000000000000000000",
		"0000000000000000"+"00")
	b := block{bucket: 1, group: 70_000, first: 64, list: []segment.Series{
		{Bucket: 1, Group: 70_000, Column: 64, Since: 500, Key: []byte("\x01a\x00\x02bc")},
		{Bucket: 1, Group: 70_000, Column: 65, Since: 526, Key: []byte("\x01a\x00\x02bd")},
		{Bucket: 1, Group: 70_000, Column: 127, Since: 600, Incarnation: 300, Key: []byte("\x01b")},
	}}
	for i := range b.list {
		b.list[i].Hash = segment.Hash(metric.Series(b.bucket, b.list[i].Key))
	}
	const key, value = "63" + "0000000000000001" + "00011170" + "0040", "00" + "03" + "100058" + "09" +
		"e807" + "f0a2047f60" + "ac02" + "03" + "000501" + "03" + "060101" + "01610002" + "6263" + "64" +
		"62"
	if k, v := b.appendKey(nil),
		b.appendValue(nil, new(identity.Packer)); hex.EncodeToString(k) != key ||
		hex.EncodeToString(v) != value {
		t.Errorf("the format is frozen: a block is now written as %x, %x", k, v)
	}
	got := blockOf(&b.list[2])
	if err := got.read(fromHex(t, key), fromHex(t, value)); err != nil ||
		!reflect.DeepEqual(got.list, b.list) {
		t.Errorf("a block is read as %+v, %v", got.list, err)
	}
	if got := hex.EncodeToString(generationKey()) + " " +
		hex.EncodeToString(appendGeneration(nil, 258)); got != "6d67 000000000000010200000003" {
		t.Errorf("the format is frozen: generation 258 is now written as %s", got)
	}
	if n, err := parseGeneration(fromHex(t, "000000000000010200000003")); n != 258 || err != nil {
		t.Errorf("generation 258 is read as %d, %v", n, err)
	}
}

func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A catalogue of another version is said to be damaged, so that its owner
// rebuilds it: of an earlier one, of one that has a generation alone, and of a
// later one.
func TestAnotherVersionIsRebuilt(t *testing.T) {
	for _, generation := range []string{"0000000000000002", "000000000000000200000002",
		"000000000000000200000004"} {
		fs := dataFS(t)
		c := open(t, fs)
		if err := errors.Join(c.Put(testSeries(3)), c.Flush(),
			c.db.Set(generationKey(), fromHex(t, generation), pebble.NoSync), c.db.Flush()); err != nil {
			t.Fatal(err)
		}
		closeChecked(t, c)
		_, err := Open(fs, testDir, slog.New(slog.DiscardHandler))
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), testDir) {
			t.Errorf("%s: %v", generation, err)
		}
	}
}
