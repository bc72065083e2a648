package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"dalmatiner/test/torture/load"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
	"dalmatiner/test/torture/verify"
)

// wound is what was done to a file of a directory at rest.
type wound struct {
	kind, file, how string
	was             []byte
	both            bool // it was done to the other copy as well, which had twinWas
	twinWas         []byte
	from            string // where a stranger is from, "" for damage
	foreign         []byte // the stranger
}

// strange says whether what stands there is not a file of its name.
func (w wound) strange() bool { return w.from == "foreign" || w.from == "own" }

// rot damages one file of a directory at rest, or both copies of one, checks it, starts a node on
// it, and compares everything: at once, behind a merge, behind a restart.
func rot(r *round) {
	c, all := r.atRest()
	if r.bad {
		return
	}
	w := r.target(all)
	w.how = r.damage(filepath.Join(r.data, w.file), w.was)
	r.note("%s of %d bytes: %s", w.file, len(w.was), w.how)
	if w.both {
		other := twin(w.file)
		r.note("%s: %s", other, r.damage(filepath.Join(r.data, other), r.readFrom(r.data, other)))
		r.out.events++
	}
	second := r.alsoDamage(all, w.kind)
	check, ok := r.checkDamaged(w)
	if !ok {
		return
	}
	r.out.events++
	parts := partsOf(check, w.file)
	r.out.kinds[strings.TrimSuffix(w.name()+" "+strings.Join(parts, "+"), " ")]++
	region := c.lostBy(w, slices.Equal(parts, []string{"data"}))
	region.Slot = union(region.Slot, c.region(second, filepath.Dir(second), false))
	if w.kind == "wal" && (w.how == "removed" || strings.HasPrefix(w.how, "cut") || tornLog(check) ||
		r.atEnd) {
		region.Back = func(s *oracle.Series) bool { return s.DeletedAfter(c.log[s.Bucket]) }
	}
	r.stages(w, check, region)
}

func (w wound) name() string {
	if w.both {
		return "both copies of " + w.kind
	}
	return w.kind
}

// kindsOfData are the kinds of files whose own can be put back.
var kindsOfData = []string{"flush", "window", "overlay", "events", "tags"}

// twin is the other copy of a file of tags, or of the MANIFEST.
func twin(file string) string {
	switch {
	case file == "MANIFEST":
		return "MANIFEST.2"
	case strings.HasSuffix(file, "2"):
		return strings.TrimSuffix(strings.TrimSuffix(file, "2"), ".")
	}
	return file + "2"
}

// atRest gives the round a copy of the corpus, and lists what can be harmed there.
func (r *round) atRest() (*corpus, map[string][]string) {
	c := r.corpusOf(r.seed/perCorpus, ownSalt)
	if c.err != nil {
		r.violate("the corpus: %v", c.err)
		return c, nil
	}
	r.load = load.Of(c.book)
	r.flags = corpusFlags
	if err := os.CopyFS(r.data, os.DirFS(c.dir)); err != nil {
		r.violate("%v", err)
		return c, nil
	}
	all, err := targets(r.data)
	if err != nil {
		r.violate("%v", err)
	}
	return c, all
}

// lostBy is what a wound may have taken.
func (c *corpus) lostBy(w wound, narrow bool) *verify.Region {
	return &verify.Region{
		Slot: c.region(w.file, w.kind, narrow),
		Name: func(s *oracle.Series) bool {
			return w.kind == "wal" &&
				(s.DeletedAfter(c.log[s.Bucket]) || !s.WrittenBetween(s.Bucket.First, s.Bucket.Slots, 0,
					c.log[s.Bucket]))
		},
		Event: c.lostEvents(w.file, w.kind),
		Tags:  w.kind == "wal" || w.kind == "tags" && w.both,
	}
}

// alsoDamage harms, in a long run now and then, a segment as well, and returns
// its name. Kinds whose loss excuses nothing are not paired: of two copies of a
// state one must be whole.
func (r *round) alsoDamage(all map[string][]string, kind string) string {
	kinds := slices.DeleteFunc([]string{"flush", "window", "overlay"}, func(k string) bool {
		return len(all[k]) == 0 || k == kind
	})
	if r.cfg.quick || kind == "wal" || kind == "catalogue" || kind == "tags" || kind == "events" ||
		len(kinds) == 0 || r.rng.IntN(4) > 0 {
		return ""
	}
	k := kinds[r.rng.IntN(len(kinds))]
	file := all[k][r.rng.IntN(len(all[k]))]
	b, err := os.ReadFile(filepath.Join(r.data, file))
	if err != nil {
		r.violate("%v", err)
		return ""
	}
	r.note("%s of %d bytes: %s", file, len(b), r.damage(filepath.Join(r.data, file), b))
	r.out.events++
	return file
}

func union(a, b func(*oracle.Series, int64) bool) func(*oracle.Series, int64) bool {
	return func(s *oracle.Series, slot int64) bool { return a(s, slot) || b(s, slot) }
}

