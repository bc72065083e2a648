package window

import (
	"cmp"
	"maps"
	"slices"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
)

// The sizes of windows in chunks. At one second a slot they are two hours and
// a day.
const (
	Small = segment.SmallChunks
	Large = segment.LargeChunks
)

const (
	// maxFlushes is how many flush segments may wait for their windows to
	// close. A bucket of coarse resolution keeps its window open for months:
	// beyond this number what is open goes into an overlay with the rest.
	maxFlushes = 64

	// MaxOverlays is how many overlays readers may have to look into. One that
	// was cut into files counts once: no two of them hold the same chunk.
	MaxOverlays = 4

	// maxLate is the share of a window, 1/maxLate of its bytes, that late
	// points may have in overlays before the window is rewritten.
	maxLate = 20
)

// Bucket is what the plan has to know of a living bucket.
type Bucket struct {
	// ClosedBefore is the chunk number below which no more points are expected
	// but late ones.
	ClosedBefore int64
	// ExpiredBefore is the chunk number below which all points are older than
	// the bucket's TTL.
	ExpiredBefore int64
}

// Range is a window to write: the chunks [First, Past) of a bucket.
type Range = manifest.Range

// Part is a part of an overlay: what the segments hold of the range that no
// window has yet.
type Part struct {
	Range
	From []uint64
}

