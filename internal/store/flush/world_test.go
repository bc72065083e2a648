package flush_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/flushtest"
	"dalmatiner/internal/testkit/golden"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// world is a flusher, and what it flushes.
type world struct {
	*flushtest.World
	side *side
}

func newWorld(s *golden.Script) *world {
	w := &world{}
	w.side = &side{w: w}
	w.World = flushtest.New(s, flushtest.Options{Step: w.step, Sides: []flush.Side{w.side}})
	return w
}

// step prints what has happened by the end of a step: how much of the log is not synced, the files
// of segments that have their name, what the MANIFEST names and what readers see, and whether
// anything is left to flush.
func (w *world) step(step int) {
	name := [...]string{"captured", "log synced", "segment synced", "catalogue", "committed",
		"log trimmed", "merged", "sides synced"}[step]
	files, err := w.Disk.List("/data/flush")
	w.Must(err)
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, datadir.SegmentSuffix) {
			n++
		}
	}
	w.Printf("  step %d %s: unsynced %s, files %d, named %d, seen %d, catalogue %d, series to name "+
		"%d, needed from record %d\n", step, name,
		some(w.Log.Stats().Unsynced), n, len(w.Manifest.State().Segments),
		len(w.Versions.Latest().Segments), w.inCatalogue(), w.Columns.Unflushed.Len(),
		w.Record(w.Flusher.Needed()))
}

// inCatalogue returns how many series the catalogue has, -1 for one that failed or is about to: it
// writes by itself as well.
func (w *world) inCatalogue() (n int) {
	if w.Catalogue.Failure() != nil || w.Disk.Failing("/data/catalogue") {
		return -1
	}
	w.Must(w.Catalogue.Load(func(e segment.Series) error {
		if len(e.Key) > 0 {
			n++
		}
		return nil
	}))
	return n
}

func some(n int64) string {
	if n == 0 {
		return "0"
	}
	return "some"
}

// delete deletes a series.
func (w *world) delete(text string) {
	b, key := w.Series(text)
	w.Flusher.Gate().Lock()
	defer w.Flusher.Gate().Unlock()
	d := columns.Deletion{Bucket: b, DeleteSequence: w.Dir.TakeDeletion(), Why: logrecord.Deleted,
		Incarnation: w.Columns.Deletions.Next(0, w.Now)}
	w.Must(w.Columns.Delete(&d, []metric.SeriesID{b.SeriesID(key)}))
	w.Pressure.AddLate(-d.Head.LateBytes)
	w.Printf("  record %d deletes %d series\n", w.Logged(), len(d.Series))
}

// flush flushes what is sealed, and prints what became of it.
func (w *world) flush(do func() error) {
	before, state := w.Versions.Latest().Segments, w.Manifest.State()
	err := do()
	if err != nil {
		w.Printf("  error: %v\n", err)
		if strings.Contains(err.Error(), "the log has failed") { // it says so by itself
			select {
			case <-w.LogFailed:
			case <-time.After(time.Minute):
				w.T.Fatal("the store does not hear of it")
			}
		}
	}
	for _, seg := range w.Versions.Latest().Segments {
		if !slices.Contains(before, seg) {
			w.printSegment(seg)
		}
	}
	if err == nil {
		w.printState(w.Manifest.State())
	} else if now := w.Manifest.State(); now.AccountLSN != state.AccountLSN ||
		len(now.Segments) != len(state.Segments) {
		w.T.Errorf("a flush that failed changed the MANIFEST: %+v", now)
	}
	w.waits()
}