// stages starts the node on the damaged directory and compares.
func (r *round) stages(w wound, check *subject.Check, region *verify.Region) {
	lost := int64(-1)
	stages := []string{"start", "merge", "restart"}
	back := w.strange() && w.was != nil && slices.Contains(kindsOfData, w.kind) && r.rng.IntN(2) == 0
	if back {
		stages = []string{"start", "restart"} // a merge drops what it hides under the lost file
	}
	for _, stage := range stages {
		if stage == "merge" {
			if err := r.node.Flush(true); err != nil {
				r.violate("flush and merge: %v", err)
			}
		} else if !r.startDamaged(w) {
			return
		}
		if err := r.node.Replayed(); err != nil {
			r.violate("%v", err)
		}
		r.note("%s", stage)
		rep := r.compare(verify.Options{Region: region, Sample: 2})
		if stage == "start" {
			r.named(w, check, rep.AllLost())
		} else if rep.AllLost() > lost {
			r.violate("%d points, events and tags are gaps after the %s, %d before", rep.AllLost(), stage,
				lost)
		}
		lost = rep.AllLost()
		if r.bad {
			return
		}
		r.accounted(w, rep)
	}
	if back && !r.bad {
		r.putBack(w)
		return
	}
	if !r.bad && r.rng.IntN(3) == 0 {
		r.restored(region, lost)
	}
	if !r.bad && r.rng.IntN(3) == 0 {
		r.stopsWell()
	}
}

// accounted holds the account against what is lost. A file of events that cannot be used at all,
// and changes of tags, are counted at the start; a block of events is named by answers only.
func (r *round) accounted(w wound, rep *verify.Report) {
	a := r.ledger(false)
	if a == nil {
		return
	}
	missing := a.Missing() + a.Events.Missing() + a.TagsLost
	beside := w.from != "" && w.was == nil
	excused := w.kind == "wal" || slices.Contains(kindsOfData, w.kind) && !beside
	if rep.AllLost() == 0 && missing > 0 && !excused {
		r.violate("account: lost %v, events %v, tags %d, recovered %v, and everything is there", a.Lost,
			a.Events.Lost, a.TagsLost, a.Recovered)
	}
	if whole := w.how == "removed" || w.strange(); w.kind == "events" && whole &&
		a.Events.Missing() < rep.LostEvents {
		r.violate("account: %d events lost, %d are gaps", a.Events.Missing(), rep.LostEvents)
	}
	if w.kind == "tags" && rep.LostTags > 0 && a.TagsLost == 0 {
		r.violate("account: no tags lost, and %d are missing", rep.LostTags)
	}
}

// restored takes a snapshot of the damaged store, restores it elsewhere, and
// compares again: holes go with it.
func (r *round) restored(region *verify.Region, lost int64) {
	if _, err := r.node.Post("/admin/snapshots/create",
		map[string]string{"name": "torture"}); err != nil {
		r.violate("snapshot: %v", err)
		return
	}
	to := filepath.Join(r.base, "restored")
	out, err := exec.Command(filepath.Join(r.cfg.bin, "ddb"), "restore", "--allow-damage",
		"--snapshot", filepath.Join(r.data, "snapshots", "torture"), "--data-dir", to).CombinedOutput()
	if err != nil {
		r.violate("ddb restore: %v: %s", err, out)
		return
	}
	r.node.Kill()
	r.data = to
	r.note("snapshot and restore")
	if !r.start() {
		return
	}
	if rep := r.compare(verify.Options{Region: region, Sample: 2}); rep.AllLost() > lost {
		r.violate("%d points, events and tags are gaps in the restored snapshot, %d in what it was "+
			"taken of", rep.AllLost(), lost)
	}
}

// tornLog says whether the check takes the end of the log for that of a crash.
func tornLog(c *subject.Check) bool {
	for _, d := range c.Expected {
		if strings.HasPrefix(d.File, "wal") {
			return true
		}
	}
	return false
}

// stopsWell says that a damaged store is a store.
func (r *round) stopsWell() {
	if code, err := r.node.Stop(); err != nil || code != 0 {
		r.violate("SIGTERM: exit code %d, %v\n%s", code, err, r.node.Log.Tail(4))
	}
}

// named demands that what is lost was named: by the check before the start, and
// by the log or the figures behind it. The torn end of the log is no damage.
func (r *round) named(w wound, check *subject.Check, lost int64) {
	figure, err := r.node.Metric("damaged_blocks_total")
	if err != nil {
		r.violate("%v", err)
	}
	if figure > 0 && check.Damaged == 0 && w.kind != "VERSION" {
		r.violate("the node counts %v damaged places, the check before the start found none:\n%s", figure,
			strings.Join(r.node.Log.Lines("level=ERROR"), "\n"))
	}
	if w.strange() {
		name := filepath.Base(w.file)
		if w.kind == "catalogue" {
			name = w.kind // is made again whole
		}
		if len(r.node.Log.Lines(name)) == 0 {
			r.violate("the log does not name %s, and %s stands there", w.file, w.how)
		}
		if w.kind != "VERSION" && !r.setAside(w.foreign) {
			r.violate("lost+found does not have the %s", w.how)
		}
	}
	if lost == 0 || w.kind == "wal" && tornLog(check) {
		return
	}
	if check.Damaged == 0 {
		r.violate("%d points, events and tags are gaps, and the check before the start found no damage",
			lost)
	}
	if len(r.node.Log.Lines(filepath.Base(w.file))) == 0 || figure == 0 {
		r.violate("%d points, events and tags are gaps, and the log does not name %s, or "+
			"damaged_blocks_total = %v", lost, w.file, figure)
	}
}

