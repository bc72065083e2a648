package compaction

import (
	"fmt"
	"strings"
	"testing"

	"dalmatiner/internal/disk/manifest"
)

// A merge counts the names that it takes over before it does, and makes room for
// them once.
func TestMergesCountTheNamesTheyTakeOver(t *testing.T) {
	n := newNode(t)
	key := func(i int) []byte { return []byte(strings.Repeat("x", 240) + fmt.Sprintf("%010d", i)) }
	n.flush(key, 5_000, 1)
	const names = 5_000 * 250
	m, err := n.c.begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, seg := range m.sources {
		m.plan.Remove = append(m.plan.Remove, seg.Meta.Seq)
	}
	o := output{ctx: t.Context(), m: m, kind: manifest.Overlay}
	if err := o.begin(); err != nil {
		t.Fatal(err)
	}
	if got := n.c.OutputBytes(); got < names || got > names*3/2 || o.names != 5_000 {
		t.Errorf("%d names of %d bytes count for %d", o.names, names, got)
	}
	if err := o.end(true); err != nil {
		t.Fatal(err)
	}
	if got := n.c.OutputBytes(); got != 0 {
		t.Errorf("%d bytes count behind its end", got)
	}
}
