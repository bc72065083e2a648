package wal

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Report says what a replay found. Its slices belong to the caller.
type Report struct {
	Begin   LSN          // of the oldest file that is there; 0 without one
	Records int64        // given to the function
	Bytes   int64        // of their payloads
	Torn    []Place      // ends of the newest file that were never durable; expected after a crash
	Damaged []Place      // where records were written whole, and are lost
	Missing []Gap        // where files should be
	Lost    []LostRecord // records of damaged and missing places whose head is known, by LSN

	// Unknown are the bytes of these places of which not even a head is known. They lie between
	// the two LSNs; what that range holds beside them is known.
	Unknown                  int64
	UnknownFrom, UnknownPast LSN
}

// LostRecord is a record that damage took, and the head that AppendHeaded was given for it.
type LostRecord struct {
	LSN  LSN
	Head []byte
}

// Place is a range of a file that holds no readable records.
type Place struct {
	File   string // path
	Offset int64  // of the first bad byte in the file
	Bytes  int64  // from there to the end of the range, or to its last byte that is not zero
	LSN    LSN    // of the first record lost
	Reason string // for people
}

// String returns one line for the log.
func (p Place) String() string {
	return fmt.Sprintf("%s: offset %d (LSN %d), %d bytes: %s", p.File, p.Offset, p.LSN, p.Bytes,
		p.Reason)
}

// Gap is the range of LSNs [From, To), of which no file exists.
type Gap struct {
	From, To LSN
	File     string // path of the last of the missing files; empty = unknown
}

// String returns one line for the log.
func (g Gap) String() string {
	name := g.File
	if name == "" {
		name = "unknown"
	}
	return fmt.Sprintf("LSN %d to %d: missing, last file %s", g.From, g.To, name)
}

// Replay calls fn for every whole record at or above from that was in the log when it was
// opened, in order. rec is valid during the call only. A from of 0 replays whatever there
// is. Any other value claims that all records from there on should exist, and what is
// missing of them is reported.
//
// Replay fails after the first Append. Any other error is that of fn, wrapped, which ends
// the replay, or a failed read. Damage is no error: it is in the report, and in the log of
// the program.
func (l *Log) Replay(from LSN, fn func(lsn LSN, rec []byte) error) (Report, error) {
	l.mu.Lock()
	if l.tail.end != l.opened {
		l.mu.Unlock()
		return Report{}, fmt.Errorf("wal: replay after the first append, at LSN %d", l.tail.end)
	}
	p := replay{in: &l.found, from: from, claim: from, fn: fn, files: l.files, last: l.last}
	l.mu.Unlock()
	err := p.run()
	for _, place := range p.report.Torn {
		l.o.Logger.Info("wal: torn tail", "place", place.String())
	}
	for _, place := range p.report.Damaged {
		l.o.Logger.Error("wal: damaged", "place", place.String())
	}
	for _, gap := range p.report.Missing {
		l.o.Logger.Error("wal: missing", "gap", gap.String())
	}
	return p.report, err
}

// ReplayAgain calls fn as Replay does, and may run while records are appended: it gives the
// records that were in the log when it was opened. It does not report damage. The caller
// calls RemoveBelow with nothing above from until ReplayAgain has returned, or at most up to the
// record that fn was given last. An error is that of fn, wrapped, or a failed read.
func (l *Log) ReplayAgain(from LSN, fn func(lsn LSN, rec []byte) error) error {
	p := l.newReplay(from, fn)
	return p.run()
}

func (l *Log) newReplay(from LSN, fn func(lsn LSN, rec []byte) error) replay {
	l.mu.Lock()
	defer l.mu.Unlock()
	return replay{in: &l.found, from: from, claim: from, fn: fn, files: l.oldFiles(), last: l.last}
}

// oldFiles returns the files that were there when the log was opened and still are.
// Under mu.
func (l *Log) oldFiles() []file {
	n := len(l.files)
	for n > 0 && l.files[n-1].first >= l.opened {
		n--
	}
	return slices.Clone(l.files[:n])
}

type replay struct {
	in     *foundLog
	from   LSN // records below are not given
	claim  LSN // the records from there on should exist
	fn     func(LSN, []byte) error
	files  []file
	last   int
	reach  LSN // clean end of the newest file so far
	given  LSN // of the last record that is not the log's own
	lost   lostRecords
	buf    []byte
	ahead  readAhead
	turn   chan struct{} // for the prefetching: one file less is ahead
	report Report
}

// emptyEnd is where a log to which nothing was appended may be said to end: no record
// is so short.
const emptyEnd = 1

func (p *replay) run() error {
	stop := p.prefetch()
	defer stop()
	for i := range p.in.strangers {
		f := &p.in.strangers[i]
		p.add(&p.report.Damaged, f, -headerSize, f.size, f.fault)
	}
	for i := range p.files {
		f := &p.files[i]
		if p.report.Begin == 0 && !f.gone {
			p.report.Begin = f.first
		}
		p.checkGap(i)
		p.turn <- struct{}{} // there is a place for each
		switch {
		case f.void && i > p.last:
			p.add(&p.report.Torn, f, -headerSize, 0, "created and not finished: "+f.fault)
		case !p.wants(f):
		case f.gone:
			p.miss(Gap{From: f.first, To: max(f.sure, f.first), File: p.in.o.path(f.first)})
			p.reach = max(p.reach, f.sure)
		default:
			if f.fault != "" {
				p.add(&p.report.Damaged, f, -headerSize, min(f.size, headerSize), f.fault)
			}
			if err := p.scan(i); err != nil {
				return err
			}
		}
	}
	if p.claim > max(p.in.seen, emptyEnd) {
		p.miss(Gap{From: p.in.seen, To: p.claim})
	}
	p.report.Damaged = append(p.report.Damaged, p.in.lastBad...)
	var unknown span
	p.report.Lost, p.report.Unknown, unknown = p.lost.settle()
	p.report.UnknownFrom, p.report.UnknownPast = unknown.from, unknown.to
	return nil
}

