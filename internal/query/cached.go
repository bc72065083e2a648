package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/exec"
	"dalmatiner/internal/query/explain"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/resultcache"
)

// Cache keeps results for those who ask the same again: package resultcache describes it.
type Cache = resultcache.Cache

// NewCache returns a cache of so many bytes; nil for none.
func NewCache(limit int64) *Cache { return resultcache.New(limit) }

// request is a query under way.
type request struct {
	*Engine
	q     *dql.Query
	opt   Options
	began time.Time
	zone  *time.Location // asked for; nil without
	times plan.Range

	// Of an aligned range: the length that was asked for in ms, and its end in unix ms.
	length, until int64
	uneven        bool // steps are spans of the calendar, and the end is not moved

	parsed       *parsed
	whole, parts string // keys in the cache; empty without one
}

// parsed is a text that was parsed. It is kept with the answer: to parse a short query takes as
// long as to find what it asks for. Nobody changes what it points to.
type parsed struct {
	key      string
	q        dql.Query
	timeless string
}

// Bytes returns the memory of the tree, about.
func (p *parsed) Bytes() int64 { return parsedSize + parsedByte*int64(len(p.q.Text)) }

const (
	parsedSize = 1 << 10
	parsedByte = 48 // of memory for one of the text

	// maxParsed is the longest text of which the tree is kept.
	maxParsed = 8 << 10
)

// parse parses the text of the request.
func (r *request) parse(text string) (err error) {
	p := &parsed{}
	if r.Cache != nil && !r.opt.NoCache && len(text) <= maxParsed {
		p.key = "text " + text
		if r.opt.Compat {
			p.key = "compat " + text
		}
		if known, ok := r.Cache.Get(p.key).(*parsed); ok {
			q := known.q
			r.q, r.parsed = &q, known
			return nil
		}
	}
	parse := dql.Parse
	if r.opt.Compat {
		parse = dql.ParseCompat
	}
	if r.q, err = parse(text); err == nil && p.key != "" {
		p.q = *r.q
		r.parsed = p
	}
	return err
}

// answer is a whole result that is kept.
type answer struct {
	Result
	size  plan.Size
	basis resultcache.Basis
	bytes int64
}

// Bytes returns the memory of the answer.
func (a *answer) Bytes() int64 { return a.bytes }

// keptSteps are the first steps of a result, to be put together with later ones.
type keptSteps struct {
	*exec.Steps
	basis   resultcache.Basis // of the whole range
	without int64             // ms at the end of the range that are not kept
	start   int64             // of the range, unix ms
	bytes   int64
}

// Bytes returns the memory of the steps.
func (k *keptSteps) Bytes() int64 { return k.bytes }

// run answers the request, from the cache where that has the answer.
func (r *request) run(ctx context.Context) (*Result, error) {
	if r.Cache == nil || r.opt.NoCache || !r.repeats() {
		return r.compute(ctx)
	}
	r.keys()
	if r.opt.Explain || r.q.Explain {
		return r.explain(ctx)
	}
	if a := r.findWhole(); a != nil && r.allows(a.size) {
		return r.again(a)
	}
	if k, basis := r.findSteps(); k != nil && r.allows(k.Plan().Size) {
		if out, err := r.resume(ctx, k, basis); !errors.Is(err, exec.ErrNotKept) {
			return out, err
		}
	}
	r.Cache.Count(resultcache.Missed)
	return r.compute(ctx)
}

// repeats reports whether the same range may be asked for again: one that ends now, to the
// millisecond, is not.
func (r *request) repeats() bool { return r.opt.Align && !r.uneven || !r.q.Range.Relative() }

// allows reports whether a query of that size is within the limits of the request. Those of
// one that is not are told by planning it.
func (r *request) allows(s plan.Size) bool { return r.Limits.Stricter(r.opt.Limits).Allow(s) }

// lend takes memory for a result.
func (r *request) lend(bytes int64) error {
	if r.opt.Memory == nil {
		return nil
	}
	if err := r.opt.Memory.Grow(bytes); err != nil {
		return fmt.Errorf("the query is refused: %w", err)
	}
	return nil
}

// again gives an answer that is kept.
func (r *request) again(a *answer) (*Result, error) {
	if err := r.lend(a.bytes); err != nil {
		return nil, err
	}
	r.Cache.Count(resultcache.HitWhole)
	out := a.Result
	out.QueryTime, out.Until = r.Now().Sub(r.began), r.end()
	return &out, nil
}

// end returns the end of the range, or now where that is earlier.
func (r *request) end() int64 { return min(r.times.End, r.began.UnixMilli()) }

// findWhole returns the answer that is kept, if it still holds.
func (r *request) findWhole() *answer {
	a, ok := r.Cache.Get(r.whole).(*answer)
	if !ok {
		return nil
	}
	if !a.basis.Holds(r.Source, r.began.UnixMilli()) {
		r.Cache.Changed(r.whole, a)
		return nil
	}
	return a
}

// findSteps returns the steps that are kept, if some of them still hold and are in the range,
// and the basis of a result that is made of them.
func (r *request) findSteps() (*keptSteps, resultcache.Basis) {
	k, ok := r.Cache.Get(r.parts).(*keptSteps)
	if !ok || k.Of(r.times) == 0 {
		return nil, nil
	}
	// The new marks come first, so that they hold for the steps as well.
	basis := k.basis.Again(r.Source, r.times.Start-k.start, r.began.UnixMilli())
	if basis == nil || !k.basis.Until(k.without).Unchanged(r.Source) {
		r.Cache.Changed(r.parts, k)
		return nil, nil
	}
	if !basis.Visible() {
		return nil, nil
	}
	return k, basis
}

