package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/disk/origin"
)

// idGap is how far the next ids jump when edits are lost: the lost ones may
// have given ids away, and an id given twice would mix two series or files.
const idGap = 1 << 16

// Report says what Open found.
type Report struct {
	Created  bool     // there was no copy
	Edits    int      // that make the state, the snapshot included
	Torn     []Place  // an edit that was never committed; expected after a crash
	Damaged  []Place  // what a copy has lost, whether or not the other one has it
	Lost     []string // edits that no copy has, see State.Suspect
	SetAside []string // the damaged copies in lost+found
	Deferred error    // why the copies could not be written anew yet, see ErrUnwritten

	differ bool // the copies are not the same bytes
}

// Place is a part of a copy.
type Place struct {
	File   string
	Offset int64
	Bytes  int64
	Reason string
}

func (p Place) String() string {
	return fmt.Sprintf("%s: offset %d, %d bytes: %s", p.File, p.Offset, p.Bytes, p.Reason)
}

// image is one copy as it was read.
type image struct {
	name    string
	data    []byte
	missing bool
	unread  error // the device did not give it
	foreign error // it is of another directory

	edits []numberedEdit // whole ones, numbers ascending
	bad   []Place        // in front of the last whole edit
	tail  *Place         // behind it
}

// numberedEdit is an edit and its number. That of a snapshot is the number of the
// last edit in it.
type numberedEdit struct {
	number uint64
	edit   Edit
	size   int64
	sum    uint32 // of the record
}

// lastNumber returns the number of the last whole edit.
func (c *image) lastNumber() (number uint64, ok bool) {
	if len(c.edits) == 0 {
		return 0, false
	}
	return c.edits[len(c.edits)-1].number, true
}

// parse finds the whole edits. Its only error is ErrFormat.
func (c *image) parse() error {
	if c.missing || c.unread != nil {
		return nil
	}
	pos := headerSize
	if _, err := parseHeader(c.data); errors.Is(err, ErrFormat) {
		return fmt.Errorf("%s: %w", c.name, err)
	} else if err != nil {
		pos = c.skip(0, err)
	}
	for pos < len(c.data) {
		number, e, rest, err := parseRecord(c.data[pos:])
		if err != nil {
			pos = c.skip(pos, err)
			continue
		}
		next := len(c.data) - len(rest)
		switch before, any := c.lastNumber(); {
		case any && number <= before || any && e.reset:
			c.bad = append(c.bad,
				c.place(pos, next, fmt.Sprintf("edit %d after edit %d, snapshot %t", number, before, e.reset)))
		default:
			if n := len(c.bad); n > 0 && c.bad[n-1].Offset+c.bad[n-1].Bytes == int64(pos) {
				// What is missing in front of it is what was damaged there.
			} else if !any && !e.reset {
				c.bad = append(c.bad,
					c.place(pos, pos, fmt.Sprintf("begins with edit %d, no snapshot", number)))
			} else if any && number != before+1 {
				c.bad = append(c.bad,
					c.place(pos, pos, fmt.Sprintf("edits %d to %d are missing", before+1, number-1)))
			}
			c.edits = append(c.edits, numberedEdit{number, e, int64(next - pos), recordSum(c.data[pos:])})
		}
		pos = next
	}
	return nil
}

// belong drops what is in a copy of another directory than of.
func (c *image) belong(of origin.Directory) {
	for i := range c.edits {
		if d := c.edits[i].edit.directory; d.IsKnown() && of.IsKnown() && d != of {
			c.edits, c.bad, c.tail = nil, nil, nil
			c.foreign = origin.File{Directory: of}.Check(origin.File{Directory: d})
			return
		}
	}
}

// skip returns where the next whole edit begins, or the end of the file.
func (c *image) skip(pos int, cause error) int {
	last, any := c.lastNumber()
	for next := pos; ; {
		i := bytes.Index(c.data[min(next+1, len(c.data)):], marker[:])
		if i < 0 {
			break
		}
		next += 1 + i
		if number, _, _, err := parseRecord(c.data[next:]); err == nil && (!any || number > last) {
			c.bad = append(c.bad, c.place(pos, next, cause.Error()))
			return next
		}
	}
	tail := c.place(pos, len(c.data), cause.Error())
	c.tail = &tail
	return len(c.data)
}

func (c *image) place(from, to int, why string) Place {
	return Place{File: c.name, Offset: int64(from), Bytes: int64(to - from), Reason: why}
}

// loader makes one state of both copies. DESIGN.md has the order of the writes
// that its rules come from.
type loader struct {
	of     origin.Directory // whose copies they are; zero takes those of any
	state  State
	number uint64 // of the last edit
	report Report
	split  string // why the copies are not those of one MANIFEST
}

