package recovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
)

// Input is what a directory holds.
type Input struct {
	State *manifest.State // of the copies of the MANIFEST; Suspect where edits are lost
	Files []File          // in the directories of segments
	Sides []SideFile      // in those of sides
	// Said is what side files say of themselves: all of a directory with one that State does not
	// name, and all where State is Suspect.
	Said []Said
	// Highest is the highest number of a file found anywhere, lost+found included.
	Highest uint64
	// LogFrom is the first position of the log that is there, 0 where there is no log.
	LogFrom uint64
	// Now is the time in ms since 1970: what has outlived its bucket is no loss.
	Now int64
}

// File is a file in a directory of segments.
type File struct {
	Path string // below the data directory
	Kind manifest.Kind
	Seq  uint64
	Temp bool // its name is that of an unfinished file

	Foreign bool // its name is none of a segment, or that of another file: Damage says so

	Damage string // why it does not open; "" = it does
	Unread bool   // the device does not give it now, which may pass

	// Meta describes a file that opens, from what it says of itself.
	Meta manifest.Segment
	// Edit is the edit of its commit; nil where that cannot be read.
	Edit *manifest.Edit
}

func (f *File) opens() bool { return !f.Temp && !f.Foreign && !f.Unread && f.Damage == "" }

// Fate is what becomes of a file.
type Fate int

// The fates.
const (
	Keep   Fate = iota // the MANIFEST names it, or the device does not give it now
	Adopt              // it is entered into the MANIFEST
	Aside              // it goes to lost+found
	Remove             // nothing needs it
)

func (f Fate) String() string {
	return [...]string{"stays", "is taken in", "goes to lost+found", "is removed"}[f]
}

// Verdict is the fate of a file and the reason. Expected is what a crash leaves;
// all others are damage or its consequence.
type Verdict struct {
	File     *File
	Fate     Fate
	Why      string
	Expected bool
}

// Loss is a segment that counts and whose points are not there.
type Loss struct {
	Meta manifest.Segment // from the MANIFEST, or from a sister file
	Why  string
	// Unknown says that only the number is known: Meta has no points and no ranges,
	// and stands for all.
	Unknown bool
}

// Plan is what a start does.
type Plan struct {
	State    *manifest.State // to go on with
	Edit     manifest.Edit   // makes it of the state that was read
	Changed  bool            // whether Edit is to be committed
	Verdicts []Verdict       // of every file, by path
	Lost     []Loss          // are counted now, their names leave the state
	Found    []manifest.LostSegment

	Sides []SideVerdict // of every file in the directories of sides

	// Rebuilt says that account and replay positions come from a segment: the catalogue may
	// not have all names that segments have.
	Rebuilt bool
	NextSeq uint64

	told []Line // of buckets that side files tell of
}

// planner is a decision under way.
type planner struct {
	in       Input
	plan     Plan
	at       map[uint64]*File // that open, by number
	named    map[uint64]bool
	segments []manifest.LiveSegment // of which anything is known
	dead     map[uint64]bool        // do not count any more, by what an edit in effect says
	adopted  map[uint64]bool
	lost     map[uint64]*Loss // not there, and not dead
	outlived map[uint64]bool  // likewise, but nothing that it held counts any more
	leftover map[uint64]string
	spoken   []speaker
	told     []Said // by side files that count
}

// Decide makes the plan. It does no I/O, and changes nothing that in points to.
func Decide(in Input) Plan {
	p := &planner{
		in: in, at: map[uint64]*File{}, named: map[uint64]bool{}, dead: map[uint64]bool{},
		adopted: map[uint64]bool{}, lost: map[uint64]*Loss{}, leftover: map[uint64]string{},
		outlived: map[uint64]bool{},
	}
	for i := range in.Files {
		if f := &in.Files[i]; f.opens() {
			p.at[f.Seq] = f
		}
	}
	for i := range in.State.Segments {
		p.named[in.State.Segments[i].Seq] = true
	}
	p.segments = p.mentioned()
	p.whatCounts()
	p.whatIsLost()
	p.rescue()
	p.judge()
	p.sides()
	p.rebuild()
	return p.plan
}

