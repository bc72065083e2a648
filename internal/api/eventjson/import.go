package eventjson

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"dalmatiner/internal/model/term"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

const (
	// importBatch is how many bytes of events are written at once.
	importBatch = 256 << 10
	// maxErrors is how many errors a report has.
	maxErrors = 100
)

// Report says what became of lines.
type Report struct {
	Received  uint64      `json:"received"`
	Accepted  uint64      `json:"accepted"`
	Late      uint64      `json:"late"` // stored
	Duplicate uint64      `json:"duplicate"`
	Refused   uint64      `json:"refused"`
	Bad       uint64      `json:"bad"` // lines that are no events
	Errors    []LineError `json:"errors,omitempty"`
}

// LineError is an error of a line.
type LineError struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// ReadError is an error of the body that lines are read from. What came before it is stored.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// Import stores lines of JSON. The functions may be nil.
type Import struct {
	Store  events.Store
	Bucket string
	Unit   time.Duration      // of times that are numbers
	Ahead  func(events.Ahead) // is told of events whose time was too far ahead
	Bad    func()             // is called for each line that is no event
	Stored func(n int64)      // is told of bytes of the body that are no longer held

	list  []events.Event
	at    []int // lines of the list
	terms []byte
	held  int64 // bytes of lines that are in terms, or were passed over
	token write.Token
	out   Report
}

// Lines stores the events of a body, one JSON object a line. A line that is none is named in the
// report, and the rest goes on. The token stands for all of them. The error is a *ReadError, or one
// of the store.
func (p *Import) Lines(body io.Reader) (Report, write.Token, error) {
	err := p.lines(body)
	return p.out, p.token, err
}

func (p *Import) lines(body io.Reader) error {
	in := bufio.NewScanner(body)
	in.Buffer(make([]byte, 0, 64<<10), term.MaxSize+1)
	n := 0
	for in.Scan() {
		n++
		p.held += int64(len(in.Bytes())) + 1
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		p.out.Received++
		if err := p.line(n, line); err != nil {
			p.bad(n, err)
		}
		if len(p.terms) >= importBatch || p.held >= 2*importBatch {
			if err := p.write(); err != nil {
				return err
			}
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		p.out.Received++
		p.bad(n+1, fmt.Errorf("the line has more than %d bytes; what follows it was not read",
			term.MaxSize))
	} else if in.Err() != nil {
		// What came before is stored: the account tells.
		return errors.Join(&ReadError{in.Err()}, p.write())
	}
	return p.write()
}

func (p *Import) bad(line int, err error) {
	p.out.Bad++
	if p.Bad != nil {
		p.Bad()
	}
	if len(p.out.Errors) < maxErrors {
		p.out.Errors = append(p.out.Errors, LineError{line, err.Error()})
	}
}

func (p *Import) line(n int, line []byte) error {
	start := len(p.terms)
	terms, at, err := AppendLine(p.terms, line, p.Unit)
	if err != nil {
		return err
	}
	p.terms = terms
	p.at = append(p.at, n)
	p.list = append(p.list, events.Event{Time: at, Body: terms[start:len(terms):len(terms)]})
	return nil
}

func (p *Import) write() error {
	if p.Stored != nil {
		defer func(n int64) { p.Stored(n) }(p.held)
	}
	p.held = 0
	if len(p.list) == 0 {
		return nil
	}
	w, err := p.Store.Write(p.Bucket, p.list)
	if err != nil {
		return err
	}
	if p.token.Compare(w.Token) < 0 {
		p.token = w.Token
	}
	if w.Ahead.Events > 0 && p.Ahead != nil {
		p.Ahead(w.Ahead)
	}
	c := &w.Counts
	p.out.Accepted += c.Accepted
	p.out.Late += c.Late
	p.out.Duplicate += c.Duplicate
	p.out.Refused += c.RefusedTotal()
	for _, r := range w.Refused[:min(len(w.Refused), maxErrors-len(p.out.Errors))] {
		p.out.Errors = append(p.out.Errors,
			LineError{p.at[r.At], "the event is refused: " + r.Why.String()})
	}
	p.list, p.at, p.terms = p.list[:0], p.at[:0], p.terms[:0]
	return nil
}
