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

// rot damages one file of a directory at rest, checks it, starts a node on it,
// and compares everything: at once, behind a merge, behind a restart.
func rot(r *round) {
	c := r.corpusOf(r.seed / perCorpus)
	if c.err != nil {
		r.violate("the corpus: %v", c.err)
		return
	}
	r.load = load.Of(c.book)
	r.flags = corpusFlags
	if err := os.CopyFS(r.data, os.DirFS(c.dir)); err != nil {
		r.violate("%v", err)
		return
	}
	all, err := targets(r.data)
	if err != nil {
		r.violate("%v", err)
		return
	}
	kind, file := r.target(all)
	was, err := os.ReadFile(filepath.Join(r.data, file))
	if err != nil {
		r.violate("%v", err)
		return
	}
	how := r.damage(filepath.Join(r.data, file), was)
	r.note("%s of %d bytes: %s", file, len(was), how)
	second := r.alsoDamage(all, kind)
	check, ok := r.checkDamaged(kind, file, how)
	if !ok {
		return
	}
	r.out.events++
	parts := partsOf(check, file)
	r.out.kinds[strings.TrimSuffix(kind+" "+strings.Join(parts, "+"), " ")]++
	region := &verify.Region{
		Slot: union(c.region(file, kind, slices.Equal(parts, []string{"data"})), c.region(second, filepath.Dir(second), false)),
		Name: func(s *oracle.Series) bool {
			return kind == "wal" && (s.DeletedAfter(c.log[s.Bucket]) || !s.WrittenBetween(s.Bucket.First, s.Bucket.Slots, 0, c.log[s.Bucket]))
		},
	}
	if kind == "wal" && (how == "removed" || strings.HasPrefix(how, "cut") || tornLog(check) || r.atEnd) {
		region.Back = func(s *oracle.Series) bool { return s.DeletedAfter(c.log[s.Bucket]) }
	}
	r.stages(kind, file, was, check, region)
}

// alsoDamage harms, in a long run now and then, a segment as well, and returns
// its name. Kinds whose loss excuses nothing are not paired: of two copies of a
// state one must be whole.
func (r *round) alsoDamage(all map[string][]string, kind string) string {
	kinds := slices.DeleteFunc([]string{"flush", "window", "overlay"}, func(k string) bool { return len(all[k]) == 0 || k == kind })
	if r.cfg.quick || kind == "wal" || kind == "catalogue" || len(kinds) == 0 || r.rng.IntN(4) > 0 {
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
func (r *round) stages(kind, file string, was []byte, check *subject.Check, region *verify.Region) {
	lost := int64(-1)
	for _, stage := range []string{"start", "merge", "restart"} {
		if stage == "merge" {
			if err := r.node.Flush(true); err != nil {
				r.violate("flush and merge: %v", err)
			}
		} else if !r.startDamaged(kind, file, was) {
			return
		}
		if err := r.node.Replayed(); err != nil {
			r.violate("%v", err)
		}
		r.note("%s", stage)
		rep := r.compare(verify.Options{Region: region, Sample: 2})
		if stage == "start" {
			r.named(kind, file, check, rep.Lost)
		} else if rep.Lost > lost {
			r.violate("%d points are gaps after the %s, %d before", rep.Lost, stage, lost)
		}
		lost = rep.Lost
		if r.bad {
			return
		}
		a := r.ledger(false)
		if a != nil && lost == 0 && a.Missing() > 0 && (kind == "MANIFEST" || kind == "catalogue" || kind == "VERSION") {
			r.violate("account: lost %v, recovered %v, and everything is there", a.Lost, a.Recovered)
		}
	}
	if !r.bad && r.rng.IntN(3) == 0 {
		r.restored(region, lost)
	}
	if !r.bad && r.rng.IntN(3) == 0 {
		r.stopsWell()
	}
}

// restored takes a snapshot of the damaged store, restores it elsewhere, and
// compares again: holes go with it.
func (r *round) restored(region *verify.Region, lost int64) {
	if _, err := r.node.Post("/admin/snapshots/create", map[string]string{"name": "torture"}); err != nil {
		r.violate("snapshot: %v", err)
		return
	}
	to := filepath.Join(r.base, "restored")
	out, err := exec.Command(filepath.Join(r.cfg.bin, "ddb"), "restore", "--allow-damage", "--snapshot", filepath.Join(r.data, "snapshots", "torture"), "--data-dir", to).CombinedOutput()
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
	if rep := r.compare(verify.Options{Region: region, Sample: 2}); rep.Lost > lost {
		r.violate("%d points are gaps in the restored snapshot, %d in what it was taken of", rep.Lost, lost)
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
func (r *round) named(kind, file string, check *subject.Check, lost int64) {
	figure, err := r.node.Metric("damaged_blocks_total")
	if err != nil {
		r.violate("%v", err)
	}
	if figure > 0 && check.Damaged == 0 && kind != "VERSION" {
		r.violate("the node counts %v damaged places, the check before the start found none:\n%s", figure, strings.Join(r.node.Log.Lines("level=ERROR"), "\n"))
	}
	if lost == 0 || kind == "wal" && tornLog(check) {
		return
	}
	if check.Damaged == 0 {
		r.violate("%d points are gaps, and the check before the start found no damage", lost)
	}
	if len(r.node.Log.Lines(filepath.Base(file))) == 0 || figure == 0 {
		r.violate("%d points are gaps, and the log does not name %s, or damaged_blocks_total = %v", lost, file, figure)
	}
}

// checkDamaged runs the check, which must find damage of segments and MANIFEST.
func (r *round) checkDamaged(kind, file, how string) (*subject.Check, bool) {
	c, err := subject.RunCheck(r.cfg.bin, r.data)
	if err != nil && kind != "VERSION" {
		r.violate("%v", err)
		return c, false
	}
	switch kind {
	case "flush", "window", "overlay":
		if c.Damaged == 0 {
			r.violate("the check finds nothing in %s: %s", file, how)
		}
	case "MANIFEST":
		if c.Damaged == 0 && len(c.Expected) == 0 {
			r.violate("the check finds nothing in %s: %s", file, how)
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
func (r *round) startDamaged(kind, file string, was []byte) bool {
	if r.node != nil {
		r.node.Kill()
	}
	n, err := subject.Start(r.cfg.bin, r.data, r.flags...)
	r.node = n
	if errors.Is(err, subject.ErrEnded) && kind == "VERSION" && strings.Contains(n.Log.String(), "VERSION") {
		r.note("refused by name")
		if err := os.WriteFile(filepath.Join(r.data, file), was, 0o644); err != nil {
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

// target chooses a kind of file, then a file.
func (r *round) target(all map[string][]string) (kind, file string) {
	weights := map[string]int{"MANIFEST": 5, "wal": 4, "flush": 6, "window": 5, "overlay": 4, "catalogue": 3, "VERSION": 1}
	var names []string
	for name := range all {
		if r.cfg.only != "" && !strings.Contains(name, r.cfg.only) {
			continue
		}
		for range weights[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	kind = names[r.rng.IntN(len(names))]
	return kind, all[kind][r.rng.IntN(len(all[kind]))]
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