// load takes the copies in the order in which they are written. Its only error is
// ErrFormat.
func (l *loader) load(first, second *image) error {
	for _, c := range []*image{first, second} {
		if err := c.parse(); err != nil {
			return err
		}
		c.belong(l.of)
	}
	l.report.Created = first.missing && second.missing
	l.report.differ = first.missing || second.missing || first.unread != nil || second.unread != nil ||
		!bytes.Equal(first.data, second.data)
	if l.report.Created {
		l.state.Suspect = true
		return nil
	}
	l.fold(first, second)
	l.judge(first, second)
	if len(l.report.Lost) > 0 {
		l.state.Suspect = true
		l.state.NextSeq += idGap
		l.state.NextGroup = min(l.state.NextGroup, math.MaxUint32-idGap) + idGap
	}
	return nil
}

// fold sums up the edits from the newest snapshot on, each from the copy that has it. The replay
// positions of edits behind one that both have lost are left out. They say that segments hold what
// the log has below, and one of these may be the segment whose name is lost.
func (l *loader) fold(first, second *image) {
	all := slices.Concat(first.edits, second.edits)
	slices.SortStableFunc(all, func(a, b numberedEdit) int {
		// Of two with one number the snapshot comes last: it is the sum.
		return cmp.Or(cmp.Compare(a.number, b.number),
			cmp.Compare(flag(a.edit.reset), flag(b.edit.reset)))
	})
	all, highest := l.commonEdits(all)
	from := -1
	for i := range all {
		if all[i].edit.reset {
			from = i
		}
	}
	if from < 0 {
		l.noteLoss("no copy has a snapshot")
		from = 0
	}
	for _, e := range all[from:] {
		if l.report.Edits > 0 && e.number == l.number {
			continue // the other copy's
		}
		if l.report.Edits > 0 && e.number != l.number+1 {
			l.noteLoss(fmt.Sprintf("edits %d to %d", l.number+1, e.number-1))
		}
		if len(l.report.Lost) > 0 && !e.edit.reset {
			e.edit.ReplayPosition, e.edit.ReplayPositions = 0, nil
		}
		l.state.apply(&e.edit)
		l.number = e.number
		l.report.Edits++
	}
	l.number = max(l.number, highest)
}

// commonEdits returns the edits, in their order, before the first two of one number that differ:
// then one copy belongs to a directory that began as a copy of this one. highest is the highest
// number of the edits left out, 0 for none.
func (l *loader) commonEdits(all []numberedEdit) (common []numberedEdit, highest uint64) {
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		if a.number != b.number || a.edit.reset != b.edit.reset || a.sum == b.sum && a.size == b.size {
			continue
		}
		l.split = fmt.Sprintf("the copies say different things from edit %d on", a.number)
		l.noteLoss(l.split)
		common = slices.DeleteFunc(slices.Clone(all), func(n numberedEdit) bool {
			return n.number >= a.number
		})
		return common, all[len(all)-1].number
	}
	return all, 0
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (l *loader) noteLoss(what string) { l.report.Lost = append(l.report.Lost, what) }

// judge says what is wrong with each copy. An edit is written to the second copy
// only when it is durable in the first, and the next edit only when it is durable
// in both. So a crash leaves one of these: both end with the same edit, behind
// which the first may be torn; or the first is one edit ahead, at which the
// second may be torn. Anything else is damage. That the newest edit is the last
// one there was is certain when a copy ends cleanly with it.
func (l *loader) judge(first, second *image) {
	last1, any1 := first.lastNumber()
	last2, any2 := second.lastNumber()
	ends := false
	for _, c := range []*image{first, second} {
		last, any := c.lastNumber()
		ends = ends || any && last == l.number && c.tail == nil
		l.report.Damaged = append(l.report.Damaged, c.bad...)
		whole := fmt.Sprintf("it ends with edit %d, the other copy with edit %d", last, l.number)
		torn := any1 && any2 && (c == first && last1 == last2 && second.tail == nil || c == second &&
			last1 == last2+1 && first.tail == nil)
		behind := any1 && any2 && c == second && last1 == last2+1 && first.tail == nil
		switch {
		case c.missing && l.onlyMade():
		case c.missing:
			l.noteDamage(c, "the file is missing")
		case c.foreign != nil:
			l.noteDamage(c, c.foreign.Error())
		case l.split != "":
			l.noteDamage(c, l.split)
		case c.unread != nil:
			l.noteDamage(c, "the device cannot read it: "+c.unread.Error())
		case c.tail != nil && torn:
			l.report.Torn = append(l.report.Torn, *c.tail)
		case c.tail != nil:
			l.report.Damaged = append(l.report.Damaged, *c.tail)
		case !any:
			l.noteDamage(c, "no edit in it")
		case last != l.number && !behind:
			l.noteDamage(c, whole)
		}
	}
	if !ends && l.split == "" {
		l.noteLoss("what was behind the newest edit that is left: no copy ends with a whole one")
	}
}

// onlyMade reports whether nothing but the first snapshot was ever written: a
// crash then leaves one copy.
func (l *loader) onlyMade() bool { return l.number == 0 && len(l.report.Damaged) == 0 }

func (l *loader) noteDamage(c *image, why string) {
	l.report.Damaged = append(l.report.Damaged, c.place(0, len(c.data), why))
}
