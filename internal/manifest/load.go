package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// idGap is how far the next ids jump when edits are lost: the lost ones may
// have given ids away, and an id given twice would mix two series or files.
const idGap = 1 << 16

// Report says what Open found.
type Report struct {
	Created  bool    // there was no MANIFEST
	Edits    int     // read, the snapshot included
	Torn     []Place // an edit that was never committed, at the end; expected after a crash
	Damaged  []Place // committed edits that are lost, see State.Suspect
	SetAside string  // copy of the damaged file
}

// Place is a part of the file.
type Place struct {
	Offset int64
	Bytes  int64
	Reason string
}

func (p Place) String() string {
	return fmt.Sprintf("MANIFEST: offset %d, %d bytes: %s", p.Offset, p.Bytes, p.Reason)
}

// loader sums up the edits of a file.
type loader struct {
	state  State
	number uint64 // of the last edit
	report Report
}

// load reads a whole file. Its only error is ErrFormat.
func (l *loader) load(data []byte) error {
	pos := headerSize
	if _, err := parseHeader(data); errors.Is(err, ErrFormat) {
		return err
	} else if err != nil {
		pos = l.skip(data, 0, err)
	}
	for pos < len(data) {
		number, e, rest, err := parseRecord(data[pos:])
		if err != nil {
			pos = l.skip(data, pos, err)
			continue
		}
		next := len(data) - len(rest)
		if why := l.accept(number, &e); why != "" {
			l.damage(pos, next, why)
		}
		pos = next
	}
	if l.report.Edits == 0 && len(l.report.Damaged) == 0 {
		l.damage(0, len(data), "no edit in it")
	}
	if len(l.report.Damaged) > 0 {
		l.state.Suspect = true
		l.state.NextSeq += idGap
		l.state.NextBucket = min(l.state.NextBucket, math.MaxUint32-idGap) + idGap
		l.state.NextGroup = min(l.state.NextGroup, math.MaxUint32-idGap) + idGap
	}
	return nil
}

// skip returns where the next whole record begins. What is behind the last one
// is torn: no edit is written before the one in front of it is durable. A file
// is whole before it gets its name, so that its first record is never torn.
func (l *loader) skip(data []byte, pos int, cause error) int {
	next := pos
	for {
		i := bytes.Index(data[min(next+1, len(data)):], marker[:])
		if i < 0 {
			break
		}
		next += 1 + i
		if number, _, _, err := parseRecord(data[next:]); err == nil && number > l.number {
			l.damage(pos, next, cause.Error())
			return next
		}
	}
	if l.report.Edits == 0 {
		l.damage(pos, len(data), cause.Error())
	} else {
		l.report.Torn = append(l.report.Torn, place(pos, len(data), cause.Error()))
	}
	return len(data)
}

// accept applies an edit and returns what is wrong with its number. Floors of
// edits behind a damaged place are left out: they say that a segment holds what
// is below, and that may be the segment whose name is lost. With the older
// floors the log is replayed once more, as far as it still exists.
func (l *loader) accept(number uint64, e *Edit) (why string) {
	first := l.report.Edits == 0
	switch {
	case first && !e.reset:
		why = fmt.Sprintf("begins with edit %d, no snapshot", number)
	case !first && (e.reset || number <= l.number):
		return fmt.Sprintf("edit %d after edit %d, snapshot %t", number, l.number, e.reset)
	case !first && number != l.number+1:
		why = fmt.Sprintf("edits %d to %d are missing", l.number+1, number-1)
	}
	if why != "" || len(l.report.Damaged) > 0 && !e.reset {
		e.Floor, e.Floors = 0, nil
	}
	l.state.apply(e)
	l.number = number
	l.report.Edits++
	return why
}

func (l *loader) damage(from, to int, why string) {
	l.report.Damaged = append(l.report.Damaged, place(from, to, why))
}

func place(from, to int, why string) Place {
	return Place{Offset: int64(from), Bytes: int64(to - from), Reason: why}
}
