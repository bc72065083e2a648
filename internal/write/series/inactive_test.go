package series

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Names come and go; those that are there keep their numbers and their text.
func TestInactiveNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p InactiveNames
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		want := make(map[Ref]string)
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			if r.IntN(5) < 2 && len(want) > 0 {
				for ref := range want {
					if left := p.Remove(ref); left != ref^inactiveBit {
						t.Fatalf("number %d had column %d", ref, left)
					}
					delete(want, ref)
					break
				}
				continue
			}
			name := fmt.Sprintf("%d %*d", i, r.IntN(20_000), i)
			ref := p.Add([]byte(name), 0)
			p.left[ref.number()] = ref ^ inactiveBit
			if _, used := want[ref]; used || !ref.Inactive() {
				t.Fatalf("number %x is given twice", ref)
			}
			want[ref] = name
		}
		names := make(map[string]bool)
		p.View().Each(func(key []byte) bool { names[string(key)] = true; return true })
		if len(names) != len(want) || p.Len() != len(want) {
			t.Fatalf("%d names, %d counted, want %d", len(names), p.Len(), len(want))
		}
		live := int64(0)
		for ref, name := range want {
			if live += int64(len(name)); string(nameAt(p.pieces, p.at[ref.number()])) != name {
				t.Fatalf("number %d has another name", ref)
			}
		}
		if over := p.Bytes() - 2*live; over > 8*pieceSize {
			t.Fatalf("%d bytes for %d of names", p.Bytes(), live)
		}
	})
}
