package events

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"log/slog"
	"sync"
	"time"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/eventfile"
	"dalmatiner/internal/wal"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Log is the log of the node together with the account of events.
type Log interface {
	// AppendEvents appends the record head + body and calls apply with its position, in one moment
	// of a flush.
	AppendEvents(head, body []byte, apply func(lsn wal.LSN)) error
	// RefuseEvents enters counts of events that were not stored into log and account. The position
	// is 0 where the record is to come.
	RefuseEvents(bucket uint64, c *account.Counts) (wal.LSN, error)
}

// Options are what a Local works with.
type Options struct {
	FS     vfs.FS
	Dir    string // of the files
	Logger *slog.Logger
	Now    func() int64 // in nanoseconds since 1970; cheap

	MaxFuture time.Duration // events further ahead are refused
	MaxFile   int64         // bytes; larger files are not merged with others

	// TakeNumber gives the number of a file. None is given twice.
	TakeNumber func() uint64

	// Bucket returns a bucket by its name, or an error that wraps buckets.ErrUnknown. ByID returns
	// one by its id; ok is false for a deleted one.
	Bucket func(name string) (buckets.Info, error)
	ByID   func(id uint64) (info buckets.Info, ok bool)

	// Inside holds what fn does inside a moment of a flush: Capture is not called during it.
	Inside  func(fn func() error) error
	Log     Log
	Account *account.Account // of events

	Wait     func()            // holds a sender back
	DiskFull func() bool       // events are refused
	Pending  func(bytes int64) // counts bytes that wait for a flush, or no longer do

	Damage func(what string, err error) // takes damage that was found

	// Random gives the ids of events their first half; nil is that of the system.
	Random io.Reader
}

// Local is the store of events of one data directory.
//
// Lock order: that of merges, the moment of a flush (Options.Inside), writing, mu.
type Local struct {
	o Options

	writing sync.Mutex // one write at a time: the log has events in the order of the tables
	ids     givenIDs

	mu        sync.RWMutex
	active    *table   // takes events
	frozen    []*table // wait for a flush, or are being flushed
	files     []*file  // in ascending order of their numbers
	newest    map[uint64]int64
	followers map[uint64][]*Follower
	epoch     uint64 // grows when events move from tables to a file
	closed    bool

	merging sync.Mutex // one merge at a time
	stats   counters
}

// New returns a store without events. Load and Replay give it what there is.
func New(o Options) (*Local, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	s := &Local{o: o, active: newTable(), newest: make(map[uint64]int64), followers: make(map[uint64][]*Follower)}
	_, err := io.ReadFull(o.Random, s.ids.prefix[:])
	return s, err
}

// givenIDs are ids that no other event has: the first half is drawn by chance at a start, and the
// second counts. So events of one time keep the order of their coming, and ids take little room in
// files.
type givenIDs struct {
	prefix [8]byte
	count  uint64
}

func (g *givenIDs) next() (id ID) {
	g.count++
	copy(id[:], g.prefix[:])
	binary.BigEndian.PutUint64(id[8:], g.count)
	return id
}

// Close ends all reads that begin from now on, and all live tails. What is in memory stays in the
// log.
func (s *Local) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, list := range s.followers {
		for _, f := range list {
			f.end(ErrClosed)
		}
	}
	s.followers = make(map[uint64][]*Follower)
}

// Follow implements Store.
func (s *Local) Follow(bucket string, bytes int) (*Follower, error) {
	info, err := s.o.Bucket(bucket)
	if err != nil {
		return nil, err
	}
	f := newFollower(bytes, func(f *Follower) { s.leave(info.ID, f) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.followers[info.ID] = append(s.followers[info.ID], f)
	if _, ok := s.o.ByID(info.ID); !ok { // deleted meanwhile: DeleteBucket may have been before us
		f.end(buckets.Unknown(bucket))
	}
	return f, nil
}

func (s *Local) leave(bucket uint64, f *Follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.followers[bucket]
	for i := range list {
		if list[i] == f {
			// A new slice: a write may be walking through the old one.
			s.followers[bucket] = append(append([]*Follower(nil), list[:i]...), list[i+1:]...)
		}
	}
	if len(s.followers[bucket]) == 0 {
		delete(s.followers, bucket)
	}
}

// DeleteBucket drops the events of a bucket that is not there any more. Files lose theirs when
// they are merged; nobody reads them until then.
func (s *Local) DeleteBucket(id uint64, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range append([]*table{s.active}, s.frozen...) {
		t.drop(id)
	}
	delete(s.newest, id)
	for _, f := range s.followers[id] {
		f.end(buckets.Unknown(name))
	}
	delete(s.followers, id)
}

// Stats is the state of a store, and its counters since the start.
type Stats struct {
	Files, FileBytes, FileEvents int64 // committed
	MemoryEvents, MemoryBytes    int64 // that wait for a flush
	IndexBytes                   int64 // memory of the indexes of files
	Followers                    int64
	Merges, MergedBytes          int64
}

// Stats returns the state.
func (s *Local) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{Merges: s.stats.merges.Load(), MergedBytes: s.stats.mergedBytes.Load()}
	for _, f := range s.files {
		st.Files++
		st.FileBytes += f.Bytes
		for _, r := range f.Ranges {
			st.FileEvents += r.Events
		}
		if f.reader != nil {
			st.IndexBytes += f.reader.Memory()
		}
	}
	for _, t := range append([]*table{s.active}, s.frozen...) {
		st.MemoryEvents += t.events
		st.MemoryBytes += t.bytes
	}
	for _, list := range s.followers {
		st.Followers += int64(len(list))
	}
	return st
}

// Memory returns the bytes of events in memory and of the indexes of files.
func (s *Local) Memory() int64 {
	st := s.Stats()
	return st.MemoryBytes + st.IndexBytes
}

// Load takes the committed files, in ascending order of their numbers. readers has those that can be
// used. It is called once, before anything else.
func (s *Local) Load(files []File, readers map[uint64]*eventfile.Reader) {
	for _, f := range files {
		s.add(&file{File: f, reader: readers[f.Number]})
	}
}

// add adds a file. Under the lock, or before the store is in use.
func (s *Local) add(f *file) {
	s.files = append(s.files, f)
	for _, r := range f.Ranges {
		s.newest[r.Bucket] = max(s.newest[r.Bucket], r.Last)
	}
}