// explain computes everything, and says what of it is kept.
func (r *request) explain(ctx context.Context) (*Result, error) {
	from := explain.FromCache{Whole: r.findWhole() != nil}
	if !from.Whole {
		if k, _ := r.findSteps(); k != nil {
			from.Steps, from.Of = int64(k.Of(r.times)), (r.times.End-r.times.Start+k.Step()-1)/k.Step()
		}
	}
	out, err := r.compute(ctx)
	if err == nil {
		out.Plan.Cache = &from
	}
	return out, err
}

// compute answers the request from the source.
func (r *request) compute(ctx context.Context) (*Result, error) {
	recorder := resultcache.Recorder{Source: r.Source}
	p, err := plan.Make(ctx, &recorder, r.q, r.planOptions())
	if err != nil {
		return nil, err
	}
	var basis resultcache.Basis
	if r.whole != "" && !p.Explain && len(p.Missing) == 0 {
		basis = recorder.Basis(p, r.began.UnixMilli())
	}
	env := r.env(basis)
	ran, err := exec.Run(ctx, p, env)
	if err != nil {
		return nil, err
	}
	return r.result(p, ran, basis), nil
}

// resume answers the request with steps that are kept. basis is that of the result.
func (r *request) resume(ctx context.Context, k *keptSteps,
	basis resultcache.Basis) (*Result, error) {
	p := k.Plan()
	if err := r.lend(p.Memory); err != nil {
		return nil, err
	}
	ran, err := exec.Resume(ctx, k.Steps, r.times, r.env(basis))
	if err != nil {
		return nil, err
	}
	r.Cache.Count(resultcache.HitSteps)
	return r.result(p, ran, basis), nil
}

// fewAtOnce is how many series a reader takes at a time, where the source says nothing.
const fewAtOnce = 8

// env is what the request runs with: of a result with a basis, the steps are kept to which no
// points come any more but late ones.
func (r *request) env(basis resultcache.Basis) exec.Env {
	offers := r.Source.Offers()
	e := exec.Env{Now: r.Now, Until: r.until, Readers: r.Readers, Progress: r.opt.Progress,
		Together: offers.Together, AtOnce: cmp.Or(offers.AtOnce, fewAtOnce), Memory: r.opt.Memory}
	if basis != nil {
		e.KeepUntil = r.times.End + basis.Fixed(r.Source)
	}
	return e
}

// result makes the result of a run, and keeps what of it would be the same now.
func (r *request) result(p *plan.Plan, ran *exec.Result, basis resultcache.Basis) *Result {
	out := &Result{Start: r.times.Start, Until: r.end(), QueryTime: r.Now().Sub(r.began),
		Series: ran.Series, Stats: ran.Stats, Plan: ran.Explained,
		Missing: p.Missing, Unmatched: p.Unmatched, Compat: r.opt.Compat, Older: r.opt.Older}
	if basis == nil {
		return out
	}
	if k := ran.Steps; k != nil {
		without := r.times.End - k.End()
		if basis.Until(without).Unchanged(r.Source) {
			r.Cache.Put(r.parts, &keptSteps{k, basis, without, r.times.Start, k.Bytes() + basis.Bytes()})
		}
	}
	if basis.Holds(r.Source, r.began.UnixMilli()) {
		if p := r.parsed; p != nil && p.timeless == "" {
			r.Cache.Put(p.key, &parsed{p.key, p.q, r.timeless()})
		}
		r.Cache.Put(r.whole, &answer{
			Result: *out,
			size:   p.Size,
			basis:  basis,
			bytes:  basis.Bytes() + bytesOf(out.Series),
		})
	}
	return out
}

// keys sets the keys: of the whole answer, which tells it from all others beside what it is
// read from, and of its steps, which do not depend on when the range begins.
func (r *request) keys() {
	asked := append(r.asked(), ' ')
	asked = strconv.AppendInt(asked, r.times.End-r.times.Start, 10)
	asked = strconv.AppendInt(append(asked, '/'), r.length, 10)
	r.parts = string(asked)
	r.whole = string(strconv.AppendInt(append(asked, '@'), r.times.Start, 10))
}

// timeless returns the query without its range of time.
func (r *request) timeless() string {
	if r.parsed != nil && r.parsed.timeless != "" {
		return r.parsed.timeless
	}
	return r.q.Timeless()
}

// asked returns the query without its range of time, and the options that an answer
// depends on.
func (r *request) asked() []byte {
	o := &r.opt
	timeless := r.timeless()
	key := append(make([]byte, 0, len(timeless)+64), timeless...)
	key = append(key, ' ')
	for _, set := range [...]bool{o.Compat, o.Confidence, o.NoAggregates, o.Older} {
		if set {
			key = append(key, '1')
		} else {
			key = append(key, '0')
		}
	}
	key = strconv.AppendInt(append(key, ' '), int64(o.Width), 10)
	if r.zone != nil {
		key = append(append(key, ' '), r.zone.String()...)
	}
	return key
}

// seriesBytes is what a series takes beside its values and texts.
const seriesBytes = 384

// bytesOf returns the memory of the series of a result.
func bytesOf(list []Series) int64 {
	n := int64(0)
	for i := range list {
		s := &list[i]
		n += seriesBytes + int64(len(s.Name)+len(s.Metric)) +
			8*int64(cap(s.Values)+len(s.Times)+cap(s.Min)+cap(s.Max)+cap(s.Confidence)+2*cap(s.Exact))
		for _, star := range s.Stars {
			n += 16 + int64(len(star))
		}
		for name, v := range s.Metadata {
			text, _ := v.(string)
			n += 64 + int64(len(name)+len(text))
		}
		if s.Unknown != nil {
			n += 16 * int64(len(s.Unknown.Ranges))
			for _, why := range s.Unknown.Why {
				n += 16 + int64(len(why))
			}
		}
	}
	return n
}
