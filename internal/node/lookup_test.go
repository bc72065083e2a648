package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/local"
	"dalmatiner/internal/tags"
)

// Lookups find series of the store by their tags, as long as they have a point near the range;
// buckets without tags are collections; what is deleted is not found.
func TestLookupsInAStore(t *testing.T) {
	p := newPairNode(t)
	one := func(int64) uint64 { return point.FromInt(1) }
	const day = 24 * 3600
	p.now.Store(pairFrom + 2*day + 100)
	p.write("b", "a.old", 0, chunk.Slots, one)
	p.write("b", "a.now", 2*day, 2*day+100, one)
	p.write("plain", "x", 2*day, 2*day+100, one)
	index := tags.New()
	for _, name := range []string{"a.old", "a.now", "a.never"} {
		info, err := p.store.BucketByName("b")
		p.must(err)
		index.Apply(&tags.Change{Bucket: info.ID, Key: pairKey(t, name), Collection: []byte("c"),
			Name: pairKey(t, "m"),
			Set:  []tags.Tag{{TagName: tags.TagName{Name: []byte("host")}, Value: []byte(name)}}})
	}
	e := &query.Engine{
		Source: local.New(local.Options{Store: p.store, Tags: index}),
		Now:    func() time.Time { return time.Unix(p.now.Load(), 0) },
	}
	find := func(q, want string) {
		t.Helper()
		var names []string
		r, err := e.Query(t.Context(), q, query.Options{})
		if err == nil {
			for _, s := range r.Series {
				names = append(names, s.Name)
			}
		} else if !errors.Is(err, query.ErrNoResults) {
			t.Error(err)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	check := func() {
		t.Helper()
		find("SELECT m FROM c AS $host LAST 10s", "'a.now'")
		find("SELECT m FROM c WHERE host =~ 'a[.]o.*' AS $host LAST 3d", "'a.old'")
		find("SELECT m FROM c AS $host LAST 3d", "'a.now' 'a.old'")
		find("SELECT ALL FROM plain LAST 10s", "ALL FROM 'plain'")
		find("SELECT x FROM plain WHERE ddb:part_1 = x LAST 10s",
			"'x' FROM 'plain' WHERE 'ddb':'part_1' = 'x'")
	}
	check()
	p.flush()
	check()
	p.must(p.store.Close())
	p.open()
	e.Source = local.New(local.Options{Store: p.store, Tags: index})
	check()
	p.must(p.store.DeleteBucket("b"))
	find("SELECT m FROM c AS $host LAST 3d", "")
}
