package events

import (
	"cmp"
	"math"
	"slices"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
)

// file is a committed file. The lock of the store is that of users and dead.
type file struct {
	manifest.File
	reader *eventfile.Reader // nil: it is missing or cannot be used
	users  int
	dead   bool // removed when nobody uses it
	kept   kept
}

// view is what one read sees: tables, and the files that may have something of its range.
type view struct {
	tables []*table
	files  []*file
	lost   []*file // that are missing
	epoch  uint64
}

// pin returns what there is of a bucket in a range of time. unpin must follow.
func (s *Local) pin(bucket uint64, start, end int64) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	v := &view{tables: append(slices.Clone(s.frozen), s.active), epoch: s.epoch}
	for _, f := range s.files {
		if r, ok := f.RangeOf(bucket); !ok || r.Last < start || r.First >= end {
			continue
		}
		if f.reader == nil {
			v.lost = append(v.lost, f)
			continue
		}
		if err := f.reader.Acquire(); err != nil {
			s.o.Damage(s.o.name(f.Seq), err)
			v.lost = append(v.lost, f)
			continue
		}
		f.users++
		v.files = append(v.files, f)
	}
	return v, nil
}

// unpin gives the files of a view back, and removes those that are not needed any more.
func (s *Local) unpin(v *view) {
	var dead []*file
	s.mu.Lock()
	for _, f := range v.files {
		f.reader.Release()
		if f.users--; f.users == 0 && f.dead {
			dead = append(dead, f)
		}
	}
	s.mu.Unlock()
	s.remove(dead)
}

// remove removes files from the disk that nothing names any more.
func (s *Local) remove(dead []*file) {
	for _, f := range dead {
		if err := s.o.FS.Remove(s.o.path(f.Seq)); err != nil {
			s.o.Logger.Warn("a file of events that nothing needs stays until the next start", "file",
				s.o.name(f.Seq), "err", err)
		}
	}
}

func (o *Options) path(number uint64) string { return o.FS.PathJoin(o.Dir, eventfile.Path(number)) }

func (o *Options) file(number uint64) origin.File {
	return origin.File{Directory: o.Of, Number: number}
}

// name is how a file is called in reports.
func (o *Options) name(number uint64) string { return eventfile.Path(number) }

// keys reads the keys of a block and reports damage.
func (s *Local) keys(f *file, block int, buf *eventfile.Buffer) ([]Event, error) {
	list, err := f.reader.Keys(block, buf)
	if err != nil {
		s.o.Damage(s.o.name(f.Seq), err)
	}
	return list, err
}

// gaps returns what is known to be missing of a bucket from the files of a view, and from the
// tables.
func (v *view) gaps(bucket uint64, start, end int64) (gaps []Gap) {
	add := func(first, last, n int64) {
		if last >= start && first < end {
			gaps = append(gaps, Gap{Start: first, End: after(last), Events: n})
		}
	}
	for _, f := range v.lost {
		if r, ok := f.RangeOf(bucket); ok {
			add(r.First, r.Last, r.Items)
		}
	}
	for _, f := range v.files {
		for _, l := range f.reader.Lost {
			if l.Bucket == bucket {
				add(l.First, l.Last, l.Events)
			}
		}
	}
	for _, t := range v.tables {
		for _, l := range t.lost {
			if l.Bucket == bucket {
				add(l.First, l.Last, l.Events)
			}
		}
	}
	return gaps
}

// after is the nanosecond behind t.
func after(t int64) int64 {
	if t == math.MaxInt64 {
		return t
	}
	return t + 1
}

func gapOf(b *eventfile.Block) Gap {
	return Gap{Start: b.First, End: after(b.Last), Events: b.Events}
}

// maxGaps is how many gaps an answer names. The last one stands for all behind it.
const maxGaps = 1024

// ordered returns gaps in order of time. Those that touch each other are one.
func ordered(gaps []Gap) []Gap {
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Start, b.Start) })
	var out []Gap
	for _, g := range gaps {
		if n := len(out); n > 0 && (g.Start <= out[n-1].End || n == maxGaps) {
			out[n-1].End = max(out[n-1].End, g.End)
			out[n-1].Events += g.Events
			continue
		}
		out = append(out, g)
	}
	return out
}

// lifetime returns the TTL of a bucket in nanoseconds, 0 for none.
func lifetime(info *buckets.Info) int64 {
	if info.TTL == 0 {
		return 0
	}
	ms := info.Resolution * int64(time.Millisecond)
	if info.TTL > math.MaxInt64/ms {
		return 0
	}
	return info.TTL * ms
}

// livesFrom returns the time before which the events of a bucket have expired.
func (o *Options) livesFrom(info *buckets.Info) int64 {
	if ttl := lifetime(info); ttl > 0 {
		return o.Now() - ttl
	}
	return math.MinInt64
}
