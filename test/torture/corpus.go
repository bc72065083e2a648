package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"dalmatiner/test/torture/load"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// corpus is a directory with every kind of file: windows, overlays, flushes, and
// a log that no segment has, left by a kill. Rounds damage copies of it.
type corpus struct {
	dir    string
	older  string // a copy of it from before some of its merges, without its log
	book   *oracle.Book
	files  map[string]origin
	events map[string]eventSpan      // by file of events
	log    map[*oracle.Bucket]uint32 // the last write that a segment has
	logged uint32                    // the last event that a file has
	err    error
}

// eventSpan says which events a file may have, by their numbers.
type eventSpan struct{ after, upto uint32 }

// origin says which points a segment holds: of a flush, by their numbers; of
// others, by time.
type origin struct {
	after, upto map[*oracle.Bucket]uint32
	from, to    int64 // ms
}

// corpusFlags keep the order of everything in the hands of the corpus.
var corpusFlags = []string{
	"--set", "self_monitor=off", "--set", "merge.background=off", "--set", "wal.interval=5ms", "--set",
	"wal.max_size=16MB",
	"--set", "flush.interval=1d", "--set", "storage.min_free=0",
}

// perCorpus is how many rounds use copies of one corpus; its seed is theirs
// divided by this.
const perCorpus = 48

// corpora are those that were made last, by their salt: the node's own, and that of another node.
var corpora = map[uint32]*corpus{}

const (
	ownSalt = iota
	foreignSalt
)

// corpusOf makes the corpus of a seed, or returns the one that was made last.
func (r *round) corpusOf(seed uint64, salt uint32) *corpus {
	dir := filepath.Join(r.cfg.dir, fmt.Sprintf("corpus-%d-%d", seed, salt))
	last := corpora[salt]
	if last != nil && last.dir == dir && last.err == nil {
		return last
	}
	c := &corpus{
		dir:    dir,
		older:  dir + "-older",
		files:  map[string]origin{},
		events: map[string]eventSpan{},
	}
	_ = os.RemoveAll(c.dir) // left by an earlier attempt
	if last != nil {
		_ = os.RemoveAll(last.dir) // not needed any more
		_ = os.RemoveAll(last.older)
	}
	corpora[salt] = c
	c.err = c.make(r.cfg.bin, seed, load.Size{
		Series:  r.series(48) >> (2 * salt),
		Slots:   10080,
		Forever: true,
		Salt:    salt,
	})
	return c
}

// olderStage is behind which stage of a corpus it is copied.
const olderStage = 2

func (c *corpus) make(bin string, seed uint64, size load.Size) error {
	n, err := subject.Start(bin, c.dir, corpusFlags...)
	if err != nil {
		return err
	}
	defer n.Kill()
	l := load.New(seed, time.Now(), size)
	c.book = l.Book
	sent := c.sent()
	// rounds of the senders, then a flush, then a merge
	for i, stage := range []struct {
		lots         int
		flush, merge bool
	}{{150, true, false}, {140, true, true}, {60, true, true}, {20, true, true}, {30, true, false},
		{20, true, false}, {12, false, false}} {
		if err := l.Rounds(n, stage.lots); err != nil {
			return err
		}
		if !stage.flush {
			continue
		}
		if err := n.Flush(stage.merge); err != nil {
			return err
		}
		now := c.sent()
		if err := c.list(n, sent, now); err != nil {
			return err
		}
		if err := c.listEvents(); err != nil {
			return err
		}
		sent = now
		if i == olderStage {
			if err := copyWithoutLog(c.older, c.dir); err != nil {
				return err
			}
		}
	}
	c.log = sent
	if p := l.Problems(); len(p) > 0 {
		return fmt.Errorf("%v", p)
	}
	return nil
}

func (c *corpus) sent() map[*oracle.Bucket]uint32 {
	out := map[*oracle.Bucket]uint32{}
	for _, b := range c.book.Buckets {
		_, n := b.Lane.Counts()
		out[b] = uint32(n)
	}
	return out
}

// list notes what the new segments hold.
func (c *corpus) list(n *subject.Node, after, upto map[*oracle.Bucket]uint32) error {
	segments, err := n.Segments()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, s := range segments {
		there[s.File] = true
		if _, known := c.files[s.File]; known {
			continue
		}
		o := origin{from: s.From, to: s.To}
		if filepath.Dir(s.File) == "flush" {
			o.after, o.upto = after, upto
		}
		c.files[s.File] = o
	}
	for name := range c.files {
		if !there[name] {
			delete(c.files, name)
		}
	}
	return nil
}

