package tags

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// Digests that are kept are those of what the index has, whatever it went through: an index that is
// made from its changes, in another order, has the same. So has the list of series, cut anywhere.
func TestDigestsAreThoseOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New()
		began := rapid.IntRange(0, 10).Draw(t, "digests are kept from")
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			if i == began {
				Copies{x}.KeepDigests()
			}
			c := drawChange(t)
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0:
				x.DropBucket(c.Bucket)
			case 1, 2:
				x.Drop(c.Bucket, metric.Series(c.Bucket, c.Key), rapid.Uint64Range(0, 6).Draw(t, "up to"))
			case 3:
				x.Forget(rapid.Uint64Range(0, 6).Draw(t, "forgotten"))
			default:
				x.Apply(&c)
			}
		}
		if x.kept == nil {
			Copies{x}.KeepDigests()
		}
		same := New()
		Copies{same}.KeepDigests()
		var changes []Change
		_ = x.Walk(func(c *Change) error { // nothing ends it
			changes = append(changes, cloneChange(c))
			return nil
		})
		for _, c := range rapid.Permutation(changes).Draw(t, "order") {
			same.Apply(&c)
		}
		if (Copies{x}).Digests() != (Copies{same}).Digests() {
			t.Fatalf("digests of the same state differ: %v", changes)
		}
		most := rapid.IntRange(1, 4).Draw(t, "most")
		var sums Digests
		for from := uint32(0); ; {
			list, reached := Copies{x}.SeriesDigests(from, math.MaxUint32, most)
			for _, d := range list {
				if d.Hash() < from || d.Hash() > reached {
					t.Fatalf("%x lies beyond %x to %x", d.ID, from, reached)
				}
				sums[RangeOf(d.Hash())] += d.Sum
				other := New()
				Copies{other}.KeepDigests()
				_ = Copies{x}.WalkID(d.ID, func(c *Change) error { // nothing ends it
					other.Apply(c)
					return nil
				})
				if of := (Copies{other}).Digests(); of[RangeOf(d.Hash())] != d.Sum {
					t.Fatalf("what is walked of series %x has another digest", d.ID)
				}
			}
			if reached == math.MaxUint32 {
				break
			}
			from = reached + 1
		}
		if sums != (Copies{x}).Digests() {
			t.Fatal("the digests of series do not add up to those of ranges")
		}
	})
}

// A change of anything changes the digest.
func TestDigestsTellChangesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New()
		Copies{x}.KeepDigests()
		var before []Digests
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			c := drawChange(t)
			if x.Apply(&c) {
				if slices.Contains(before, (Copies{x}).Digests()) {
					t.Fatalf("%+v leaves digests as they were once", c)
				}
				before = append(before, Copies{x}.Digests())
			}
		}
	})
}

func cloneChange(c *Change) (out Change) {
	_, _ = ParseChange(&out, AppendChange(nil, c)) // it is valid
	return out
}
