package tagline

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

const (
	batchLines    = 256     // that are applied together
	batchBytes    = 1 << 20 // of lines, after which they are applied
	batchesAhead  = 3       // that are parsed and applied at a time
	maxLineErrors = 100     // that a summary lists
)

// Applier takes changes, as tagstore.Store does.
type Applier interface {
	Apply(ctx context.Context, list []tags.Change) (tagstore.Applied, error)
}

// Imported says what became of lines.
type Imported struct {
	Lines   int64 `json:"lines"`   // that are not empty
	Changed int64 `json:"changed"` // of these, that said something new
	Refused int64 `json:"refused"`
	// Errors are the first of those that were refused.
	Errors []LineError `json:"errors"`
	// Last is to be waited for until all is durable.
	Last tagstore.Applied `json:"-"`
}

// LineError says what is wrong about a line, counted from 1.
type LineError struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

// Import applies the changes of lines. Those that are wrong are in the summary, and the rest goes
// on. The error is that of in or of the Applier: some of the lines may have been taken. Lines are
// parsed beside the changes of those before them. stored is told of bytes of in that are no longer
// held; the goroutine that reads calls it.
func Import(ctx context.Context, in io.Reader, to Applier,
	bucketID func(name string) (uint64, error), stored func(bytes int64)) (Imported, error) {
	m := importer{
		bucketID: bucketID,
		stored:   stored,
		batches:  make(chan *batch),
		free:     make(chan *batch, batchesAhead),
		failed:   make(chan struct{}),
	}
	for range batchesAhead {
		m.free <- new(batch)
	}
	a := applier{to: to, ctx: ctx, out: Imported{Errors: []LineError{}}}
	var done sync.WaitGroup
	done.Go(func() { a.run(&m) })
	err := m.read(in)
	close(m.batches)
	done.Wait()
	return a.out, errors.Join(a.err, err)
}

// batch is lines that are applied together.
type batch struct {
	changes []tags.Change
	at      []int64 // their lines
	bytes   int
	read    int64 // bytes of the body, until the batch is used again
	lines   int64
	refused []LineError
	more    int64 // that were refused
}

// refuse notes what is wrong about a line.
func (b *batch) refuse(line int64, err error) {
	if len(b.refused) < maxLineErrors {
		b.refused = append(b.refused, LineError{Line: line, Error: err.Error()})
	} else {
		b.more++
	}
}

// importer makes batches of lines.
type importer struct {
	bucketID func(name string) (uint64, error)
	stored   func(bytes int64)
	number   int64 // of the line, from 1
	line     line
	batch    *batch

	batches, free chan *batch
	failed        chan struct{} // closed when no more batches are taken
}

// read reads lines until the end, or until no more are taken.
func (m *importer) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, MaxLine)
	for {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			m.send()
			return err
		}
		m.add(line, tooLong)
		if err != nil {
			m.send()
			return nil
		}
		if b := m.batch; b != nil && (b.lines == batchLines || b.bytes >= batchBytes) && !m.send() {
			return nil
		}
	}
}

// send has a batch applied, and reports whether another one is wanted.
func (m *importer) send() bool {
	if m.batch == nil {
		return true
	}
	select {
	case m.batches <- m.batch:
		m.batch = nil
		return true
	case <-m.failed:
		return false
	}
}

// add takes a line.
func (m *importer) add(line []byte, tooLong bool) {
	m.number++
	read := len(line)
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	if m.batch == nil {
		m.batch = <-m.free
		m.stored(m.batch.read)
		m.batch.read = 0
	}
	b := m.batch
	b.read += int64(read)
	b.lines++
	b.bytes += len(line)
	if tooLong {
		b.refuse(m.number, fmt.Errorf("the line has more than %d bytes", MaxLine))
		return
	}
	c, err := m.line.parse(line, m.bucketID)
	if err != nil {
		b.refuse(m.number, err)
		return
	}
	b.changes, b.at = append(b.changes, c), append(b.at, m.number)
}

// applier applies batches.
type applier struct {
	to  Applier
	ctx context.Context
	out Imported
	err error
}

func (a *applier) run(m *importer) {
	for b := range m.batches {
		if a.err == nil {
			if a.err = a.apply(b); a.err != nil {
				close(m.failed)
			}
		}
		clear(b.changes)
		*b = batch{changes: b.changes[:0], at: b.at[:0], refused: b.refused[:0], read: b.read}
		m.free <- b
	}
}

func (a *applier) apply(b *batch) error {
	a.out.Lines += b.lines
	applied, err := a.to.Apply(a.ctx, b.changes)
	a.out.Changed += int64(applied.Changed)
	for _, r := range applied.Refused {
		b.refused = append(b.refused, LineError{Line: b.at[r.At], Error: r.Err.Error()})
	}
	slices.SortFunc(b.refused, func(x, y LineError) int { return cmp.Compare(x.Line, y.Line) })
	a.out.Refused += int64(len(b.refused)) + b.more
	a.out.Errors = append(a.out.Errors,
		b.refused[:min(len(b.refused), maxLineErrors-len(a.out.Errors))]...)
	if applied.Token > 0 {
		a.out.Last = applied
	}
	return err
}