func (p *replay) miss(g Gap) {
	p.report.Missing = append(p.report.Missing, g)
	p.lost.miss(g.From, g.To)
}

// wants reports whether a file may hold records that are asked for.
func (p *replay) wants(f *file) bool { return f.limit > f.first && f.limit > p.from }

// checkGap reports the files missing before file i. Its header names the one
// before it and the end of that.
func (p *replay) checkGap(i int) {
	f := &p.files[i]
	if f.head.prev == 0 || i > 0 && p.files[i-1].first >= f.head.prev {
		return
	}
	from := max(p.reach, p.claim)
	if i == 0 && p.claim == 0 || f.head.clean <= from {
		return
	}
	p.miss(Gap{From: from, To: f.head.clean, File: p.in.o.path(f.head.prev)})
}

// add reports a place at the offset that lies after bytes behind the header.
func (p *replay) add(to *[]Place, f *file, after, bytes int64, reason string) {
	*to = append(*to, Place{
		File:   p.in.o.path(f.first),
		Offset: headerSize + after,
		Bytes:  bytes,
		LSN:    f.first + LSN(max(0, after)),
		Reason: reason,
	})
}

// scan replays the records of file i.
func (p *replay) scan(i int) error {
	f := &p.files[i]
	name := p.in.o.path(f.first)
	r, err := p.in.o.FS.Open(name, vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("wal: replay: %w", err)
	}
	defer r.Close()
	defer p.ahead.stop() // before the file is closed
	sums := newSums(p.in.id)
	w := newWalk(f, &sums, r, &p.ahead, p.buf, func(from, to LSN, why string, head []byte) {
		if why == "" {
			why = "a place never written"
		}
		p.damage(f, from, to, why+"; the records behind it are whole", head)
	})
	for {
		rec, ok, err := w.next()
		if err != nil {
			return fmt.Errorf("wal: replay %s: %w", name, err)
		}
		if !ok {
			break
		}
		if err := p.take(&rec); err != nil {
			return err
		}
	}
	p.reach = max(p.reach, w.s.lsn)
	p.buf = w.s.buf
	if w.s.lsn >= f.limit {
		return nil
	}
	return p.judge(i, w)
}

// take gives a record to the function, unless it is the log's own.
func (p *replay) take(f *frame) error {
	lsn, rec := f.lsn, f.rec
	if f.own {
		var again bool
		if rec, again = p.ownRecord(f); !again {
			return nil
		}
	}
	p.given = lsn
	if lsn < p.from {
		return nil
	}
	p.report.Records++
	p.report.Bytes += int64(len(rec))
	if err := p.fn(lsn, rec); err != nil {
		return fmt.Errorf("wal: replay record at LSN %d: %w", lsn, err)
	}
	return nil
}

// ownRecord reads one of the log's own records. It returns a record that is repeated and
// was not given before.
func (p *replay) ownRecord(f *frame) (rec []byte, again bool) {
	var back, durable uint64
	switch f.rec[0] {
	case ownCopies:
		if list, ok := parseOwn(f.rec, &back, &durable); ok && LSN(back) < f.lsn {
			eachCopy(list, f.lsn-LSN(back), p.lost.addCopied)
		}
	case ownTwin:
		rec, ok := parseOwn(f.rec, &back)
		if first := f.lsn - LSN(back); ok && len(rec) > 0 && LSN(back) < f.lsn && first != p.given &&
			first >= p.from {
			p.lost.addCopied(knownRecord{lsn: first, size: frameSize + len(rec)})
			return rec, true
		}
	}
	return nil, false
}

// damage reports that a place is damaged, from where on the replay goes on.
func (p *replay) damage(f *file, from, to LSN, why string, head []byte) {
	p.add(&p.report.Damaged, f, int64(from-f.first), int64(to-from), why)
	p.lost.miss(max(from, p.from), max(to, p.from))
	if head != nil {
		p.lost.addCopied(knownRecord{lsn: from, size: int(to - from), head: head})
	}
}

// judge reports why file i ended before its limit.
func (p *replay) judge(i int, w *walk) error {
	f := &p.files[i]
	end, why := w.s.lsn, w.s.why
	at := int64(end - f.first)
	dropped, err := w.s.droppedBytes()
	if err != nil {
		return fmt.Errorf("wal: replay %s: %w", p.in.o.path(f.first), err)
	}
	if end >= w.sure {
		if dropped > 0 {
			if why == "" {
				why = "data behind a place never written"
			}
			p.add(&p.report.Torn, f, at, dropped, why)
		}
		return nil
	}
	if why == "" && dropped == 0 {
		if i < p.last {
			next := &p.files[i+1]
			if next.head.first != 0 && next.head.prev != f.first {
				return nil // the file may be whole; the one after it is missing
			}
		}
		why = fmt.Sprintf("ends before LSN %d", w.sure)
	}
	p.reach = max(p.reach, w.sure)
	p.damage(f, end, w.sure, why, nil)
	return nil
}
