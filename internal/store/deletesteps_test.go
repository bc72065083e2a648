package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
)

// deleteSteps is a store with a few series, and what each must hold.
type deleteSteps struct {
	t     *testing.T
	s     *Store
	o     Options
	fs    *vfs.MemFS
	want  [3]map[int64]uint64 // by series and slot
	sent  []int64             // slots
	clock *testClock
	done  []string
}

func newDeleteSteps(t *testing.T) *deleteSteps {
	d := &deleteSteps{t: t, fs: vfs.NewCrashableMem(), clock: newTestClock()}
	d.o = testOptions(d.fs, d.clock)
	byHand(&d.o)
	d.s = mustOpen(t, d.o)
	if _, err := d.s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000}); err != nil {
		t.Fatal(err)
	}
	return d
}

// do takes a step: flush, merge, round, reopen, crash, pass (hours, behind which
// windows are merged), or send or delete with the number of a series behind it. Every
// point sent has a slot of its own, so that one that comes back is seen.
func (d *deleteSteps) do(step string) {
	d.t.Helper()
	d.done = append(d.done, step)
	series := int(step[len(step)-1] - '0')
	var err error
	switch strings.TrimRight(step, "012") {
	case "flush":
		mustFlush(d.t, d.s)
	case "merge":
		_, err = d.s.Merge(context.Background())
	case "round": // as the background does
		_, err = d.s.merges.Round(context.Background())
		err = errors.Join(err, d.s.merges.DropTombstones())
	case "reopen":
		err = d.s.Close()
		d.s = mustOpen(d.t, d.o)
	case "crash":
		err = d.s.disk.Log.Sync()
		d.fs = d.fs.CrashClone(vfs.CrashCloneCfg{})
		d.s.Crash()
		d.o.FS = d.fs
		d.s = mustOpen(d.t, d.o)
	case "send":
		d.clock.Advance(time.Second)
		d.s.clock.Advance()
		slot := d.clock.Now().Unix()
		word := point.FromInt(int64(len(d.sent)))
		x := mustSession(d.t, d.s, "b")
		x.Point(key(series), uint64(slot), word)
		err = x.Close()
		if d.want[series] == nil {
			d.want[series] = map[int64]uint64{}
		}
		d.want[series][slot] = word
		d.sent = append(d.sent, slot)
	case "pass":
		d.clock.Advance(4 * time.Hour)
		d.s.clock.Advance()
	case "delete":
		_, err = d.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: key(series)}, false)
		if errors.Is(err, deletion.ErrUnknownSeries) && d.want[series] == nil {
			err = nil
		}
		d.want[series] = nil
	default:
		d.t.Fatalf("step %q", step)
	}
	if err != nil {
		d.t.Fatalf("%v: %v", d.done, err)
	}
	d.check()
}

func (d *deleteSteps) check() {
	d.t.Helper()
	for series := range d.want {
		for i, slot := range d.sent {
			if got, want := readAll(d.t, d.s, "b", series, slot, 1)[0], d.want[series][slot]; got != want {
				d.t.Fatalf("after %v series %d holds %x in the slot of point %d, want %x", d.done, series, got,
					i, want)
			}
		}
	}
}

// A series that is deleted between merges, in any order, does not come back when it
// is sent again: a segment that a merge wrote before the deletion holds it.
func TestDeletionsBetweenMerges(t *testing.T) {
	t.Parallel()
	for _, steps := range []string{
		// the flush is noted as clean of the first deletion alone
		"send2 flush send1 delete1 merge delete2 merge send2",
		"send2 flush pass send1 flush delete1 round delete2 round send2 flush round",
		// the flush behind the deletion has its number
		"send2 flush delete2 send2 flush pass send1 flush merge",
		"send2 send1 flush pass send1 flush merge delete2 merge send2 flush pass send1 flush merge " +
			"delete1 merge",
		"send1 send2 flush send1 send2 delete1 merge delete2 merge send2",
		"send1 send2 flush delete1 merge delete2 merge send2 flush merge",
		"send1 flush send2 flush delete1 merge delete2 merge merge send1 send2 merge",
		"send1 send2 flush merge delete1 delete2 flush merge send2 send1 flush merge",
		"send1 send2 flush delete1 round delete2 round send2 round flush round",
		"send1 send2 flush merge delete1 crash merge delete2 crash merge send2 crash",
		"send1 send2 flush merge delete1 reopen delete2 reopen merge send2 reopen merge",
		"send1 send2 flush delete2 send2 flush delete2 merge send2 delete1 merge reopen",
	} {
		d := newDeleteSteps(t)
		for _, step := range strings.Fields(steps) {
			d.do(step)
		}
		d.do("crash")
		for _, step := range []string{"flush", "merge", "flush", "merge"} {
			d.do(step)
		}
		if st := d.s.Stats(); st.Deleted.Tombstones != 0 {
			t.Errorf("%d tombstones are left after %v: something deleted is not freed",
				st.Deleted.Tombstones, d.done)
		}
		d.s.Crash()
	}
}

// The same with steps by chance.
func TestDeletionsByChance(t *testing.T) {
	t.Parallel()
	steps := []string{"flush", "flush", "flush", "merge", "merge", "round", "pass", "pass", "reopen",
		"crash"}
	for i := range 3 {
		steps = append(steps, fmt.Sprintf("send%d", i), fmt.Sprintf("delete%d", i))
	}
	for seed := range uint64(200) {
		r, d := rand.New(rand.NewPCG(seed, 11)), newDeleteSteps(t)
		for range 14 {
			d.do(steps[r.IntN(len(steps))])
		}
		d.s.Crash()
	}
}
