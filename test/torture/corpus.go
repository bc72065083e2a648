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
	dir   string
	book  *oracle.Book
	files map[string]origin
	log   map[*oracle.Bucket]uint32 // the last write that a segment has
	err   error
}

// origin says which points a segment holds: of a flush, by their numbers; of
// others, by time.
type origin struct {
	after, upto map[*oracle.Bucket]uint32
	from, to    int64 // ms
}

// corpusFlags keep the order of everything in the hands of the corpus.
var corpusFlags = []string{
	"--set", "self_monitor=off", "--set", "merge.background=off", "--set", "wal.interval=5ms", "--set", "wal.max_size=16MB",
	"--set", "flush.interval=1d", "--set", "storage.min_free=0",
}

// perCorpus is how many rounds use copies of one corpus; its seed is theirs
// divided by this.
const perCorpus = 48

var corpora = struct {
	seed uint64
	c    *corpus
}{}

// corpusOf makes the corpus of a seed, or returns the one that was made last.
func (r *round) corpusOf(seed uint64) *corpus {
	if corpora.c != nil && corpora.seed == seed && corpora.c.err == nil {
		return corpora.c
	}
	c := &corpus{dir: filepath.Join(r.cfg.dir, fmt.Sprintf("corpus-%d", seed)), files: map[string]origin{}}
	_ = os.RemoveAll(c.dir) // left by an earlier attempt
	if corpora.c != nil {
		_ = os.RemoveAll(corpora.c.dir) // not needed any more
	}
	corpora.seed, corpora.c = seed, c
	c.err = c.make(r.cfg.bin, seed, r.series(48))
	return c
}

func (c *corpus) make(bin string, seed uint64, series int) error {
	n, err := subject.Start(bin, c.dir, corpusFlags...)
	if err != nil {
		return err
	}
	defer n.Kill()
	l := load.New(seed, time.Now(), load.Size{Series: series, Slots: 10080, Forever: true})
	c.book = l.Book
	sent := c.sent()
	// rounds of the senders, then a flush, then a merge
	for _, stage := range []struct {
		lots         int
		flush, merge bool
	}{{150, true, false}, {140, true, true}, {60, true, true}, {20, true, true}, {30, true, false}, {20, true, false}, {12, false, false}} {
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
		sent = now
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
		return c.written(c.log, c.sent(), false)
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
func (c *corpus) written(after, upto map[*oracle.Bucket]uint32, narrow bool) func(*oracle.Series, int64) bool {
	if narrow {
		return func(s *oracle.Series, slot int64) bool {
			return s.WrittenBetween(slot-slot%chunk, chunk, after[s.Bucket], upto[s.Bucket])
		}
	}
	type span struct{ lo, hi int64 }
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
	return func(s *oracle.Series, slot int64) bool {
		sp, ok := spans[s.Bucket]
		return ok && slot >= sp.lo && slot < sp.hi
	}
}