// speaker is an edit in effect, which says what counts and what does not any more.
type speaker struct {
	edit *manifest.Edit
	kind manifest.Kind
	seq  uint64
}

func (s *speaker) live(seq uint64) bool {
	_, ok := slices.BinarySearchFunc(s.edit.Live, seq, func(l manifest.LiveSegment, seq uint64) int {
		return cmp.Compare(l.Seq, seq)
	})
	return ok
}

// speak takes the word of an edit in effect.
func (p *planner) speak(e *manifest.Edit, kind manifest.Kind, seq uint64) {
	p.spoken = append(p.spoken, speaker{e, kind, seq})
	p.retire()
}

// retire notes what does not count any more by the word of the last speaker: what its edit
// knows and does not list, but for what one that knows of that edit lists nevertheless.
// Those before it have had their say: another speaker only adds to what is listed.
func (p *planner) retire() {
	s := &p.spoken[len(p.spoken)-1]
	for _, of := range p.segments {
		if of.Seq <= last(s.edit, of.Kind) && !p.dead[of.Seq] && !s.live(of.Seq) &&
			!slices.ContainsFunc(p.spoken, func(o speaker) bool {
				return o.edit != s.edit && last(o.edit, s.kind) >= s.seq && o.live(of.Seq)
			}) {
			p.dead[of.Seq] = true
		}
	}
}