// checkDamaged runs the check, which must find damage of segments, sides and MANIFEST.
func (r *round) checkDamaged(w wound) (*subject.Check, bool) {
	c, err := subject.RunCheck(r.cfg.bin, r.data)
	if err != nil && w.kind != "VERSION" {
		r.violate("%v", err)
		return c, false
	}
	switch {
	case w.from == "older": // it may be right
	case w.strange(), slices.Contains(kindsOfData, w.kind):
		if c.Damaged == 0 {
			r.violate("the check finds nothing in %s: %s", w.file, w.how)
		}
	case w.kind == "MANIFEST":
		if c.Damaged == 0 && len(c.Expected) == 0 {
			r.violate("the check finds nothing in %s: %s", w.file, w.how)
		}
	}
	return c, true
}

// partsOf are the kinds of blocks that the check calls damaged in a file.
func partsOf(c *subject.Check, file string) []string {
	var parts []string
	for _, d := range c.Damages {
		if d.File == file && !slices.Contains(parts, d.Part) {
			parts = append(parts, d.Part)
		}
	}
	slices.Sort(parts)
	return parts
}

// startDamaged starts the node. With a VERSION of another format it refuses to,
// names it, and starts when it is put right.
func (r *round) startDamaged(w wound) bool {
	if r.node != nil {
		r.node.Kill()
	}
	n, err := subject.Start(r.cfg.bin, r.data, r.flags...)
	r.node = n
	if errors.Is(err, subject.ErrEnded) && w.kind == "VERSION" &&
		strings.Contains(n.Log.String(), "VERSION") {
		r.note("refused by name")
		if err := os.WriteFile(filepath.Join(r.data, w.file), w.was, 0o644); err != nil {
			r.violate("%v", err)
			return false
		}
		return r.start()
	}
	if err != nil {
		r.violate("the start: %v\n%s", err, n.Log.Tail(6))
		return false
	}
	return true
}

// rotting are the kinds of files that seeds choose from in turn, so that few rounds meet all; of
// some both copies are harmed.
var rotting = []struct {
	kind string
	both bool
}{
	{"MANIFEST", false}, {"events", false}, {"flush", false}, {"tags", true}, {"wal", false},
	{"window", false}, {"MANIFEST", true},
	{"overlay", false}, {"events", false}, {"catalogue", false}, {"tags", false}, {"flush", false},
	{"VERSION", false},
}

// target chooses a kind of file, then a file.
func (r *round) target(all map[string][]string) wound {
	kinds := slices.Clone(rotting)
	kinds = slices.DeleteFunc(kinds, func(k struct {
		kind string
		both bool
	}) bool {
		return len(all[k.kind]) == 0 || !strings.Contains(k.kind, r.cfg.only)
	})
	k := kinds[r.seed%uint64(len(kinds))]
	file := all[k.kind][r.rng.IntN(len(all[k.kind]))]
	return wound{kind: k.kind, both: k.both, file: file, was: r.readFrom(r.data, file)}
}

// logTail is how much of the log's end repeats nothing of itself yet: damage
// there may look like the tear of a crash, or take a record with both headers.
const logTail = 16 << 10

// damage harms the file and says how.
func (r *round) damage(path string, b []byte) string {
	n := len(b)
	at := r.place(n)
	r.atEnd = n-at < logTail
	b = slices.Clone(b)
	how := ""
	switch r.rng.IntN(10) {
	case 0:
		if err := os.Remove(path); err != nil {
			r.violate("%v", err)
		}
		return "removed"
	case 1:
		how, b = fmt.Sprintf("cut to %d bytes", at), b[:at]
	case 2, 3:
		at -= at % 4096
		end := min(at+4096, n)
		if slices.Max(b[at:end]) == 0 {
			end = at
		}
		clear(b[at:end])
		how = fmt.Sprintf("bytes %d to %d are zeros", at, end)
		if end == at {
			b[at] ^= 1
			how = fmt.Sprintf("bit 0 of byte %d flipped", at)
		}
	case 4:
		end := min(at+512, n)
		for i := at; i < end; i++ {
			b[i] = byte(r.rng.Uint32())
		}
		how = fmt.Sprintf("bytes %d to %d are garbage", at, end)
	default:
		bit := r.rng.IntN(8)
		b[at] ^= 1 << bit
		how = fmt.Sprintf("bit %d of byte %d flipped", bit, at)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		r.violate("%v", err)
	}
	return how
}

// place chooses a byte: anywhere, or, as indexes and footers lie at the end,
// there.
func (r *round) place(n int) int {
	switch r.rng.IntN(4) {
	case 0:
		return n - 1 - r.rng.IntN(min(n, 160))
	case 1:
		return n - 1 - r.rng.IntN(max(n/3, 1))
	}
	return r.rng.IntN(n)
}
