package scrape

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	phistogram "github.com/prometheus/prometheus/model/histogram"
	plabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/labels"
)

// newestKept is how long the time of a series' newest sample is known: longer than the two
// intervals that a marker of an ended target may be late.
const newestKept = 24 * time.Hour

// intake takes the samples of scrapes. Its methods may be called concurrently.
type intake struct {
	o *Options

	// The newest time of each series in ms: a target that ends writes stale markers two
	// intervals later, and may have come back meanwhile.
	mu     sync.Mutex
	newest map[storage.SeriesRef]int64
	prune  int // as soon as newest has so many series, those are dropped that are old
}

// leastPruned is how many series there are at least before old ones are looked for.
const leastPruned = 1 << 16

func newIntake(o *Options) *intake {
	in := &intake{o: o, newest: map[storage.SeriesRef]int64{}, prune: leastPruned}
	o.Memory.Add(memory.Pool{
		Name:  "scrape-series",
		Holds: "the newest time of each scraped series, about 40 bytes each",
		Use: func() int64 {
			in.mu.Lock()
			defer in.mu.Unlock()
			return int64(len(in.newest)) * 40
		},
	})
	return in
}

// AppenderV2 returns an appender for the samples of one scrape.
func (in *intake) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &appender{in: in, ctx: ctx}
}

// isNewer reports whether a time is behind all samples of a series.
func (in *intake) isNewer(ref storage.SeriesRef, ms int64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	newest, ok := in.newest[ref]
	return !ok || ms > newest
}

// note keeps the times of samples. A series that ends needs none.
func (in *intake) note(samples []sample) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range samples {
		s := &samples[i]
		if s.isStale() {
			delete(in.newest, s.ref)
		} else if s.ms > in.newest[s.ref] {
			in.newest[s.ref] = s.ms
		}
	}
	if len(in.newest) < in.prune {
		return
	}
	oldest := time.Now().Add(-newestKept).UnixMilli()
	for ref, ms := range in.newest {
		if ms < oldest {
			delete(in.newest, ref)
		}
	}
	in.prune = max(leastPruned, 2*len(in.newest))
}

// sample is a value of one series; histogram has its values where it is not nil.
type sample struct {
	labels    plabels.Labels
	ref       storage.SeriesRef
	ms        int64
	value     float64
	histogram *phistogram.FloatHistogram
}

func (s *sample) isStale() bool {
	if s.histogram != nil {
		return acked.IsStale(s.histogram.Sum)
	}
	return acked.IsStale(s.value)
}

// appender collects the samples of one scrape: only at its end it is known whether they count.
type appender struct {
	in        *intake
	ctx       context.Context
	samples   []sample
	exemplars int
	list      []labels.Label
	bytes     []byte // of list
	classic   histogram.Series
}

// Append takes a sample. Its reference is the hash of the labels, which is never 0: for stale
// markers Prometheus remembers series by it.
func (a *appender) Append(_ storage.SeriesRef, ls plabels.Labels, _, ms int64, v float64,
	h *phistogram.Histogram, fh *phistogram.FloatHistogram,
	opts storage.AOptions) (storage.SeriesRef, error) {
	ref := storage.SeriesRef(max(ls.Hash(), 1))
	if opts.RejectOutOfOrder && !a.in.isNewer(ref, ms) {
		return 0, storage.ErrOutOfOrderSample
	}
	if h != nil {
		fh = h.ToFloat(nil)
	}
	a.samples = append(a.samples, sample{ls, ref, ms, v, fh})
	a.exemplars += len(opts.Exemplars)
	return ref, nil
}

// Rollback counts the samples of a scrape that failed as a whole, such as one with too many.
func (a *appender) Rollback() error {
	values := slices.DeleteFunc(a.samples, func(s sample) bool { return s.isStale() })
	if len(values) > 0 {
		a.in.o.Writers.Count("failed_scrape", len(values))
	}
	a.samples = nil
	return nil
}

// Commit stores the samples and returns when they are durable. Those that the store refuses are
// counted and logged, and are no error of the scrape.
func (a *appender) Commit() error {
	if len(a.samples) == 0 {
		return nil
	}
	if a.exemplars > 0 {
		a.in.o.Writers.Count("exemplar_not_kept", a.exemplars)
	}
	w, err := a.in.o.Writers.Begin(a.in.o.Bucket, netip.AddrPort{})
	if err != nil {
		return err
	}
	for i := range a.samples {
		a.write(w, &a.samples[i])
	}
	_, err = w.End(a.ctx)
	if refused := (*acked.Refusal)(nil); errors.As(err, &refused) {
		a.in.o.Logger.Log(a.ctx, slog.LevelWarn, "points of a scrape were refused", "err", err)
		err = nil
	}
	a.in.note(a.samples)
	return err
}

// write hands one sample over.
func (a *appender) write(w *acked.Writer, s *sample) {
	if s.ms < 0 {
		a.refuse("bad_value", "a time before 1970")
		return
	}
	name := a.read(s.labels)
	if s.histogram != nil {
		a.writeHistogram(w, s, name)
		return
	}
	if err := w.Series(a.list, name); err != nil {
		a.refuse("bad_labels", s.labels.String())
		return
	}
	w.Point(s.ms, acked.Word(s.value))
}

// writeHistogram hands a native histogram over as a classic one.
func (a *appender) writeHistogram(w *acked.Writer, s *sample, name []byte) {
	h := native(s.histogram)
	list, err := h.Classic()
	if err != nil {
		a.refuse("bad_value", err.Error())
		return
	}
	whole := histogram.Labelled{Name: name, Labels: a.list, Count: h.Count, Sum: h.Sum,
		Boundaries: list}
	err = a.classic.Store(w.Appender, &whole, func(word uint64) { w.Point(s.ms, word) })
	if err != nil {
		a.refuse("bad_labels", s.labels.String())
	}
}

// native returns a histogram of Prometheus' as ours, which shares its slices.
func native(h *phistogram.FloatHistogram) histogram.Native {
	if acked.IsStale(h.Sum) {
		return histogram.Native{Count: h.Sum, Sum: h.Sum}
	}
	side := func(spans []phistogram.Span, counts []float64) histogram.Side {
		out := histogram.Side{Counts: counts}
		for _, s := range spans {
			out.Spans = append(out.Spans, histogram.Span(s))
		}
		return out
	}
	return histogram.Native{Count: h.Count, ZeroCount: h.ZeroCount, Sum: h.Sum,
		ZeroThreshold: h.ZeroThreshold, Schema: h.Schema, Custom: h.CustomValues,
		Negative: side(h.NegativeSpans, h.NegativeBuckets),
		Positive: side(h.PositiveSpans, h.PositiveBuckets)}
}

func (a *appender) refuse(reason, input string) {
	a.in.o.Writers.Refuse(reason, netip.AddrPort{}, []byte(input))
}

// read puts the labels into list, and returns the name. Both are valid until the next call.
func (a *appender) read(ls plabels.Labels) (name []byte) {
	a.list, a.bytes = a.list[:0], a.bytes[:0]
	ls.Range(func(l plabels.Label) {
		from := len(a.bytes)
		a.bytes = append(append(a.bytes, l.Name...), l.Value...)
		pair := a.bytes[from:len(a.bytes):len(a.bytes)]
		if l.Name == model.MetricNameLabel {
			name = pair[len(l.Name):]
			return
		}
		a.list = append(a.list, labels.Label{Name: pair[:len(l.Name):len(l.Name)],
			Value: pair[len(l.Name):]})
	})
	return name
}