// mentioned returns every segment that is there or that somebody names, once.
func (p *planner) mentioned() []manifest.LiveSegment {
	all := make(map[manifest.LiveSegment]bool)
	for i := range p.in.Files {
		all[manifest.LiveSegment{Kind: p.in.Files[i].Kind, Seq: p.in.Files[i].Seq}] = true
	}
	for i := range p.in.State.Segments {
		all[manifest.LiveSegment{Kind: p.in.State.Segments[i].Kind, Seq: p.in.State.Segments[i].Seq}] =
			true
	}
	for _, f := range p.at {
		if f.Edit == nil {
			continue
		}
		for i := range f.Edit.AddSegments {
			all[manifest.LiveSegment{Kind: f.Edit.AddSegments[i].Kind, Seq: f.Edit.AddSegments[i].Seq}] =
				true
		}
		for _, l := range f.Edit.Live {
			all[l] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}

// last returns the highest number of a segment of the kind of which an edit knows.
func last(e *manifest.Edit, kind manifest.Kind) uint64 {
	if kind == manifest.Flush {
		return e.LastFlush
	}
	return e.LastMerged
}

// whatCounts goes through what there is from the newest to the oldest. Each edit that took effect
// says what does not count any more. These edits are the MANIFEST where it is whole, a flush that
// opens, and a merge whose files all open.
func (p *planner) whatCounts() {
	if st := p.in.State; !st.Suspect {
		e := st.CarriedEdit()
		p.speak(&e, manifest.Flush, 0)
	}
	files := make([]*File, 0, len(p.at))
	for _, f := range p.at {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *File) int { return cmp.Compare(b.Seq, a.Seq) })
	seen := map[uint64]bool{}
	for _, f := range files {
		if p.dead[f.Seq] || seen[f.Seq] {
			continue
		}
		if f.Edit == nil {
			p.adopted[f.Seq] = !p.named[f.Seq] // its name and its footer tell enough to read it
			continue
		}
		group := f.Edit.AddSegments
		for i := range group {
			seen[group[i].Seq] = true
		}
		if p.merge(f, group) {
			p.speak(f.Edit, f.Kind, f.Seq)
		}
	}
}

// logReachesBack reports whether the log begins where the state needs it at the
// latest: then no flush was committed behind the state, which would have let the
// log go. A whole MANIFEST from before the first flush needs it from its first
// position, 1.
func (p *planner) logReachesBack() bool {
	from := replayFrom(p.in.State)
	if !p.in.State.Suspect {
		from = max(from, 1)
	}
	return p.in.LogFrom != 0 && p.in.LogFrom <= from
}

// flushesBehind returns how many flushes lie behind the last one that the MANIFEST
// knows. A crash leaves one at most: more show that the MANIFEST is old.
func (p *planner) flushesBehind() (n int) {
	for i := range p.in.Files {
		if p.isNewer(&p.in.Files[i]) {
			n++
		}
	}
	return n
}

// isNewer reports whether a file is a flush behind the last one that the MANIFEST knows.
func (p *planner) isNewer(f *File) bool {
	return f.Kind == manifest.Flush && !f.Temp && !f.Foreign && f.Seq > p.in.State.LastFlush
}

// merge decides about the files of one commit and reports whether it took effect.
// A flush is one file. The files of a merge that was not committed are not needed as
// long as all that they were made from is here.
func (p *planner) merge(f *File, group []manifest.Segment) bool {
	complete := len(group) > 0
	for i := range group {
		complete = complete && p.at[group[i].Seq] != nil && !p.dead[group[i].Seq]
	}
	if slices.ContainsFunc(group, func(m manifest.Segment) bool { return p.named[m.Seq] }) {
		for i := range group { // one may be gone only by an edit that is lost
			seq := group[i].Seq
			p.adopted[seq] = p.at[seq] != nil && !p.dead[seq] && !p.named[seq]
		}
		return complete
	}
	back := isLost(p.in.State, f.Seq)
	if f.Kind == manifest.Flush && !back && !p.in.State.Suspect && p.logReachesBack() &&
		p.flushesBehind() == 1 {
		p.leftover[f.Seq] = "it was not committed, and the log has all that is in it"
		return false
	}
	if f.Kind != manifest.Flush && !back && p.sourcesHere(f.Edit.RemoveSegments) {
		for i := range group {
			p.leftover[group[i].Seq] = "a merge that was not committed wrote it, and all that it was made " +
				"from is here"
		}
		return false
	}
	for i := range group {
		m := &group[i]
		switch {
		case p.at[m.Seq] != nil && !p.dead[m.Seq]:
			p.adopted[m.Seq] = true
		case !p.dead[m.Seq] && !p.named[m.Seq] && !isLost(p.in.State, m.Seq) && !back && !p.unread(m.Seq):
			p.lose(m)
		}
	}
	return complete
}

// sourcesHere reports whether all of these open and count.
func (p *planner) sourcesHere(seqs []uint64) bool {
	return !slices.ContainsFunc(seqs, func(seq uint64) bool {
		return p.at[seq] == nil || p.dead[seq] || p.leftover[seq] != ""
	})
}

func (p *planner) unread(seq uint64) bool {
	return slices.ContainsFunc(p.in.Files, func(f File) bool {
		return f.Seq == seq && f.Unread && !f.Foreign
	})
}

func (p *planner) whyLost(seq uint64) string {
	for i := range p.in.Files {
		if f := &p.in.Files[i]; f.Seq == seq && !f.Temp && f.Damage != "" {
			return f.Damage
		}
	}
	return "the file is missing"
}

// whatIsLost looks for the segments that the MANIFEST names, and for those that
// others say count.
func (p *planner) whatIsLost() {
	for i := range p.in.State.Segments {
		m := &p.in.State.Segments[i]
		if p.at[m.Seq] == nil && !p.dead[m.Seq] && !p.unread(m.Seq) {
			p.lose(m)
		}
	}
	for i := range p.spoken {
		for _, live := range p.spoken[i].edit.Live {
			seq := live.Seq
			if p.at[seq] == nil && !p.dead[seq] && !p.named[seq] && p.lost[seq] == nil && !p.outlived[seq] &&
				!isLost(p.in.State, seq) && !p.unread(seq) {
				p.lost[seq] = &Loss{
					Meta:    manifest.Segment{Seq: seq, Kind: live.Kind},
					Why:     p.whyLost(seq),
					Unknown: true,
				}
			}
		}
	}
	for _, l := range p.lost {
		p.plan.Lost = append(p.plan.Lost, *l)
	}
	slices.SortFunc(p.plan.Lost, func(a, b Loss) int { return cmp.Compare(a.Meta.Seq, b.Meta.Seq) })
}

// rescue takes in files that are needed no more because something newer holds
// their points, if that may be lost.
func (p *planner) rescue() {
	for _, f := range p.at {
		if p.named[f.Seq] && !p.dead[f.Seq] || p.adopted[f.Seq] || !p.dead[f.Seq] &&
			p.leftover[f.Seq] == "" {
			continue
		}
		if slices.ContainsFunc(p.plan.Lost, func(l Loss) bool {
			return l.Unknown || overlap(l.Meta.Ranges, f.Meta.Ranges)
		}) {
			delete(p.dead, f.Seq)
			delete(p.leftover, f.Seq)
			p.adopted[f.Seq] = !p.named[f.Seq]
		}
	}
}

func overlap(a, b []manifest.Range) bool {
	return slices.ContainsFunc(a, func(r manifest.Range) bool {
		return slices.ContainsFunc(b, func(q manifest.Range) bool {
			return r.Bucket == q.Bucket && r.First < q.Past && q.First < r.Past
		})
	})
}

func isLost(st *manifest.State, seq uint64) bool {
	return slices.ContainsFunc(st.Lost, func(l manifest.LostSegment) bool { return l.Seq == seq })
}

// judge gives every file its verdict. Something is removed only on the word of a
// MANIFEST that is whole and newer than all files.
func (p *planner) judge() {
	trusted := !p.in.State.Suspect && !slices.ContainsFunc(p.in.Files, func(f File) bool {
		return p.adopted[f.Seq] && f.opens()
	})
	gone := Remove
	if !trusted {
		gone = Aside
	}
	for i := range p.in.Files {
		f := &p.in.Files[i]
		v := Verdict{File: f}
		switch {
		case f.Foreign:
			v.Fate, v.Why = Aside, cmp.Or(f.Damage, "it is no segment")
		case f.Temp:
			v.Fate, v.Why, v.Expected = gone, "it was never finished", true
		case f.Unread && p.dead[f.Seq] && trusted:
			v.Fate, v.Why, v.Expected = gone, "the MANIFEST does not name it", true
		case f.Unread:
			v.Fate, v.Why = Keep, "the device does not give it now: "+f.Damage
		case f.Damage != "" && p.dead[f.Seq] && trusted:
			v.Fate, v.Why, v.Expected = gone, "the MANIFEST does not name it", true
		case f.Damage != "":
			v.Fate, v.Why = Aside, f.Damage
		case p.leftover[f.Seq] != "":
			v.Fate, v.Why, v.Expected = gone, p.leftover[f.Seq], true
		case p.dead[f.Seq]:
			v.Fate, v.Why, v.Expected = gone, "what replaced it is here", true
		case p.adopted[f.Seq]:
			v.Fate, v.Why = Adopt, "the MANIFEST does not name it, and nothing that is here replaces it"
			v.Expected = true
		default:
			v.Fate = Keep
		}
		p.plan.Verdicts = append(p.plan.Verdicts, v)
	}
	slices.SortFunc(p.plan.Verdicts, func(a, b Verdict) int {
		return cmp.Compare(a.File.Path, b.File.Path)
	})
}

// Line is one sentence about a file for the operator. A start logs them all and a
// check before it lists them: the same ones.
type Line struct {
	File   string
	Text   string
	Damage bool // to be counted; all others a start puts right without a loss
	Side   bool // of tags or events, not a segment
}

// What is how reports of damage call the file.
func (l *Line) What() string {
	if l.Side {
		return l.File
	}
	return "segment " + l.File
}

// Lines says what the plan does, by file.
func (p *Plan) Lines() (lines []Line) {
	lost := map[string]bool{}
	for _, l := range p.Lost {
		file := datadir.Segment(l.Meta.Kind, l.Meta.Seq)
		lost[file] = true
		text := fmt.Sprintf("%s; %d points are lost", l.Why, l.Meta.Points)
		if l.Unknown {
			text = l.Why + "; how many points are lost is not known"
		}
		lines = append(lines, Line{File: file, Text: text, Damage: true})
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if v.Fate == Keep && !v.File.Unread || lost[v.File.Path] {
			continue
		}
		lines = append(lines, Line{
			File:   v.File.Path,
			Text:   v.Fate.String() + ": " + v.Why,
			Damage: !v.Expected,
		})
	}
	return append(lines, p.sideLines()...)
}
