package tagline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"dalmatiner/internal/tags"
	"dalmatiner/internal/tagstore"
)

const (
	batch         = 1000 // lines that are applied together
	maxLineErrors = 100  // that a summary lists
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
// on. The error is that of in or of the Applier: some of the lines may have been taken.
func Import(ctx context.Context, in io.Reader, to Applier, bucketID func(name string) (uint64, error)) (Imported, error) {
	m := importer{to: to, ctx: ctx, bucketID: bucketID, out: Imported{Errors: []LineError{}}}
	lines := bufio.NewReaderSize(in, MaxLine)
	for {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return m.out, err
		}
		if addErr := m.add(line, tooLong); addErr != nil {
			return m.out, addErr
		}
		if err != nil {
			return m.out, m.apply()
		}
	}
}

// importer is lines on their way into the store.
type importer struct {
	to       Applier
	ctx      context.Context
	bucketID func(name string) (uint64, error)
	out      Imported
	number   int64 // of the line, from 1

	batch []tags.Change
	at    []int64 // their lines
}

// add takes a line.
func (m *importer) add(line []byte, tooLong bool) error {
	m.number++
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	m.out.Lines++
	if tooLong {
		m.refuse(m.number, fmt.Errorf("the line has more than %d bytes", MaxLine))
		return nil
	}
	c, err := Parse(line, m.bucketID)
	if err != nil {
		m.refuse(m.number, err)
		return nil
	}
	m.batch, m.at = append(m.batch, c), append(m.at, m.number)
	if len(m.batch) < batch {
		return nil
	}
	return m.apply()
}

// refuse notes what is wrong about a line.
func (m *importer) refuse(line int64, err error) {
	m.out.Refused++
	if len(m.out.Errors) < maxLineErrors {
		m.out.Errors = append(m.out.Errors, LineError{Line: line, Error: err.Error()})
	}
}

// apply applies the lines that were collected.
func (m *importer) apply() error {
	a, err := m.to.Apply(m.ctx, m.batch)
	m.out.Changed += int64(a.Changed)
	for _, r := range a.Refused {
		m.refuse(m.at[r.At], r.Err)
	}
	if a.Token > 0 {
		m.out.Last = a
	}
	m.batch, m.at = m.batch[:0], m.at[:0]
	return err
}
