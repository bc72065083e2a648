package events

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/disk/eventfile"
)

// ErrSteps is the error of a Count with a step of less than 1 ns, or with more than MaxSteps.
var ErrSteps = errors.New("a count takes steps of at least 1 ns, and not too many")

// Steps are the counts of a range of time by steps: those of Store.Count.
type Steps struct {
	start, end int64 // of the range
	from       int64 // what is older counts nowhere: it has expired
	step       uint64
	counts     []int64
}

// NewSteps returns counts of zero for a range. What is older than from counts nowhere. The error
// wraps ErrSteps.
func NewSteps(start, end, from, step int64) (*Steps, error) {
	if step < 1 {
		return nil, fmt.Errorf("%w: a step of %d ns", ErrSteps, step)
	}
	s := &Steps{start: start, end: end, from: max(from, start), step: uint64(step)}
	if end <= start {
		return s, nil
	}
	n := (uint64(end-start)-1)/s.step + 1
	if n > MaxSteps {
		return nil, fmt.Errorf("%w: %d steps, at most %d", ErrSteps, n, MaxSteps)
	}
	s.counts = make([]int64, n)
	return s, nil
}

// Add counts one event.
func (s *Steps) Add(t int64) {
	if t >= s.from && t < s.end {
		s.counts[uint64(t-s.start)/s.step]++
	}
}

// AddMany counts n events of one step, which has a time.
func (s *Steps) AddMany(t, n int64) {
	if t = max(t, s.start); t < s.end {
		s.counts[uint64(t-s.start)/s.step] += n
	}
}

// Counts returns the count of each step.
func (s *Steps) Counts() []int64 { return s.counts }

// addAll counts n events from first to last and reports true, where one step has all or none of
// them.
func (s *Steps) addAll(first, last, n int64) bool {
	if last < s.from || first >= s.end {
		return true
	}
	if first < s.from || last >= s.end || uint64(first-s.start)/s.step != uint64(last-s.start)/s.step {
		return false
	}
	s.counts[uint64(first-s.start)/s.step] += n
	return true
}

// Count implements Store. Of a block it reads nothing where one step has all of its events, and
// only the times where several have.
func (s *Local) Count(ctx context.Context, bucket string, start, end,
	step int64) ([]int64, []Gap, error) {
	info, err := s.o.Bucket(bucket)
	if err != nil {
		return nil, nil, err
	}
	st, err := NewSteps(start, end, s.o.livesFrom(&info), step)
	if err != nil {
		return nil, nil, err
	}
	v, err := s.pin(info.ID, st.from, end)
	if err != nil {
		return nil, nil, err
	}
	defer s.unpin(v)
	s.mu.RLock()
	for _, t := range v.tables {
		t.count(info.ID, st)
	}
	s.mu.RUnlock()
	gaps := v.gaps(info.ID, st.from, end)
	var buf eventfile.Buffer
	for _, f := range v.files {
		from, past := f.reader.BlockRange(info.ID, st.from, end)
		for i := from; i < past; i++ {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			b := &f.reader.Blocks[i]
			if st.addAll(b.First, b.Last, b.Events) {
				continue
			}
			keys, err := s.keys(f, i, &buf)
			if err != nil {
				gaps = append(gaps, gapOf(b))
				continue
			}
			for j := range keys {
				st.Add(keys[j].Time)
			}
		}
	}
	return st.counts, ordered(gaps), nil
}

// Extent implements Store.
func (s *Local) Extent(bucket string, start, end int64) (x Extent, err error) {
	info, err := s.o.Bucket(bucket)
	if err != nil {
		return x, err
	}
	start = max(start, s.o.livesFrom(&info), 1)
	if start >= end {
		return x, nil
	}
	whole, err := NewSteps(start, end, start, end-start)
	if err != nil {
		return x, err
	}
	v, err := s.pin(info.ID, start, end)
	if err != nil {
		return x, err
	}
	defer s.unpin(v)
	s.mu.RLock()
	for _, t := range v.tables {
		t.count(info.ID, whole)
	}
	s.mu.RUnlock()
	x.InMemory = whole.counts[0]
	for _, f := range v.files {
		from, past := f.reader.BlockRange(info.ID, start, end)
		if from < past {
			x.Files++
		}
		for i := from; i < past; i++ {
			x.Blocks++
			x.Bytes += f.reader.Blocks[i].Bytes()
		}
	}
	return x, nil
}
