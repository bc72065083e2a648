package store

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

// loseCatalogue opens the store without it, behind a flush or with more in the log.
func (c *churn) loseCatalogue() {
	c.t.Helper()
	if c.r.IntN(2) == 0 {
		c.flush()
	} else {
		c.durable(c.s.disk.Log.Sync)
	}
	c.withoutCatalogue()
}

// withoutCatalogue opens the store without the catalogue.
func (c *churn) withoutCatalogue() {
	c.t.Helper()
	c.s.Crash()
	if err := c.fs.RemoveAll("/data/catalogue"); err != nil {
		c.t.Fatalf("%v", err)
	}
	c.open()
	if names, _ := c.s.Damage(); len(names) > 1 { // none when it had nothing yet
		c.t.Fatalf("damage: %v", names)
	}
	c.s.damage = damage.Notes{Logger: c.s.o.Logger} // it is reported
	clear(c.gone)                                   // segments have names of series that have expired
	c.check()
}

// A series whose column another one took has it back where a start finds that one deleted and
// forgotten. What it sends then names its column alone, and is found with the catalogue or without.
func TestAColumnGivenBackOutlivesTheCatalogue(t *testing.T) {
	t.Parallel()
	c := newChurn(t, rand.New(rand.NewPCG(1, 1)), false, 0)
	defer func() { c.s.Crash() }()
	column := func(i int) series.Ref {
		ref, _ := c.s.columns.Index.Lookup(c.s.buckets.Get("b").SeriesID(key(i)))
		return ref
	}
	c.born(head.Width)
	c.round()
	had := column(0)
	c.batches[0].live = false
	c.pass(3 * time.Minute)
	c.flush()
	c.born(columns.MinReuse)
	c.round()
	if !column(0).Inactive() {
		t.Fatal("no column was taken")
	}
	for i := head.Width; i < head.Width+columns.MinReuse; i++ {
		if _, err := c.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: key(i)},
			false); err != nil {
			t.Fatal(err)
		}
		c.deleted[i], c.named[i] = len(c.sent), false
	}
	c.batches[1].live = false
	c.flush()
	c.flush() // lets the places of the deleted go, which the log has no more
	c.durable(func() error { return c.s.Close() })
	c.open()
	if column(0) != had {
		t.Fatalf("series 0 has column %v, it had %v", column(0), had)
	}
	c.batches[0].live = true
	c.round()
	c.durable(c.s.disk.Log.Sync)
	c.withoutCatalogue()
}
