package segment

import (
	"bytes"
	"testing"

	"dalmatiner/internal/model/identity"
	"dalmatiner/internal/model/metric"

	"pgregory.net/rapid"
)

// drawNames is some identities, alike and not.
func drawNames(t *rapid.T) (all []byte) {
	var s Series
	for range rapid.IntRange(1, 50).Draw(t, "identities") {
		if rapid.IntRange(0, 9).Draw(t, "bucket") == 0 {
			s.Bucket = rapid.Uint64().Draw(t, "id")
		}
		s.Column = (s.Column + 1) % 256
		if rapid.IntRange(0, 9).Draw(t, "column") == 0 {
			s.Group, s.Column = rapid.Uint32().Draw(t, "group"), rapid.Uint16Range(0, 255).Draw(t, "of it")
		}
		numbers := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 9), rapid.Uint64())
		s.Since, s.DeleteSequence, s.Incarnation = numbers.Draw(t, "since"), numbers.Draw(t, "deleted"),
			numbers.Draw(t, "incarnation")
		s.Key = rapid.SliceOfN(rapid.ByteRange(0, 2), 0, 300).Draw(t, "key")
		switch rapid.IntRange(0, 2).Draw(t, "hash") {
		case 0:
			s.Hash = Hash(metric.Series(s.Bucket, s.Key))
		case 1:
			s.Hash = Hash(metric.TimestampedID(s.Bucket, s.Key))
		default:
			s.Hash = testHash(rapid.Uint64().Draw(t, "other"))
		}
		all = appendSeries(all, &s)
	}
	return all
}

func TestStoredNamesAreTheNames(t *testing.T) {
	var p identity.Packer
	rapid.Check(t, func(t *rapid.T) {
		all := drawNames(t)
		packed, plain := packNames(&p, nil, all)
		if plain > len(packed) {
			t.Fatalf("%d of %d bytes are plain", plain, len(packed))
		}
		got, err := unpackNames([]byte("xy"), packed, len(all))
		if err != nil || !bytes.Equal(got[2:], all) {
			t.Fatalf("%v\n% x, want\n% x", err, got, all)
		}
		if _, err := unpackNames(nil, packed, len(all)-1); err == nil {
			t.Fatal("more than the limit was taken")
		}
	})
}

// FuzzUnpackNames: what comes out of any bytes are records, not more than the limit, and they
// are stored as bytes that give them again.
func FuzzUnpackNames(f *testing.F) {
	for i := range 5 {
		packed, _ := packNames(new(identity.Packer), nil, rapid.Custom(drawNames).Example(i))
		f.Add(bytes.Clone(packed))
		f.Add(bytes.Clone(packed[:len(packed)-1]))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		const limit = 10_000
		all, err := unpackNames(nil, src, limit)
		if err != nil {
			return
		}
		if len(all) > limit {
			t.Fatalf("%d bytes", len(all))
		}
		for rest := all; len(rest) > 0; {
			if _, rest, err = parseSeries(rest); err != nil {
				t.Fatal(err)
			}
		}
		packed, _ := packNames(new(identity.Packer), nil, all)
		if again, err := unpackNames(nil, packed, limit); err != nil || !bytes.Equal(again, all) {
			t.Fatalf("stored again they are others: %v", err)
		}
	})
}
