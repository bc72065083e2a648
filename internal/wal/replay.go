package wal

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Report says what a replay found.
type Report struct {
	Records int64   // given to the function
	Bytes   int64   // of their payloads
	Torn    []Place // ends of the newest file that were never durable; expected after a crash
	Damaged []Place // records lost that were written whole
	Missing []Gap   // files that should be there
}

// Place is a range of a file that holds no readable records.
type Place struct {
	File   string
	Offset int64 // of the first bad byte
	Bytes  int64 // from there to the last byte that is not zero
	LSN    LSN   // of the first record lost
	Reason string
}

func (p Place) String() string {
	return fmt.Sprintf("%s: offset %d (LSN %d), %d bytes: %s", p.File, p.Offset, p.LSN, p.Bytes, p.Reason)
}

// Gap is a range of LSNs of which no file exists.
type Gap struct {
	From, To LSN    // To is exclusive
	File     string // the last of the missing files; empty = unknown
}

func (g Gap) String() string {
	name := g.File
	if name == "" {
		name = "unknown"
	}
	return fmt.Sprintf("LSN %d to %d: missing, last file %s", g.From, g.To, name)
}

// Replay calls fn for every whole record at or above from that was in the log
// when it was opened, in order. rec is valid during the call only. It must run
// before the first Append. from = 0 replays whatever there is; any other value
// claims that the records from there on should exist. An error is that of fn or
// a failed read; all else is in the report, which is also logged.
func (l *Log) Replay(from LSN, fn func(lsn LSN, rec []byte) error) (Report, error) {
	l.mu.Lock()
	if l.end != l.opened {
		l.mu.Unlock()
		return Report{}, fmt.Errorf("wal: replay after the first append, at LSN %d", l.end)
	}
	p := replay{l: l, from: from, fn: fn, files: l.files, last: l.last}
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

// Again gives fn the records that Replay gave, also while records are appended,
// and says nothing of damage, which Replay has reported. No file that holds records
// at or above from may be removed before fn was given them. An error is that of
// fn or a failed read.
func (l *Log) Again(from LSN, fn func(lsn LSN, rec []byte) error) error {
	l.mu.Lock()
	p := replay{l: l, from: from, fn: fn, files: l.old(), last: l.last}
	l.mu.Unlock()
	return p.run()
}

// old returns the files that were there when the log was opened and still are.
// Under mu.
func (l *Log) old() []file {
	n := len(l.files)
	for n > 0 && l.files[n-1].first >= l.opened {
		n--
	}
	return slices.Clone(l.files[:n])
}

type replay struct {
	l      *Log
	from   LSN
	fn     func(LSN, []byte) error
	files  []file
	last   int
	reach  LSN // clean end of the newest file so far
	buf    []byte
	ahead  ahead
	turn   chan struct{} // for the prefetching: one file less is ahead
	report Report
}

func (p *replay) run() error {
	stop := p.prefetch()
	defer stop()
	for i := range p.l.strangers {
		f := &p.l.strangers[i]
		p.add(&p.report.Damaged, f, -headerSize, f.size, f.fault)
	}
	for i := range p.files {
		f := &p.files[i]
		p.checkGap(i)
		p.turn <- struct{}{} // there is a place for each
		switch {
		case f.void && i > p.last:
			p.add(&p.report.Torn, f, -headerSize, 0, "created and not finished: "+f.fault)
		case !p.wants(f):
		case f.fault != "":
			p.add(&p.report.Damaged, f, -headerSize, f.size, f.fault)
			p.reach = max(p.reach, min(f.end(), f.limit))
		default:
			if err := p.scan(i); err != nil {
				return err
			}
		}
	}
	if p.from > p.l.seen {
		p.report.Missing = append(p.report.Missing, Gap{From: p.l.seen, To: p.from})
	}
	return nil
}

// wants reports whether a file may hold records that are asked for.
func (p *replay) wants(f *file) bool { return f.limit > f.first && f.limit > p.from }

// checkGap reports the files missing before file i. Its header names the one
// before it and the end of that.
func (p *replay) checkGap(i int) {
	f := &p.files[i]
	if f.fault != "" || f.head.prev == 0 || i > 0 && p.files[i-1].first >= f.head.prev {
		return
	}
	from := max(p.reach, p.from)
	if i == 0 && p.from == 0 || f.head.clean <= from {
		return
	}
	p.report.Missing = append(p.report.Missing,
		Gap{From: from, To: f.head.clean, File: p.l.path(f.head.prev)})
}

// add reports a place at the offset that lies after bytes behind the header.
func (p *replay) add(to *[]Place, f *file, after, bytes int64, reason string) {
	*to = append(*to, Place{
		File:   p.l.path(f.first),
		Offset: headerSize + after,
		Bytes:  bytes,
		LSN:    f.first + LSN(max(0, after)),
		Reason: reason,
	})
}

// scan replays the records of file i.
func (p *replay) scan(i int) error {
	f := &p.files[i]
	name := p.l.path(f.first)
	r, err := p.l.o.FS.Open(name, vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("wal: replay: %w", err)
	}
	defer r.Close()
	defer p.ahead.stop() // before the file is closed
	w := newWalk(f, i == p.last, r, &p.ahead, p.buf, func(from, to LSN, why string) {
		if why == "" {
			why = "a place never written"
		}
		p.add(&p.report.Damaged, f, int64(from-f.first), int64(to-from), why+"; the records behind it are whole")
	})
	for {
		rec, lsn, ok, err := w.next()
		if err != nil {
			return fmt.Errorf("wal: replay %s: %w", name, err)
		}
		if !ok {
			break
		}
		if lsn < p.from {
			continue
		}
		p.report.Records++
		p.report.Bytes += int64(len(rec))
		if err := p.fn(lsn, rec); err != nil {
			return fmt.Errorf("wal: replay record at LSN %d: %w", lsn, err)
		}
	}
	p.reach = max(p.reach, w.s.lsn)
	p.buf = w.s.buf
	if w.s.lsn >= f.limit {
		return nil
	}
	return p.judge(i, w.s)
}

// judge reports why file i ended before its limit.
func (p *replay) judge(i int, s *scanner) error {
	f := &p.files[i]
	at, why := int64(s.lsn-f.first), s.why
	dropped, err := s.dropped()
	if err != nil {
		return fmt.Errorf("wal: replay %s: %w", p.l.path(f.first), err)
	}
	if i == p.last {
		if dropped > 0 {
			if why == "" {
				why = "data behind a place never written"
			}
			p.add(&p.report.Torn, f, at, dropped, why)
		}
		return nil
	}
	if why == "" && dropped == 0 {
		next := &p.files[i+1]
		if next.fault == "" && next.head.prev != f.first {
			return nil // the file may be whole; the one after it is missing
		}
		why = fmt.Sprintf("ends before LSN %d", f.limit)
	}
	p.add(&p.report.Damaged, f, at, dropped, why)
	return nil
}
