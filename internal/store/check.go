package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/durable"
	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
)

// Operations are what an operator asks of a running store. Its methods may be
// called concurrently.
type Operations struct {
	s         *Store
	checking  sync.Mutex // one check at a time
	snapshots sync.Mutex // one change of the snapshots at a time; taken before flushMu
}

// NewOperations returns the operations of a store. There should be one.
func NewOperations(s *Store) *Operations { return &Operations{s: s} }

// ErrBusy is returned while another call of the same kind is under way.
var ErrBusy = errors.New("another one is under way")

// ErrNoStore is wrapped by the error for a directory that holds no store.
var ErrNoStore = errors.New("no Dalmatiner store")

// MaxCheckDamage bounds the list of a report: the count goes on.
const MaxCheckDamage = 1000

// Damage is a place that is not what was written, or that cannot be read.
type Damage struct {
	File     string `json:"file"`   // relative to the data directory
	Offset   int64  `json:"offset"` // bytes; 0 where Part is not a range of bytes
	Length   int64  `json:"length,omitempty"`
	Part     string `json:"part"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// String is one line: file, place, and what is wrong there.
func (d Damage) String() string {
	text := fmt.Sprintf("%s: offset %d", d.File, d.Offset)
	if d.Length > 0 {
		text += fmt.Sprintf(", %d bytes", d.Length)
	}
	text += ", " + d.Part
	if d.Expected != "" || d.Found != "" {
		text += fmt.Sprintf(": expected %s, found %s", d.Expected, d.Found)
	}
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	return text
}

// CheckOptions says how a check reads.
type CheckOptions struct {
	Rate     int64               // bytes per second, 0 = as fast as possible
	Progress func(CheckProgress) // called before every file, by the caller's goroutine
	Now      func() time.Time    // nil = time.Now; tells what has expired
}

// CheckProgress is how far a check is.
type CheckProgress struct {
	File       string `json:"file"` // that comes next
	Files      int64  `json:"files"`
	TotalFiles int64  `json:"total_files"`
	Bytes      int64  `json:"bytes"` // read
	Damaged    int64  `json:"damaged"`
}

// CheckReport is what a check looked at and what it found.
type CheckReport struct {
	Dir     string `json:"dir"`
	Online  bool   `json:"online"`
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"` // read
	Blocks  int64  `json:"blocks"`
	Chunks  int64  `json:"chunks"`
	Points  int64  `json:"points"`
	Series  int64  `json:"series"`  // of the catalogue
	Again   int64  `json:"again"`   // of these, begun again after a deletion
	Records int64  `json:"records"` // of the log

	Deletions  int64 `json:"deletions"`  // of series that segments still hold something of
	Remembered int64 `json:"remembered"` // of others, kept so that no old copy brings the series back

	TookUS int64 `json:"took_us"`

	Damaged  int64    `json:"damaged"`
	Damages  []Damage `json:"damages"` // the first MaxCheckDamage
	Expected []Damage `json:"expected"`
}

// checker is a check under way.
type checker struct {
	fs     inspectFS
	dir    string
	opts   CheckOptions
	report CheckReport
	seen   map[Damage]bool // by place

	live     *Store // of an online check
	state    *manifest.State
	buckets  map[uint64]bool
	names    []metric.SeriesID // of the catalogue, each as an id of values, sorted
	lives    incarnation.Set   // of these
	named    bool              // names holds them all
	older    map[uint64]bool   // segments that were committed before names was read
	progress CheckProgress

	graves    map[uint64]version.Tombstones // of the MANIFEST, by bucket
	forgotten map[metric.SeriesID]bool      // by records that no flush has committed
	nameless  map[metric.SeriesID]bool      // have chunks, and no name in the catalogue
	unlisted  []unlisted
}

// unlisted is a name in a segment that the catalogue does not have.
type unlisted struct {
	file string
	hash segment.Hash
}

// Check verifies every committed file of the running store: every block, every
// chunk with its aggregates against recomputation (I4), the MANIFEST, the log
// and the catalogue. It holds no lock while it reads. Damage is in the report
// and counted like damage met by a reader. The error is that of ctx, or ErrBusy.
func (op *Operations) Check(ctx context.Context, o CheckOptions) (CheckReport, error) {
	if !op.checking.TryLock() {
		return CheckReport{}, fmt.Errorf("check: %w", ErrBusy)
	}
	defer op.checking.Unlock()
	s := op.s
	c := newChecker(ctx, s.o.FS, s.o.Dir, o)
	c.live = s
	c.report.Online = true
	r, err := c.run()
	for _, d := range r.Damages {
		s.reportDamage("check", errors.New(d.String()))
	}
	return r, err
}

