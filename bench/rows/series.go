package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
)

const (
	knownBudget   = 200 // bytes of a known series beside its name
	collectBudget = 3   // percent of the processor

	newRows   = 5  // sent of every series when it is new
	knownRows = 30 // and when it is known
)

const collectNote = "the sender is in the process; by the clock: an upper bound on a machine " +
	"that does other things"

// series is what known series cost that send nothing, and what the Go runtime's
// collections cost beside as many that do: of a million, and of the 2.4 million of
// the published load.
func (b *bench) series(ctx context.Context) error {
	if err := b.seriesOf(ctx, 1_000_000, "1 M"); err != nil || b.Quick {
		return err
	}
	return b.seriesOf(ctx, 2_400_000, "2.4 M")
}

// knownSeries is a store in this process with as many series.
type knownSeries struct {
	n      int
	now    atomic.Int64
	o      store.Options
	s      *store.Store
	names  []byte // one behind the other, all of one length
	before int64  // bytes of this process without a store
}

func (b *bench) seriesOf(ctx context.Context, n int, name string) (err error) {
	k := &knownSeries{n: n}
	for i := range n {
		k.names = metric.AppendPart(metric.AppendPart(k.names, "site"), fmt.Sprintf("meter-%07d", i))
	}
	k.now.Store(1_699_992_000 * int64(time.Second))
	k.o = store.DefaultOptions(filepath.Join(b.Dir, "series-"+name))
	defer os.RemoveAll(k.o.Dir)
	k.o.Now = func() time.Time { return time.Unix(0, k.now.Load()) }
	k.o.MinFree, k.o.BackgroundMerge = 0, false
	if k.before, err = ownMemory(); err != nil {
		return err
	}
	if k.s, err = store.Open(k.o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	area := name + " known series"
	share, err := k.send(ctx, newRows)
	if err != nil {
		return err
	}
	b.table.Add(report.Figure{
		Area:  area,
		What:  "garbage collection, new series",
		Unit:  "% of CPU",
		Value: share,
	}.
		Because("defined and %d rows sent, %s", newRows, collectNote))
	if _, err := k.s.Flush(ctx); err != nil {
		return err
	}
	if err := b.known(k, area, "idle, after a flush"); err != nil {
		return err
	}
	if err := k.close(); err != nil {
		return err
	}
	begun := time.Now()
	if k.s, err = store.Open(k.o); err != nil {
		return err
	}
	took := time.Since(begun)
	if err := b.known(k, area, "idle, after a start"); err != nil {
		return err
	}
	b.table.Add(report.Figure{
		Area:  area,
		What:  "start after a clean stop",
		Unit:  "s",
		Value: took.Seconds(),
	})
	if share, err = k.send(ctx, knownRows); err != nil {
		return err
	}
	b.table.Add(report.Figure{
		Area:   area,
		What:   "garbage collection, known series",
		Unit:   "% of CPU",
		Value:  share,
		Budget: collectBudget,
	}.
		Because("%d rows, %s", knownRows, collectNote))
	return nil
}

// close closes the store if it is open.
func (k *knownSeries) close() error {
	s := k.s
	if k.s = nil; s == nil {
		return nil
	}
	return s.Close()
}

// known adds what a series takes now beside its name.
func (b *bench) known(k *knownSeries, area, when string) error {
	now, err := ownMemory()
	if err != nil {
		return err
	}
	b.table.Add(report.Figure{
		Area:   area,
		What:   when,
		Unit:   "B/series",
		Value:  float64(now-k.before-int64(len(k.names))) / float64(k.n),
		Budget: knownBudget,
	}.
		Because("and %.1f of its name; anonymous memory of the process that the store has made, after "+
			"a collection", float64(len(k.names))/float64(k.n)))
	return nil
}

// send sends rows of all series and returns the share of the collections in the
// processor time meanwhile, in percent.
func (k *knownSeries) send(ctx context.Context, rows int) (share float64, err error) {
	info, err := k.s.EnsureBucket("series")
	if err != nil {
		return 0, err
	}
	x, err := k.s.NewSession(info)
	if err != nil {
		return 0, err
	}
	cpu, err := measure.Time(os.Getpid())
	if err != nil {
		return 0, err
	}
	gc := collected()
	size := len(k.names) / k.n
	for row := range rows {
		slot := uint64(k.now.Load() / int64(time.Second))
		for i := range k.n {
			x.Point(k.names[i*size:][:size], slot, point.FromInt(int64(i+row)))
		}
		if _, err := x.Commit(); err != nil {
			return 0, err
		}
		k.now.Add(int64(time.Second))
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	gc = collected() - gc
	after, err := measure.Time(os.Getpid())
	if err != nil {
		return 0, err
	}
	return 100 * gc / after.Sub(cpu).Sum().Seconds(), x.Close()
}

// collected returns the seconds of processor time that collections took so far.
func collected() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}, {Name: "/cpu/classes/gc/pause:cpu-seconds"}}
	metrics.Read(sample)
	sum := 0.0
	for _, s := range sample {
		sum += s.Value.Float64()
	}
	return sum
}

// ownMemory returns the anonymous bytes of this process after a collection.
func ownMemory() (int64, error) {
	debug.FreeOSMemory()
	return measure.Kibibytes(measure.Field(fmt.Sprintf("/proc/%d/status", os.Getpid()), "RssAnon"))
}
