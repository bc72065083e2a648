package events

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Log is the log of the node together with the account of events.
type Log interface {
	// AppendHeaded calls fn in one moment of a flush, with what appends the record head + body to the
	// log. Capture is not called during it.
	AppendHeaded(fn func(put func(head, body []byte) (wal.LSN, error)) error) error
	// RefuseEvents enters counts of events that were not stored into log and account. The position
	// is 0 where the record is to come.
	RefuseEvents(bucket uint64, c *account.Counts) (wal.LSN, error)
}

// Options are what a Local works with.
type Options struct {
	FS     vfs.FS
	Dir    string // the data directory
	Of     origin.Directory
	Logger *slog.Logger
	Now    func() int64 // in nanoseconds since 1970; cheap

	MaxFuture time.Duration // events further ahead get the time of arrival
	MaxFile   int64         // bytes; larger files are not merged with others

	// TakeNumber gives the number of a file. None is given twice.
	TakeNumber func() uint64

	// Bucket returns a bucket by its name, or an error that wraps buckets.ErrUnknown. ByID returns
	// one by its id; ok is false for a deleted one.
	Bucket func(name string) (buckets.Info, error)
	ByID   func(id uint64) (info buckets.Info, ok bool)

	Log     Log
	Account *account.Account // of events

	Wait     func()            // holds a sender back
	DiskFull func() bool       // events are refused
	Pending  func(bytes int64) // counts bytes that wait for a flush, or no longer do

	Damage func(what string, err error) // takes damage that was found

	// Memory lends what reads hold of files; nil lends everything.
	Memory *memory.Leases

	// Yields reports whether merges have to make way for points now, as in background.New.
	Yields func(busy bool) bool

	// Commit makes an edit of a merge permanent. An error that wraps manifest.ErrUnwritten says that
	// it does not count. Merges end when Stopped says so.
	Commit  func(manifest.FileChanges) error
	Stopped func() bool

	// Random gives the ids of events their first half; nil is that of the system.
	Random io.Reader
}

// Local is the store of events of one data directory.
//
// Lock order: that of Merger, the moment of a flush (Log.AppendHeaded), writing, mu.
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

	counted    uint64              // the account of a start holds all records of the log below it
	incomplete bool                // a file is missing or damaged: the log may still have what it had
	missing    []manifest.LostFile // that no flush has noted
	back       []manifest.FileName // likewise: were missing

	missed atomic.Int64 // by followers
	ahead  atomic.Int64 // events that were too far ahead

	flushing flushing // by the goroutine that flushes

	Merger *Merger // of its files
}

// New returns a store without events. Load and Replay give it what there is.
func New(o Options) (*Local, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	s := &Local{
		o:         o,
		active:    newTable(),
		newest:    make(map[uint64]int64),
		followers: make(map[uint64][]*Follower),
	}
	_, err := io.ReadFull(o.Random, s.ids.prefix[:])
	s.Merger = newMerger(s)
	return s, err
}

// Account returns the account of events: rows and reasons are those of points. Conflicting and
// Unset are always zero.
func (s *Local) Account() *account.Account { return s.o.Account }

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
	f := newFollower(bytes, &s.missed, func(f *Follower) { s.leave(info.ID, f) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.followers[info.ID] = append(s.followers[info.ID], f)
	if _, ok := s.o.ByID(info.ID); !ok { // deleted meanwhile: DeleteBucket may have been before us
		f.end(buckets.UnknownError(bucket))
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
		f.end(buckets.UnknownError(name))
	}
	delete(s.followers, id)
}

// Stats is the state of a store, and its counters since the start.
type Stats struct {
	Files, FileBytes, FileEvents int64 // committed
	MemoryEvents, MemoryBytes    int64 // that wait for a flush
	IndexBytes                   int64 // memory of the indexes of files
	Followers                    int64
	Missed                       int64 // by followers, which did not take events as fast as they came
	Ahead                        int64 // that were too far ahead, and have the time of arrival
	Merges, MergedBytes          int64
}

// Stats returns the state.
func (s *Local) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{
		Merges:      s.Merger.merges.Load(),
		MergedBytes: s.Merger.bytes.Load(),
		Missed:      s.missed.Load(),
		Ahead:       s.ahead.Load(),
	}
	for _, f := range s.files {
		st.Files++
		st.FileBytes += f.Bytes
		for _, r := range f.Ranges {
			st.FileEvents += r.Items
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

// IndexBytes returns the memory of the indexes of files.
func (s *Local) IndexBytes() int64 { return s.Stats().IndexBytes }

// Load opens the committed files and takes the newest account that there is. What lost files had is
// a gap of every answer, and the next flush notes it. taken says that there are files not named in
// the MANIFEST: the log may have events that are in none. It is called once, before anything else.
// Damage is reported; the error is that of a device.
func (s *Local) Load(state *manifest.State, taken bool) error {
	s.incomplete = taken
	replaced := make(map[uint64]bool)
	counts := state.EventAccount
	s.counted = state.EventAccountLSN
	for _, f := range state.Files {
		if f.Kind != manifest.EventFile {
			continue
		}
		r, err := s.open(&f)
		if err != nil {
			return err
		}
		if r == nil {
			s.incomplete = true
		} else {
			for _, number := range r.Meta.Replaces {
				replaced[number] = true
			}
			if r.Meta.Position > s.counted { // edits of the MANIFEST were lost
				s.counted, counts = r.Meta.Position, r.Meta.Account
			}
		}
		s.add(&file{File: f, reader: r})
	}
	if counts != nil {
		if err := s.o.Account.Restore(counts); err != nil {
			s.o.Damage("account of events", err)
		}
	}
	// Where edits of the MANIFEST were lost, a merge may be there beside what it has replaced.
	s.files = slices.DeleteFunc(s.files, func(f *file) bool { return replaced[f.Seq] })
	for _, f := range state.LostFiles {
		if f.Kind != manifest.EventFile {
			continue
		}
		if state.HasFile(f.FileName) { // it is back
			s.back = append(s.back, f.FileName)
			if f.Noted {
				s.o.Account.Recover(LostFile, uint64(f.Items))
			}
			continue
		}
		if f.Noted {
			continue
		}
		s.incomplete = true
		s.missing = append(s.missing, f)
		s.o.Account.Lose(LostFile, uint64(f.Items))
		for _, r := range f.Ranges {
			s.active.lost = append(s.active.lost, eventfile.LostRange{
				Bucket: r.Bucket,
				First:  r.First,
				Last:   r.Last,
				Events: r.Items,
			})
		}
	}
	return nil
}

// LostFile is the cause under which the events of files that are missing are lost in the account.
const LostFile = "event_file_missing"

// open opens a file that counts, nil if it cannot be used.
func (s *Local) open(f *manifest.File) (*eventfile.Reader, error) {
	r, damage, err := eventfile.Open(s.o.FS, s.o.path(f.Seq), s.o.file(f.Seq))
	if err != nil && !eventfile.IsDamage(err) {
		return nil, fmt.Errorf("events: %w", err)
	}
	if err == nil {
		err = origin.CheckContent(f.Bytes, f.Sum, r.Bytes, r.File().Sum)
	}
	if err != nil {
		r = nil
		damage = append(damage, err)
	}
	for _, d := range damage {
		s.o.Damage(s.o.name(f.Seq), d)
	}
	return r, nil
}

// add adds a file. Under the lock, or before the store is in use.
func (s *Local) add(f *file) {
	s.files = append(s.files, f)
	for _, r := range f.Ranges {
		s.newest[r.Bucket] = max(s.newest[r.Bucket], r.Last)
	}
}
