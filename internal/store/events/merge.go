package events

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/host/background"
	"dalmatiner/internal/model/buckets"
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

// Merger merges the files of a Local. Its methods may be called concurrently.
type Merger struct {
	s *Local

	merging sync.Mutex // one merge at a time
	want    chan struct{}

	work          *background.Work
	merges, bytes atomic.Int64
}

func newMerger(s *Local) *Merger {
	return &Merger{s: s, want: make(chan struct{}, 1), work: background.New(s.o.Yields)}
}

// Bytes returns the memory of a merge under way: a block of each file, and those of the one that it
// writes.
func (m *Merger) Bytes() int64 { return m.work.Bytes() }

// mergeEvery is how often files are looked at without having been asked to: for what has expired,
// and for what a merge that failed has left.
const mergeEvery = time.Minute

// Run merges whenever that is wanted, until stop is closed.
func (m *Merger) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-stop
		cancel()
	}()
	t := time.NewTicker(mergeEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-m.want:
		case <-t.C:
		}
		if err := m.Merge(ctx); err != nil && ctx.Err() == nil {
			m.s.o.Logger.Warn("files of events stay as they are until the next try", "err", err)
		}
	}
}

// Want asks Run for a look at the files.
func (m *Merger) Want() {
	select {
	case m.want <- struct{}{}:
	default: // one is wanted already
	}
}

// Merge merges files of about one size, drops expired events and events of deleted buckets, and
// removes files of which nothing is left, until nothing is to do. It yields to points.
func (m *Merger) Merge(ctx context.Context) error {
	m.merging.Lock()
	defer m.merging.Unlock()
	for !m.s.o.Stopped() {
		from := m.plan()
		if len(from) == 0 {
			return nil
		}
		if err := m.merge(ctx, from); err != nil {
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
func (m *Merger) plan() (from []*file) {
	s := m.s
	s.mu.RLock()
	defer s.mu.RUnlock()
	tiers := make(map[int][]*file)
	sizes := make(map[int]int64)
	for _, f := range s.files {
		live, gone := s.o.live(f)
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
func (o *Options) live(f *file) (live, gone int64) {
	if f.reader == nil { // what it would have is missing as long as it would live
		for _, r := range f.Ranges {
			if info, ok := o.ByID(r.Bucket); ok && r.Last >= o.livesFrom(&info) {
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
			if info, ok = o.ByID(b.Bucket); !ok {
				info.ID = b.Bucket
			}
			from = o.livesFrom(&info)
		}
		if ok && b.Last >= from {
			live += b.Events
		} else {
			gone += b.Events
		}
	}
	for _, l := range f.reader.Lost {
		if info, ok := o.ByID(l.Bucket); ok && l.Last >= o.livesFrom(&info) {
			live++
		}
	}
	return live, gone
}

// errStopped ends a merge that is not committed.
var errStopped = errors.New("the merge was stopped")

func (m *Merger) merge(ctx context.Context, from []*file) error {
	s := m.s
	var c manifest.FileChanges
	for _, f := range from {
		c.Remove = append(c.Remove, f.Name())
	}
	out, err := m.mergeInto(ctx, from)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	if out != nil {
		c.Add = []manifest.File{out.File}
	}
	if err := s.o.Commit(c); err != nil {
		if errors.Is(err, manifest.ErrUnwritten) && out != nil {
			s.remove([]*file{out})
		}
		return err // of another error it is not known whether it counts: the next start knows
	}
	m.merges.Add(1)
	var dead []*file
	s.mu.Lock()
	s.files = slices.DeleteFunc(s.files, func(f *file) bool { return slices.Contains(from, f) })
	if out != nil {
		s.add(out)
		m.bytes.Add(out.Bytes)
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
func (m *Merger) mergeInto(ctx context.Context, from []*file) (*file, error) {
	s := m.s
	if len(from) == 1 {
		if live, _ := s.o.live(from[0]); live == 0 {
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
	var meta eventfile.Meta
	for _, f := range from {
		meta.Replaces = append(append(meta.Replaces, f.Seq), f.reader.Meta.Replaces...)
		if said := &f.reader.Meta; said.Position > meta.Position {
			meta.Position, meta.Account = said.Position, said.Account
		}
	}
	slices.Sort(meta.Replaces) // an old MANIFEST may name any of them
	meta.Replaces = slices.Compact(meta.Replaces)
	if err := m.mergeBuckets(ctx, w, &meta, from); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return s.finish(w, &meta)
}

func release(files []*file) {
	for _, f := range files {
		f.reader.Release()
	}
}

func (m *Merger) mergeBuckets(ctx context.Context, w *eventfile.Writer, meta *eventfile.Meta,
	from []*file) error {
	s := m.s
	var all []uint64
	for _, f := range from {
		for _, r := range f.Ranges {
			all = append(all, r.Bucket)
		}
	}
	slices.Sort(all)
	turn := m.work.Begin()
	defer turn.End()
	yield := func(held int64) error {
		turn.Hold(held)
		if s.o.Stopped() {
			return errStopped
		}
		return turn.Yield(ctx)
	}
	for _, id := range slices.Compact(all) {
		info, ok := s.o.ByID(id)
		if !ok {
			continue
		}
		written, err := s.copyTo(w, &info, nil, from, yield)
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