// Plan is what to do.
type Plan struct {
	// Generation is that of the windows.
	Generation uint64
	// Windows are to be written from all segments that overlap them.
	Windows []Range
	// Overlay are the parts of one overlay to be written, sorted, and
	// OverlayGeneration is its generation.
	Overlay           []Part
	OverlayGeneration uint64
	// Remove are the segments that nothing needs afterwards.
	Remove []uint64
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool {
	return len(p.Windows) == 0 && len(p.Overlay) == 0 && len(p.Remove) == 0
}

// planner works out a plan.
type planner struct {
	segments []manifest.Segment
	windows  map[uint64][]manifest.Segment // the committed ones, by bucket
	buckets  map[uint64]Bucket
	late     func(seq uint64, r Range) int64
	purge    map[uint64]bool // hold series that were deleted, and are to be rewritten without
	taken    map[uint64]bool // flushes and overlays that go away
	jobs     map[Range]bool
	overlay  map[Range][]uint64 // from which segments
	plan     Plan
}

// Make returns the plan for the committed segments and the living buckets.
// late returns the bytes that a segment holds of a range; purge are the segments
// to be rewritten for the sake of what is deleted in them.
func Make(segments []manifest.Segment, buckets map[uint64]Bucket,
	late func(seq uint64, r Range) int64, purge map[uint64]bool) Plan {
	p := &planner{
		segments: segments, windows: make(map[uint64][]manifest.Segment), buckets: buckets, late: late,
		purge: purge,
		taken: make(map[uint64]bool), jobs: make(map[Range]bool), overlay: make(map[Range][]uint64),
	}
	for i := range segments {
		p.plan.Generation = max(p.plan.Generation, segments[i].Generation)
		// One that was taken in after damage may be of a bucket that is gone: it
		// has no range then.
		if segments[i].Kind == manifest.Window && len(segments[i].Ranges) > 0 {
			b := segments[i].Ranges[0].Bucket
			p.windows[b] = append(p.windows[b], segments[i])
		}
	}
	p.take()
	p.place()
	p.promote()
	p.finish()
	return p.plan
}

// take chooses the flushes that go away: the oldest ones whose content is closed
// but for a small share, or all of them when they are too many. They must be a
// run without gaps in the order of generations, so that an overlay of them keeps
// its place in it. With too many overlays those go too.
func (p *planner) take() {
	var flushes []manifest.Segment
	overlays := make(map[uint64]bool) // by generation
	purgeOverlays := false
	for _, s := range p.segments {
		purgeOverlays = purgeOverlays || s.Kind == manifest.Overlay && p.purge[s.Seq]
		switch s.Kind {
		case manifest.Flush:
			flushes = append(flushes, s)
		case manifest.Overlay:
			overlays[s.Generation] = true
		}
	}
	slices.SortFunc(flushes, func(a, b manifest.Segment) int { return cmp.Compare(a.Seq, b.Seq) })
	purge := 0 // flushes up to the last one that is to be rewritten
	for i, s := range flushes {
		if p.purge[s.Seq] {
			purge = i + 1
		}
	}
	for i, s := range flushes {
		if i >= purge && len(flushes) <= maxFlushes && p.open(s) {
			break
		}
		p.taken[s.Seq] = true
	}
	if len(overlays) <= MaxOverlays && !purgeOverlays {
		return
	}
	for _, s := range p.segments {
		if s.Kind == manifest.Overlay {
			p.taken[s.Seq] = true
		}
	}
}

// open reports whether more than a small share of the segment are chunks of
// windows that may still grow. A small share, such as the node's own metrics
// beside a backfill, goes into an overlay meanwhile: it must not keep the rest
// on the disk twice.
func (p *planner) open(s manifest.Segment) bool {
	var open, closed int64
	for _, r := range s.Ranges {
		first, past := floor(r.First, Small), r.Past
		if b, ok := p.buckets[r.Bucket]; ok && r.Past > b.ExpiredBefore {
			past = min(past, floor(b.ClosedBefore, Small))
		}
		if first < past {
			closed += p.late(s.Seq, Range{Bucket: r.Bucket, First: first, Past: past})
		}
		if first = max(first, past); first < r.Past {
			open += max(1, p.late(s.Seq, Range{Bucket: r.Bucket, First: first, Past: r.Past}))
		}
	}
	return open*maxLate > open+closed
}

// place finds a place for everything in the segments that go away: in a window
// that is written, or in the overlay. What overlays hold becomes part of a
// window that is written anyway.
func (p *planner) place() {
	for _, s := range p.segments {
		if !p.taken[s.Seq] {
			continue
		}
		for _, r := range s.Ranges {
			for first := floor(r.First, Small); first < r.Past; first += Small {
				p.placeWindow(s, Range{Bucket: r.Bucket, First: first, Past: first + Small})
			}
		}
	}
}

func (p *planner) placeWindow(s manifest.Segment, r Range) {
	b, ok := p.buckets[r.Bucket]
	if !ok || r.Past <= b.ExpiredBefore || p.isCovered(r, s.Generation) {
		return
	}
	if w, ok := p.window(r); ok {
		if p.worthRewriting(w) {
			p.jobs[w] = true
		} else {
			p.overlay[r] = append(p.overlay[r], s.Seq)
		}
		return
	}
	switch day := large(r); {
	case day.Past <= b.ClosedBefore:
		p.jobs[day] = true
	case r.Past <= b.ClosedBefore:
		p.jobs[r] = true
	default:
		p.overlay[r] = append(p.overlay[r], s.Seq)
	}
}

// isCovered reports whether a window already holds what a segment of the given
// generation says of the range.
func (p *planner) isCovered(r Range, generation uint64) bool {
	for _, s := range p.windows[r.Bucket] {
		if s.Generation >= generation && holds(s, r) {
			return true
		}
	}
	return false
}

// window returns the range of the committed window that holds r.
func (p *planner) window(r Range) (Range, bool) {
	for _, s := range p.windows[r.Bucket] {
		if holds(s, r) {
			return s.Ranges[0], true
		}
	}
	return Range{}, false
}

// holds reports whether a window of the bucket of r holds it.
func holds(window manifest.Segment, r Range) bool {
	w := window.Ranges[0]
	return w.First <= r.First && w.Past >= r.Past
}

// worthRewriting reports whether the late points of a window have grown too
// large for overlays. What a segment held when the window was written is in it,
// and is not late, however long the segment stays for the sake of others.
func (p *planner) worthRewriting(w Range) bool {
	if p.jobs[w] {
		return true
	}
	var own, late int64
	var generation uint64
	for _, s := range p.windows[w.Bucket] {
		if s.Ranges[0] == w {
			own += s.Bytes
			generation = max(generation, s.Generation)
		}
	}
	for _, s := range p.segments {
		if s.Kind != manifest.Window && s.Generation > generation {
			late += p.late(s.Seq, w)
		}
	}
	return late*maxLate > own
}

// promote writes a large window where the small ones of a closed day are, and
// those anew that hold what is deleted.
func (p *planner) promote() {
	for _, s := range p.segments {
		if s.Kind != manifest.Window || len(s.Ranges) == 0 {
			continue
		}
		r := s.Ranges[0]
		b, ok := p.buckets[r.Bucket]
		if ok && p.purge[s.Seq] && r.Past > b.ExpiredBefore {
			p.jobs[r] = true
		}
		if day := large(r); ok && r != day && day.Past <= b.ClosedBefore && r.Past > b.ExpiredBefore {
			p.jobs[day] = true
		}
	}
}

// finish drops what larger jobs contain and names what can go.
func (p *planner) finish() {
	for r := range p.jobs {
		if day := large(r); day != r && p.jobs[day] {
			delete(p.jobs, r)
		}
	}
	for r := range p.overlay {
		if p.jobs[large(r)] || p.jobs[r] {
			delete(p.overlay, r)
		}
	}
	p.plan.Windows = sorted(p.jobs)
	for _, r := range sorted(p.overlay) {
		p.plan.Overlay = append(p.plan.Overlay, Part{Range: r, From: p.overlay[r]})
	}
	for _, s := range p.segments {
		if p.taken[s.Seq] {
			p.plan.OverlayGeneration = max(p.plan.OverlayGeneration, s.Generation)
		}
		if p.taken[s.Seq] || p.isDone(s) {
			p.plan.Remove = append(p.plan.Remove, s.Seq)
		}
	}
}

// isDone reports whether nothing in a window or an overlay will be needed.
func (p *planner) isDone(s manifest.Segment) bool {
	if s.Kind == manifest.Flush || len(s.Ranges) == 0 {
		// Flushes go in the order of their generations; an overlay without
		// chunks was written for the names in it.
		return false
	}
	for _, r := range s.Ranges {
		b, ok := p.buckets[r.Bucket]
		if !ok || r.Past <= b.ExpiredBefore {
			continue
		}
		for first := floor(r.First, Small); first < r.Past; first += Small {
			w := Range{Bucket: r.Bucket, First: first, Past: first + Small}
			written := p.jobs[w] || p.jobs[large(w)]
			if !written && (s.Kind == manifest.Window || !p.isCovered(w, s.Generation)) {
				return false
			}
		}
	}
	return true
}

func sorted[V any](set map[Range]V) []Range {
	return slices.SortedFunc(maps.Keys(set), compareRanges)
}

func compareRanges(a, b Range) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.First, b.First),
		cmp.Compare(a.Past, b.Past))
}