// adopt flushes with chunks, and prints what became of it. Each has a point in its first slot.
func (w *world) adopt(args []string) {
	var list []flush.Adopted
	for _, arg := range args {
		text, number, _ := strings.Cut(arg, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		w.Must(err)
		b, key := w.Series(text)
		var e chunk.Encoder
		list = append(list,
			flush.Adopted{Bucket: b.ID, ID: b.SeriesID(key), Number: flushtest.Epoch/chunk.Slots + n,
				Points: 1,
				Data:   e.Append(nil, 0, []uint64{point.FromInt(n)})})
	}
	changes := w.Versions.Latest().Changes(list[0].Bucket)
	w.flush(func() error { return w.Flusher.Adopt(context.Background(), list) })
	w.Printf("  what was read changes: %t; copies in the account: %d\n",
		w.Versions.Latest().Changes(list[0].Bucket) != changes,
		w.Ledger.Copies().Total(list[0].Bucket).Accepted)
}

// name returns what the tests call a series.
func (w *world) name(bucket uint64, h segment.Hash) string {
	for _, b := range w.Buckets.All() {
		for i := range 100 {
			if name := fmt.Sprintf("m%d", i); b.ID == bucket &&
				segment.Hash(b.SeriesID(metric.AppendPart(nil, name))) == h {
				return b.Name + "/" + name
			}
		}
	}
	return fmt.Sprintf("unknown series of bucket %d", bucket)
}

func (w *world) printSegment(seg *version.Segment) {
	w.Must(seg.Reader.Verify())
	w.Printf("  segment %d generation %d\n", seg.Meta.Seq, seg.Meta.Generation)
	list, err := seg.Reader.Buckets()
	w.Must(err)
	for _, b := range list {
		w.Printf("    bucket %d %s\n", b.ID, b.Name)
	}
	w.Must(seg.Reader.Series(func(e segment.Series) error {
		if e.DeleteSequence > 0 {
			w.Printf("    tombstone %s below %d by record %d, incarnation %s\n", w.name(e.Bucket, e.Hash),
				e.DeleteSequence, w.Record(e.Since), some(int64(e.Incarnation)))
		} else {
			w.Printf("    series %s at %d:%d by record %d\n", w.name(e.Bucket, e.Hash), e.Group, e.Column,
				w.Record(e.Since))
		}
		return nil
	}))
	w.Must(seg.Reader.Each(func(bucket uint64, h segment.Hash, number int64, data []byte) error {
		w.Printf("    chunk %s %d\n", w.name(bucket, h), number-flushtest.Epoch/chunk.Slots)
		return nil
	}))
	w.Printf("    points %d, marks %d\n", seg.Meta.Points, len(seg.Meta.Marks.List))
	raw, err := seg.Reader.State()
	w.Must(err)
	says, err := manifest.DecodeEdit(raw)
	w.Must(err)
	st := w.Manifest.State()
	if says.AccountLSN != st.AccountLSN || says.ReplayPosition != st.ReplayPosition ||
		says.NextSeq != st.NextSeq || len(says.AddSegments) != 1 ||
		!slices.Equal(says.ReplayPositions, st.ReplayPositions()) ||
		!slices.Equal(says.Account, st.Account) {
		w.T.Errorf("segment %d says %+v, the MANIFEST %+v", seg.Meta.Seq, says, st)
	}
}

func (w *world) printState(st *manifest.State) {
	w.Printf("  MANIFEST: replay from record %d", w.Record(st.ReplayPosition))
	for _, p := range st.ReplayPositions() {
		w.Printf(", of group %d from %d", p.Group, w.Record(p.LSN))
	}
	counted := account.New()
	w.Must(counted.Restore(st.Account))
	var points uint64
	for _, c := range counted.Totals() {
		points += c.StoredPoints()
	}
	w.Printf("; account of %d points below record %d; next segment %d, group %d\n", points,
		w.Record(st.AccountLSN), st.NextSeq, st.NextGroup)
	w.Printf("    segments %d, buckets %d, deleted %d, tombstones %d, rebuild catalogue %t",
		len(st.Segments), len(st.Buckets), len(st.DeletedBuckets), len(st.Tombstones),
		st.Catalogue == catalogue.MarkLost)
	for _, h := range st.Highest {
		w.Printf(", bucket %d up to %d", h.Bucket, h.Slot-flushtest.Epoch)
		if b := w.Buckets.ID(h.Bucket); b != nil && b.Highest() != h.Slot {
			w.T.Errorf("bucket %d is flushed up to %d in memory, %d in the MANIFEST", b.ID, b.Highest(),
				h.Slot)
		}
	}
	w.Printf("\n  the log is needed from record %d, and has %d files\n", w.Record(w.Flusher.Needed()),
		w.Log.Stats().Files)
}

// waits prints what the next flush has.
func (w *world) waits() {
	var chunks int64
	for _, g := range w.Columns.Groups.All() {
		n, _ := g.FlushChunks()
		chunks += n
	}
	w.Flusher.Count()
	p := w.Pressure
	w.Printf("  waits: changes of series %d, tombstones %d, chunks %d, sealed %s, late %s; need %s",
		w.Columns.Unflushed.Len(), w.Columns.Unflushed.Tombstones(),
		chunks, some(p.SealedBytes()), some(p.LateBytes()), some(w.Flusher.SealedNeed()))
	if n := w.Flusher.Need() - w.Flusher.SealedNeed(); n > 0 {
		w.Printf(", and with blocks more")
	}
	files, err := w.Disk.List("/data/flush")
	w.Must(err)
	slices.Sort(files)
	for i := range files {
		files[i] = strings.TrimLeft(files[i], "0")
	}
	w.Printf("; files %v; flushed %d, to merge %d", files, w.Flusher.Stats().Flushes, w.Committed)
	for _, s := range []struct {
		is   bool
		name string
	}{{p.FlushFailed(), "failed"}, {p.DiskFull(), "points are refused"},
		{p.Failure() != nil, fmt.Sprintf("the store has ended, said %d times", w.Fatals)}} {
		if s.is {
			w.Printf("; %s", s.name)
		}
	}
	w.Printf("\n")
	if names, _ := w.Damage.Names(); len(names) > 0 {
		w.Printf("  damage: %v\n", names)
	}
}