// CheckDir verifies the data directory or snapshot dir, which no process may
// have open, and changes nothing in it. The error is that of ctx, of the lock,
// or wraps ErrNoStore.
func CheckDir(ctx context.Context, fs vfs.FS, dir string, o CheckOptions) (r CheckReport, err error) {
	c := newChecker(ctx, fs, dir, o)
	names, err := fs.List(dir)
	if oserror.IsPermission(err) {
		return c.report, fmt.Errorf("%s cannot be read: %w: run this as the user that owns it", dir, err)
	}
	if err != nil {
		return c.report, fmt.Errorf("%w in %s: %w", ErrNoStore, dir, err)
	}
	if !datadir.IsStore(names) {
		return c.report, fmt.Errorf("%w in %s: name a data directory or a snapshot", ErrNoStore, dir)
	}
	lock, err := c.fs.Lock(c.path(datadir.Lock))
	if err != nil {
		return c.report, fmt.Errorf("%s is in use by %s (check a running node without --data-dir): %w", dir, durable.HolderOf(c.path(datadir.Lock)), err)
	}
	r, err = c.run()
	return r, errors.Join(err, lock.Close())
}

func newChecker(ctx context.Context, fs vfs.FS, dir string, o CheckOptions) *checker {
	if o.Progress == nil {
		o.Progress = func(CheckProgress) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &checker{
		fs: inspectFS{fs, &pace{ctx: ctx, rate: o.Rate}}, dir: dir, opts: o, seen: make(map[Damage]bool),
		graves: make(map[uint64]version.Tombstones), forgotten: make(map[metric.SeriesID]bool), nameless: make(map[metric.SeriesID]bool),
		report: CheckReport{Dir: dir, Damages: []Damage{}, Expected: []Damage{}},
	}
}

func (c *checker) path(elem ...string) string {
	return c.fs.PathJoin(append([]string{c.dir}, elem...)...)
}

func (c *checker) run() (CheckReport, error) {
	start := time.Now()
	c.begin(datadir.Version)
	c.checkVersion()
	// The catalogue comes before the MANIFEST for a running store's sake: what
	// is deleted in between is then known to be gone when it is missed. What is
	// committed in between has names that the catalogue did not have yet.
	c.noteOlder()
	c.begin(datadir.Catalogue)
	c.checkCatalogue()
	c.begin(manifest.FirstName)
	c.checkManifest()
	c.begin(datadir.WAL)
	c.checkLog()
	c.checkSegments()
	c.report.Bytes = c.fs.pace.bytes.Load()
	c.report.TookUS = time.Since(start).Microseconds()
	return c.report, c.fs.pace.ctx.Err()
}

// begin reports progress.
func (c *checker) begin(file string) {
	c.progress.File = file
	c.progress.Files, c.progress.Bytes, c.progress.Damaged = c.report.Files, c.fs.pace.bytes.Load(), c.report.Damaged
	c.opts.Progress(c.progress)
}

// damaged adds a place to the report, once.
func (c *checker) damaged(d Damage) {
	if c.fs.pace.ctx.Err() != nil {
		return // what failed is the check
	}
	if c.seen[d] {
		return
	}
	c.seen[d] = true
	c.report.Damaged++
	if len(c.report.Damages) < MaxCheckDamage {
		c.report.Damages = append(c.report.Damages, d)
	}
}

// unreadable adds a file that the disk does not give.
func (c *checker) unreadable(file string, err error) {
	c.damaged(Damage{File: file, Part: "file", Detail: "cannot be read: " + err.Error()})
}

// expected adds what a crash leaves and a start puts right.
func (c *checker) expected(d Damage) {
	if len(c.report.Expected) < MaxCheckDamage {
		c.report.Expected = append(c.report.Expected, d)
	}
}

func (c *checker) checkVersion() {
	text, err := durable.ReadFile(c.fs, c.path(datadir.Version))
	want := datadir.VersionText()
	switch {
	case oserror.IsNotExist(err):
		c.damaged(Damage{File: datadir.Version, Part: "file", Expected: fmt.Sprintf("%q", want), Found: "no file"})
		return
	case err != nil:
		c.unreadable(datadir.Version, err)
		return
	}
	c.report.Files++
	if string(text) != want {
		c.damaged(Damage{File: datadir.Version, Length: int64(len(text)), Part: "file",
			Expected: fmt.Sprintf("%q", want), Found: fmt.Sprintf("%.40q", text)})
	}
}

// noteOlder notes the segments all of whose names the catalogue holds from now
// on: it takes them before the MANIFEST does. Damage is for checkManifest.
func (c *checker) noteOlder() {
	c.older = make(map[uint64]bool)
	if state, _, err := manifest.Inspect(c.fs, c.dir); err == nil && state != nil {
		for i := range state.Segments {
			c.older[state.Segments[i].Seq] = true
		}
	}
}

func (c *checker) checkManifest() {
	state, report, err := manifest.Inspect(c.fs, c.dir)
	c.state = state
	switch {
	case oserror.IsNotExist(err):
		c.damaged(Damage{File: manifest.FirstName, Part: "file", Expected: "a MANIFEST", Found: "no file"})
	case err != nil:
		c.unreadable(manifest.FirstName, err)
	default:
		c.report.Files++
	}
	if state == nil {
		c.state = &manifest.State{Suspect: true}
	}
	for _, p := range report.Damaged {
		c.damaged(Damage{File: p.File, Offset: p.Offset, Length: p.Bytes, Part: "edit", Detail: p.Reason})
	}
	for _, what := range report.Lost {
		c.damaged(Damage{File: manifest.FirstName, Part: "edits", Detail: "lost in both copies: " + what})
	}
	for _, p := range report.Torn {
		// Beside a running store this is a commit under way.
		if c.live == nil {
			c.expected(Damage{File: p.File, Offset: p.Offset, Length: p.Bytes, Part: "torn end", Detail: p.Reason})
		}
	}
	if c.live == nil {
		c.planStart()
	}
	c.buckets = make(map[uint64]bool, len(c.state.Buckets))
	for _, b := range c.state.Buckets {
		c.buckets[b.ID] = true
		c.graves[b.ID] = version.FromManifest(b.ID, c.state.Tombstones)
		c.report.Deletions += int64(len(c.graves[b.ID]))
	}
	c.report.Remembered = seriesIn(c.state.Remembered)
	c.checkHoles()
}

// checkCatalogue reads all names.
func (c *checker) checkCatalogue() {
	take := func(e segment.Series) error {
		if len(e.Key) == 0 {
			return nil // the place of a column whose series is gone
		}
		id, ok := identity(&e)
		if !ok {
			c.damaged(Damage{File: datadir.Catalogue, Part: "series " + metric.Text(e.Key),
				Expected: "hash " + segment.Hash(id).String(), Found: e.Hash.String()})
		}
		c.names = append(c.names, metric.SeriesID(e.Hash).Value())
		c.lives.Raise(metric.SeriesID(e.Hash).Value(), e.Incarnation)
		return nil
	}
	if c.live != nil {
		err := c.live.catalogue.Load(take)
		if err != nil {
			c.unreadable(datadir.Catalogue, err)
		}
		c.named = err == nil
	} else {
		c.named = c.checkClosedCatalogue(take)
	}
	c.report.Series = int64(len(c.names))
	c.report.Again = c.lives.Len()
	slices.SortFunc(c.names, compareIDs)
}

func (c *checker) checkClosedCatalogue(take func(segment.Series) error) (whole bool) {
	dir := c.path(datadir.Catalogue)
	if _, err := c.fs.Stat(dir); oserror.IsNotExist(err) {
		c.damaged(Damage{File: datadir.Catalogue, Part: "directory", Found: "none", Expected: "a catalogue",
			Detail: "it is rebuilt from the segments at the next start"})
		return false
	}
	generation, found, err := catalogue.Inspect(c.fs, dir, slog.New(slog.DiscardHandler), take)
	if err != nil {
		c.unreadable(datadir.Catalogue, err)
	}
	for _, d := range found {
		file := c.fs.PathJoin(datadir.Catalogue, d.File)
		if d.File == datadir.Catalogue {
			file = datadir.Catalogue
		}
		c.damaged(Damage{File: file, Part: "table", Detail: d.Err.Error()})
	}
	whole = err == nil && len(found) == 0
	if names, err := c.fs.List(dir); err == nil {
		c.report.Files += int64(len(names))
	}
	// The MANIFEST is read again further on, where its damage is reported.
	state, _, err := manifest.Inspect(c.fs, c.dir)
	if !whole || err != nil {
		return whole
	}
	if at := state.Catalogue &^ catalogue.NamesUnread; generation+1 < at {
		c.damaged(Damage{File: datadir.Catalogue, Part: "generation", Expected: fmt.Sprint(at - 1), Found: fmt.Sprint(generation),
			Detail: "names of series are lost; it is rebuilt from the segments at the next start"})
		return false
	}
	if state.Catalogue&catalogue.NamesUnread != 0 {
		c.damaged(Damage{File: datadir.Catalogue, Part: "series", Expected: "all that segments name",
			Detail: "the device did not give some of the names when it was rebuilt; the next start looks for them again"})
		return false
	}
	return whole
}

// identity returns the id that a name has, and whether it is the one noted with
// it: in a bucket with timestamps that of the values.
func identity(e *segment.Series) (metric.SeriesID, bool) {
	id, noted := metric.Series(e.Bucket, e.Key), metric.SeriesID(e.Hash)
	return id, noted == id || noted == id.Value()
}

// hasName says whether the catalogue names a series. Values and timestamps have one
// name, so that names are kept under the id of values.
func (c *checker) hasName(id metric.SeriesID) bool {
	_, ok := slices.BinarySearchFunc(c.names, id.Value(), compareIDs)
	return ok
}

// buried says whether a series was deleted after a segment was written that is
// clean of what was deleted before.
func (c *checker) buried(bucket uint64, h segment.Hash, clean uint64) bool {
	var now version.Tombstones // of a running store
	if c.live != nil {
		now = c.live.tombs(bucket)
	}
	id := metric.SeriesID(h)
	for _, id := range []metric.SeriesID{id, id.Value()} { // in a bucket with timestamps the latter
		if c.forgotten[id] || clean < max(c.graves[bucket].DeleteSequence(id), now.DeleteSequence(id)) {
			return true
		}
	}
	return false
}

// alive says whether a bucket is there to have series.
func (c *checker) alive(bucket uint64) bool {
	if c.live != nil {
		return c.live.buckets.ID(bucket) != nil
	}
	return c.buckets[bucket]
}