// large returns the large window that holds r.
func large(r Range) Range {
	first := floor(r.First, Large)
	return Range{Bucket: r.Bucket, First: first, Past: first + Large}
}

func floor(n, unit int64) int64 { return n - n%unit }

// Ranges collects the small windows that chunks lie in: what the MANIFEST keeps
// of a segment.
type Ranges struct{ set map[Range]bool }

// Add counts a chunk in.
func (s *Ranges) Add(bucket uint64, number int64) {
	if s.set == nil {
		s.set = make(map[Range]bool)
	}
	first := floor(number, Small)
	s.set[Range{Bucket: bucket, First: first, Past: first + Small}] = true
}

// List returns the ranges, sorted and joined.
func (s *Ranges) List() []Range {
	var out []Range
	for _, r := range sorted(s.set) {
		if n := len(out); n > 0 && out[n-1].Bucket == r.Bucket && out[n-1].Past == r.First {
			out[n-1].Past = r.Past
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Order compares segments by how they lie over each other: the later one of
// two that hold the same slot wins.
func Order(a, b manifest.Segment) int {
	if c := cmp.Compare(a.Generation, b.Generation); c != 0 {
		return c
	}
	return cmp.Compare(boolInt(a.Kind == manifest.Window), boolInt(b.Kind == manifest.Window))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
