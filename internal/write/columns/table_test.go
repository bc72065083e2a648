package columns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

func key(n int) []byte { return metric.AppendPart(nil, fmt.Sprintf("m%d", n)) }

// listLog keeps records; a position is the number of the record, from 1.
type listLog struct {
	records [][]byte
	fail    error
}

func (l *listLog) append(rec []byte) (wal.LSN, error) {
	if l.fail != nil {
		return 0, l.fail
	}
	l.records = append(l.records, slices.Clone(rec))
	return wal.LSN(len(l.records)), nil
}

func (l *listLog) Define(rec []byte, apply func(wal.LSN)) error {
	lsn, err := l.append(rec)
	if err == nil {
		apply(lsn)
	}
	return err
}

func (l *listLog) Delete(rec []byte, _ bool) (wal.LSN, error) { return l.append(rec) }

// world is a table with one bucket, and what it must have.
type world struct {
	*Table
	b     *Bucket
	log   *listLog
	now   time.Time
	clock *clock.Clock
	known map[string]bool
}

func newWorld(hpts bool) *world {
	w := &world{log: new(listLog), now: time.Unix(1000, 0), known: map[string]bool{}}
	w.clock = clock.New(func() time.Time { return w.now })
	registry := buckets.NewRegistry[*Bucket]()
	budget := memory.New(0, func() time.Time { return w.now }, nil)
	w.Table = New(Options{
		Buckets: registry, Log: w.log, Clock: w.clock, NewSeries: func() {},
		Names: budget.NewStock(memory.StockOptions{Name: "names"}), Versions: version.New(nil),
	})
	w.b = NewBucket(buckets.Info{ID: 7, Name: "b", Resolution: 1000, PPF: 1, HPTS: hpts}, 60,
		head.NewArena(60))
	registry.Add(w.b)
	return w
}

// wait makes all series silent and their points flushed, as after two blocks.
func (w *world) wait() {
	w.now = w.now.Add(time.Hour)
	w.clock.Advance()
	w.NoteSilent(func(uint32) uint64 { return 1 << 60 })
}

// check compares the table with what it must have.
func (w *world) check(t *rapid.T, keys int) {
	t.Helper()
	listed := map[string]int{}
	views, inactive := w.b.Names()
	for _, cols := range views {
		for col := range cols.Len() {
			if cols.HasName(col) {
				listed[string(cols.Key(col))]++
			}
		}
	}
	names := int64(0)
	inactive.Each(func(key []byte) bool { listed[string(key)]++; names++; return true })
	for i := range keys {
		k := key(i)
		id := w.b.SeriesID(k)
		ref, has := w.Index.Lookup(id)
		if want := w.known[string(k)]; has != want || (listed[string(k)] == 1) != want {
			t.Fatalf("series %d: want %t, the index says %t, it is listed %d times", i, want, has,
				listed[string(k)])
		}
		p, ok := w.Locate(id, k)
		if ok != (has && !ref.Inactive()) || ok &&
			(p.Columns.ID(p.Column) != id || p.Group.ID != ref.Group()) {
			t.Fatalf("series %d at %x is located at %+v", i, ref, p)
		}
	}
	if c := w.b.Counts(); c.Series != int64(len(w.known)) || c.Inactive != names ||
		len(listed) != len(w.known) {
		t.Fatalf("%d series counted, %d inactive; want %d and %d", c.Series, c.Inactive, len(w.known),
			names)
	}
}

// replay returns a table that has read the log of w.
func (w *world) replay(t *rapid.T, hpts bool) *world {
	t.Helper()
	r := newWorld(hpts)
	r.known = w.known
	owners := r.NewOwnership(0, new(damage.Notes))
	for i, rec := range w.log.records {
		p, err := logrecord.Parse(rec)
		if err != nil {
			t.Fatal(err)
		}
		lsn := wal.LSN(i + 1)
		if p.Kind == logrecord.Series {
			old, known := r.Index.Lookup(r.b.SeriesID(p.Key))
			owners.Define(r.b, &p, lsn, old, known)
		} else {
			owners.Delete(&Deletion{Bucket: r.b, Why: p.Why, Incarnation: p.Incarnation}, &p, lsn)
		}
	}
	owners.FinishReplay()
	return r
}

