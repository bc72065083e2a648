package main

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dalmatiner/test/torture/verify"
)

// stranger is a file that somebody puts into a directory at rest: an older one of it, one of
// another node, or an own one under the name of another one.
type stranger struct {
	from string // older, foreign, own
	kind string
	both bool // under the names of both copies
	over bool // under the name of an own file, else under a free one
}

// strangers are chosen by seeds in turn. Files of the log are left out, and so are older files of
// events and tags: those of a corpus are never merged.
var strangers = []stranger{
	{"foreign", "events", false, true}, {"older", "MANIFEST", true, true},
	{"foreign", "flush", false, true}, {"own", "tags", true, true},
	{"foreign", "MANIFEST", true, true}, {"older", "flush", false, false},
	{"foreign", "tags", true, true}, {"own", "events", false, true},
	{"foreign", "window", false, true}, {"older", "MANIFEST", false, true},
	{"foreign", "events", false, false}, {"foreign", "VERSION", false, true},
	{"own", "flush", false, true}, {"foreign", "MANIFEST", false, true},
	{"older", "overlay", false, false}, {"foreign", "overlay", false, true},
	{"foreign", "tags", false, true}, {"foreign", "flush", false, false},
	{"foreign", "tags", true, false}, {"older", "window", false, false},
	{"foreign", "catalogue", false, true}, {"own", "tags", false, true},
	{"foreign", "window", false, false},
}

// stale puts a stranger into a directory at rest. Nothing of it may be served. What the own file
// of its name had is lost, named and counted, and is back with the file; nothing else is missing.
// It lies in lost+found, unless it was an own file that nothing needs any more.
func stale(r *round) {
	c, all := r.atRest()
	foreign := r.corpusOf(r.seed/perCorpus, foreignSalt)
	if foreign.err != nil {
		r.violate("the corpus of another node: %v", foreign.err)
	}
	if r.bad {
		return
	}
	s := strangers[r.seed%uint64(len(strangers))]
	from := map[string]string{"older": c.older, "foreign": foreign.dir, "own": c.dir}[s.from]
	there, err := targets(from)
	if err != nil {
		r.violate("%v", err)
		return
	}
	name, as := s.choose(r.rng, there[s.kind], all[s.kind])
	if name == "" {
		return
	}
	b := r.readFrom(from, name)
	w := wound{
		kind:    s.kind,
		file:    as,
		both:    s.both,
		from:    s.from,
		foreign: b,
		how:     s.from + " file " + name,
	}
	if s.over {
		w.was = r.readFrom(r.data, as)
	}
	r.put(as, b)
	if s.both {
		if s.over {
			w.twinWas = r.readFrom(r.data, twin(as))
		}
		r.put(twin(as), r.readFrom(from, twin(name)))
	}
	r.note("%s stands as %s", w.how, as)
	check, ok := r.checkDamaged(w)
	if !ok {
		return
	}
	r.out.events++
	place := map[bool]string{true: " for an own one", false: " beside"}[s.over]
	r.out.kinds[s.from+" "+w.name()+place]++
	region := c.lostBy(w, false)
	if !s.over {
		region.Tags, region.Event = false, nil
	}
	r.stages(w, check, region)
}

// choose returns one of the files of a stranger's kind, and under which name it is put: that of an
// own file, or a free one. No name when there is no such file.
func (s stranger) choose(rng *rand.Rand, files, own []string) (name, as string) {
	names := slices.DeleteFunc(slices.Clone(files), func(n string) bool {
		second := (s.kind == "tags" || s.kind == "MANIFEST") && strings.HasSuffix(n, "2")
		return second || s.from == "older" && !s.over && slices.Contains(own, n)
	})
	if len(names) == 0 {
		return "", ""
	}
	name = names[rng.IntN(len(names))]
	switch {
	case s.over:
		same := slices.DeleteFunc(slices.Clone(own), func(n string) bool {
			return n == name && s.from == "own" || filepath.Ext(n) != filepath.Ext(name)
		})
		if len(same) == 0 {
			return "", ""
		}
		return name, same[rng.IntN(len(same))]
	case s.from == "foreign":
		return name, filepath.Join(s.kind, "0000000000000777"+filepath.Ext(name))
	}
	return name, name
}

func (r *round) readFrom(dir, file string) []byte {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		r.violate("%v", err)
	}
	return b
}

func (r *round) put(file string, b []byte) {
	if err := os.WriteFile(filepath.Join(r.data, file), b, 0o644); err != nil {
		r.violate("%v", err)
	}
}

// putBack gives the node its own file back, and nothing is missing any more.
func (r *round) putBack(w wound) {
	r.node.Kill()
	r.put(w.file, w.was)
	if w.both {
		r.put(twin(w.file), w.twinWas)
	}
	r.note("the own file is back")
	if !r.start() {
		return
	}
	if err := r.node.Replayed(); err != nil {
		r.violate("%v", err)
	}
	r.compare(verify.Options{Sample: 2})
}

// setAside says whether lost+found has a file of these bytes.
func (r *round) setAside(b []byte) bool {
	found := false
	root := filepath.Join(r.data, "lost+found")
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || found {
			return err
		}
		there, err := os.ReadFile(filepath.Join(root, path))
		found = bytes.Equal(there, b)
		return err
	})
	if err != nil {
		r.violate("%v", err)
	}
	return found
}
