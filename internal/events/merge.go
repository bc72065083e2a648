package events

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/eventfile"
)

const maxTime = math.MaxInt64

// Limits of a merge.
const (
	// mergeFiles is how many files of about one size make a merge due, and maxMerge how many it
	// reads at most: of each a block is in memory.
	mergeFiles = 4
	maxMerge   = 16
	// leastTier is the size below which files count as equal.
	leastTier = 1 << 20
)

type counters struct{ merges, mergedBytes atomic.Int64 }

// Change is what a merge changes in the MANIFEST.
type Change struct {
	Add    *File // nil: nothing is left
	Remove []uint64
}

// Merge merges files of about one size, drops events that have expired or whose bucket is gone,
// and removes files of which nothing is left, until nothing is to do. commit makes a change
// permanent. stop ends it between two blocks.
func (s *Local) Merge(stop func() bool, commit func(Change) error) error {
	s.merging.Lock()
	defer s.merging.Unlock()
	for !stop() {
		from := s.plan()
		if len(from) == 0 {
			return nil
		}
		if err := s.merge(from, stop, commit); err != nil {
			return err
		}
	}
	return nil
}

// tier is the size of a file, in powers of four.
func tier(bytes int64) (n int) {
	for bytes > leastTier {
		bytes /= 4
		n++
	}
	return n
}

// plan returns the files of the next merge, none if there is nothing to do.
func (s *Local) plan() (from []*file) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tiers := make(map[int][]*file)
	sizes := make(map[int]int64)
	for _, f := range s.files {
		live, gone := s.live(f)
		switch {
		case live == 0:
			return []*file{f}
		case f.reader == nil:
		case gone > live:
			return []*file{f}
		case f.Bytes < s.o.MaxFile/2:
			n := tier(f.Bytes)
			if len(tiers[n]) < maxMerge && sizes[n]+f.Bytes <= s.o.MaxFile {
				tiers[n] = append(tiers[n], f)
				sizes[n] += f.Bytes
			}
		}
	}
	for n := range 64 {
		if list := tiers[n]; len(list) >= mergeFiles || len(list) > 1 && sizes[n] > s.o.MaxFile/2 {
			return list
		}
	}
	return nil
}

// live returns how many events of a file may still be read, and how many are gone.
func (s *Local) live(f *file) (live, gone int64) {
	if f.reader == nil { // what it would have is missing as long as it would live
		for _, r := range f.Ranges {
			if info, ok := s.o.ByID(r.Bucket); ok && r.Last >= s.livesFrom(&info) {
				live++
			}
		}
		return live, 0
	}
	var info buckets.Info
	var ok bool
	from := int64(0)
	for i := range f.reader.Blocks {
		b := &f.reader.Blocks[i]
		if i == 0 || b.Bucket != info.ID {
			if info, ok = s.o.ByID(b.Bucket); !ok {
				info.ID = b.Bucket
			}
			from = s.livesFrom(&info)
		}
		if ok && b.Last >= from {
			live += b.Events
		} else {
			gone += b.Events
		}
	}
	for _, l := range f.reader.Lost {
		if info, ok := s.o.ByID(l.Bucket); ok && l.Last >= s.livesFrom(&info) {
			live++
		}
	}
	return live, gone
}

// errStopped ends a merge that is not committed.
var errStopped = errors.New("the merge was stopped")

func (s *Local) merge(from []*file, stop func() bool, commit func(Change) error) error {
	c := Change{}
	for _, f := range from {
		c.Remove = append(c.Remove, f.Number)
	}
	out, err := s.mergeInto(from, c.Remove, stop)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	if out != nil {
		c.Add = &out.File
	}
	if err := commit(c); err != nil {
		return err // whether it counts is not known: the next start knows, and the store ends
	}
	s.stats.merges.Add(1)
	var dead []*file
	s.mu.Lock()
	s.files = slices.DeleteFunc(s.files, func(f *file) bool { return slices.Contains(from, f) })
	if out != nil {
		s.add(out)
		s.stats.mergedBytes.Add(out.Bytes)
	}
	for _, f := range from {
		if f.dead = true; f.users == 0 {
			dead = append(dead, f)
		}
	}
	s.mu.Unlock()
	s.remove(dead)
	return nil
}

// mergeInto writes what lives of files into a new one, nil where nothing does.
func (s *Local) mergeInto(from []*file, numbers []uint64, stop func() bool) (*file, error) {
	if len(from) == 1 {
		if live, _ := s.live(from[0]); live == 0 {
			return nil, nil
		}
	}
	for i, f := range from {
		if err := f.reader.Acquire(); err != nil {
			release(from[:i])
			return nil, err
		}
	}
	defer release(from)
	w, err := s.create(s.o.TakeNumber())
	if err != nil {
		return nil, err
	}
	meta := eventfile.Meta{Replaces: numbers}
	if err := s.mergeBuckets(w, &meta, from, stop); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return s.finish(w, &meta)
}

func release(files []*file) {
	for _, f := range files {
		f.reader.Release()
	}
}

func (s *Local) mergeBuckets(w *eventfile.Writer, meta *eventfile.Meta, from []*file, stop func() bool) error {
	var all []uint64
	for _, f := range from {
		for _, r := range f.Ranges {
			all = append(all, r.Bucket)
		}
	}
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		info, ok := s.o.ByID(id)
		if !ok {
			continue
		}
		if stop() {
			return errStopped
		}
		written, err := s.copyTo(w, &info, nil, from)
		if err != nil {
			return err
		}
		if written {
			meta.Buckets = append(meta.Buckets, info)
		}
	}
	for _, f := range from {
		for _, l := range f.reader.Lost {
			s.addLost(w, l)
		}
	}
	return nil
}