// Series are defined by several senders, fall silent, lose their columns, come back and are
// deleted. Every name is there once all the time, and what the log says of it is the same.
func TestTableEqualsAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hpts := rapid.Bool().Draw(t, "hpts")
		w := newWorld(hpts)
		keys := rapid.IntRange(10, 1500).Draw(t, "keys")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		fillers := []Filler{w.NewFiller(w.b), w.NewFiller(w.b)}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"send", "send", "send", "wait", "delete", "reconnect"}).Draw(t,
				"step") {
			case "send":
				first, f := r.IntN(keys), &fillers[r.IntN(2)]
				for i := first; i < min(keys, first+400); i++ {
					id := w.b.SeriesID(key(i))
					if _, ok := w.Locate(id, key(i)); ok {
						continue
					}
					p, lsn, err := f.Define(id, key(i))
					if err != nil || lsn != wal.LSN(len(w.log.records)) || !p.Columns.Is(p.Column, key(i)) {
						t.Fatalf("%+v at %d: %v", p, lsn, err)
					}
					w.known[string(key(i))] = true
				}
			case "wait":
				w.wait()
			case "delete":
				ids, err := w.b.Choose(context.Background(), func([]byte) bool { return r.IntN(5) == 0 })
				d := Deletion{Bucket: w.b, Why: logrecord.Deleted, Incarnation: w.Deletions.Next(0, w.now),
					DeleteSequence: 1}
				if err = errors.Join(err, w.Delete(&d, ids)); err != nil || len(d.Series) != len(ids) {
					t.Fatalf("%d of %d: %v", len(d.Series), len(ids), err)
				}
				for i := range keys {
					if id := w.b.SeriesID(key(i)); slices.Contains(ids, id) {
						delete(w.known, string(key(i)))
					}
				}
			case "reconnect":
				i := r.IntN(2)
				fillers[i].Close()
				fillers[i] = w.NewFiller(w.b)
			}
			w.check(t, keys)
		}
		again := w.replay(t, hpts)
		again.check(t, keys)
		for k := range w.known {
			id := w.b.SeriesID([]byte(k))
			if ref, _ := w.Index.Lookup(id); !ref.Inactive() {
				if got, ok := again.Index.Lookup(id); !ok || got != ref {
					t.Fatalf("a series at %x is at %x by the log", ref, got)
				}
			}
		}
	})
}

// A definition that the log does not take changes nothing.
func TestTheLogComesFirst(t *testing.T) {
	w := newWorld(false)
	f := w.NewFiller(w.b)
	w.log.fail = errors.New("no log")
	id := w.b.SeriesID(key(1))
	if _, _, err := f.Define(id, key(1)); !errors.Is(err, w.log.fail) {
		t.Fatal(err)
	}
	if c := w.b.Counts(); w.Index.Has(id) || c.Series != 0 || w.Unflushed.Len() != 0 ||
		w.o.Names.Bytes() != groupCost {
		t.Fatalf("%+v, %d changes, %d bytes", c, w.Unflushed.Len(), w.o.Names.Bytes())
	}
	w.log.fail = nil
	if p, lsn, err := f.Define(id, key(1)); err != nil || lsn != 1 || !p.Columns.Is(p.Column, key(1)) {
		t.Fatalf("%+v at %d: %v", p, lsn, err)
	}
}

// A deleted bucket takes no series, and what it had is not told to the catalogue.
func TestDeletedBuckets(t *testing.T) {
	w := newWorld(false)
	f := w.NewFiller(w.b)
	if _, _, err := f.Define(w.b.SeriesID(key(1)), key(1)); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no log")
	if err := w.DeleteBucket(w.b, func() buckets.Deletion {
		return w.o.Buckets.Deletion(w.b, w.now)
	}, func(buckets.Deletion, func()) error { return failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	taken := func(_ buckets.Deletion, apply func()) error { apply(); return nil }
	for i, want := range []error{nil, buckets.ErrUnknown} {
		if err := w.DeleteBucket(w.b, func() buckets.Deletion {
			return w.o.Buckets.Deletion(w.b, w.now)
		}, taken); !errors.Is(err, want) {
			t.Fatalf("deletion %d: %v", i, err)
		}
	}
	w.DropGroups(w.b)
	if _, _, err := f.Define(w.b.SeriesID(key(2)), key(2)); !errors.Is(err, buckets.ErrUnknown) {
		t.Error(err)
	}
	c := w.Unflushed.Take(0)
	if len(c.Catalogue) != 0 || len(c.Buckets) != 1 || w.Index.Has(w.b.SeriesID(key(1))) ||
		w.Unflushed.FlushMemory() != 0 {
		t.Errorf("%+v, a need of %d", c, w.Unflushed.FlushMemory())
	}
}