// listEvents notes what the new files of events may hold: what no file had, and what files that
// went away have held.
func (c *corpus) listEvents() error {
	names, err := filepath.Glob(filepath.Join(c.dir, "events", "*"))
	if err != nil {
		return err
	}
	span := eventSpan{c.logged, c.book.Events.Sent()}
	there := map[string]bool{}
	for _, name := range names {
		there[filepath.Join("events", filepath.Base(name))] = true
	}
	for name, s := range c.events {
		if !there[name] {
			span.after = min(span.after, s.after)
			delete(c.events, name)
		}
	}
	for name := range there {
		if _, known := c.events[name]; !known {
			c.events[name] = span
		}
	}
	c.logged = span.upto
	return nil
}

// copyWithoutLog copies a directory of a node that does nothing, except its log, its catalogue and
// its lock.
func copyWithoutLog(to, from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == "wal" || path == "catalogue":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		case path == "LOCK":
			return nil
		}
		b, err := os.ReadFile(filepath.Join(from, path))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), b, 0o644)
	})
}

// lostEvents says of which events damage of a file may take the file; nil for none.
func (c *corpus) lostEvents(file, kind string) func(uint32) bool {
	span, ok := c.events[file]
	switch {
	case kind == "wal":
		return func(n uint32) bool { return n > c.logged }
	case !ok:
		return nil
	}
	return func(n uint32) bool { return n > span.after && n <= span.upto }
}

// targets lists the files of a directory that can be damaged, by kind.
func targets(dir string) (map[string][]string, error) {
	out := map[string][]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind := filepath.Dir(path)
		if kind == "." {
			kind = "VERSION"
			if name := filepath.Base(path); len(name) >= 8 && name[:8] == "MANIFEST" {
				kind = "MANIFEST"
			} else if name != "VERSION" {
				return nil
			}
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 {
			return err
		}
		if kind != "lost+found" {
			out[kind] = append(out[kind], path)
		}
		return nil
	})
	for _, list := range out {
		sort.Strings(list)
	}
	return out, err
}

const chunk = 720

// region is where damage of a file may have taken points. narrow is for blocks of
// data, which hold chunks and nothing else.
func (c *corpus) region(file, kind string, narrow bool) func(s *oracle.Series, slot int64) bool {
	switch o, ok := c.files[file]; {
	case kind == "wal":
		return c.reached(c.log, c.sent())
	case ok && o.after != nil:
		return c.written(o.after, o.upto, narrow)
	case ok:
		return func(s *oracle.Series, slot int64) bool {
			width := chunk * s.Bucket.Resolution
			ms := slot * s.Bucket.Resolution
			return ms >= o.from/width*width && ms < (o.to+width-1)/width*width
		}
	}
	return func(*oracle.Series, int64) bool { return false }
}

// written is the region of the writes with numbers in (after, upto]: the chunks
// they are in, or, where what is lost holds for ranges of series, all chunks of
// the bucket between the first and the last of them.
func (c *corpus) written(after, upto map[*oracle.Bucket]uint32, narrow bool) func(*oracle.Series,
	int64) bool {
	if narrow {
		return func(s *oracle.Series, slot int64) bool {
			return s.WrittenBetween(slot-slot%chunk, chunk, after[s.Bucket], upto[s.Bucket])
		}
	}
	spans := c.spans(after, upto)
	return func(s *oracle.Series, slot int64) bool {
		sp, ok := spans[s.Bucket]
		return ok && slot >= sp.lo && slot < sp.hi
	}
}

// reached is the region of writes that are in the log alone: where nothing is known of a record,
// the node hides what it may have overwritten, from an hour below the lowest slot on, or from an
// eighth of the distance to the highest one.
func (c *corpus) reached(after, upto map[*oracle.Bucket]uint32) func(*oracle.Series, int64) bool {
	spans := c.spans(after, upto)
	return func(s *oracle.Series, slot int64) bool {
		sp, ok := spans[s.Bucket]
		further := max(time.Hour.Milliseconds()/s.Bucket.Resolution,
			(s.Bucket.First+int64(s.Bucket.Slots)-sp.lo)/8)
		return ok && slot >= sp.lo-further
	}
}

type span struct{ lo, hi int64 }

// spans are the chunks between the first and the last write with a number in (after, upto].
func (c *corpus) spans(after, upto map[*oracle.Bucket]uint32) map[*oracle.Bucket]span {
	spans := map[*oracle.Bucket]span{}
	for _, b := range c.book.Buckets {
		for _, s := range b.Series {
			for at := b.First - b.First%chunk; at < b.First+int64(b.Slots); at += chunk {
				if !s.WrittenBetween(at, chunk, after[b], upto[b]) {
					continue
				}
				sp, ok := spans[b]
				if !ok {
					sp = span{at, at + chunk}
				}
				spans[b] = span{min(sp.lo, at), max(sp.hi, at+chunk)}
			}
		}
	}
	return spans
}
