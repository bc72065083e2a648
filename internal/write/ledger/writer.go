package ledger

import (
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

// Writer enters the points of one sender. It is not for concurrent use.
type Writer struct {
	l    *Ledger
	rec  []byte // the log record under construction
	last wal.LSN
	into *account.Counts

	sheet    *sheet
	ofCopies bool
}

// NewWriter returns a writer, of copies where the points count in the ledger of copies. It adds
// what became of the points to into, which is nil where nobody asks.
func (l *Ledger) NewWriter(ofCopies bool, into *account.Counts) Writer {
	w := Writer{l: l, into: into, sheet: &l.points, ofCopies: ofCopies}
	if ofCopies {
		w.sheet = &l.copies
	}
	return w
}

// Write stores points in a group, logs them and counts them, in one moment of a flush.
// Where the group says that it is dead or the write stale, nothing of this was done. An
// error is that of the log.
func (w *Writer) Write(g *head.Group, what *head.Write) (head.WriteResult, error) {
	l := w.l
	minute := l.minute()
	l.commit.RLock()
	defer l.commit.RUnlock()
	return g.Apply(*what, l.o.Clock.Monotonic(), func(c *account.Counts) (uint64, error) {
		var headed int
		w.rec, headed = logrecord.AppendWrite(w.rec[:0], g.Bucket, g.ID, what, minute, c)
		if w.ofCopies {
			logrecord.MarkCopies(w.rec)
		}
		lsn, err := l.log.AppendHeaded(w.rec[:headed], w.rec[headed:])
		if err == nil {
			w.sheet.account.Add(g.Bucket, minute, c)
			w.last = lsn
			if w.into != nil {
				w.into.Add(c)
			}
		}
		return uint64(lsn), err
	})
}

// Refuse enters refusals of a bucket, as Ledger.Refuse does.
func (w *Writer) Refuse(bucket uint64, c *account.Counts) error {
	lsn, err := w.l.refuse(w.sheet, bucket, c)
	if err != nil {
		return err
	}
	w.NoteDefinition(lsn)
	if w.into != nil {
		w.into.Add(c)
	}
	return nil
}

// NoteDefinition notes the record at lsn, of a series of the sender; 0 is none.
func (w *Writer) NoteDefinition(lsn wal.LSN) { w.last = max(w.last, lsn) }

// LastLSN returns the position of the last record that stands for something of the sender, 0
// where there is none.
func (w *Writer) LastLSN() wal.LSN { return w.last }
