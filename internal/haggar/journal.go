package haggar

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// State tells what is known of a flush.
type State string

// The states of a flush.
const (
	Sent   State = "sent"   // all of it was handed to the connection
	Acked  State = "acked"  // the store says that all of it is durable, refused points apart
	Failed State = "failed" // any part of it may have arrived
)

// Flush is what one agent sent at once: Slots rows, Step slots apart, of the
// metrics First to First+Count-1.
type Flush struct {
	State   State
	Agent   int
	Seq     uint64 // counts the agent's flushes from 1
	Slot    int64  // of the first row
	Step    int64
	Slots   int64
	First   int
	Count   int
	Refused uint64 // Acked: points that were not stored
}

// Points returns the number of points of the flush.
func (f Flush) Points() int64 { return f.Slots * int64(f.Count) }

// Journal is what a run sent. With Data every point of every flush can be
// computed again.
type Journal struct {
	Data
	Bucket  string
	Flushes []Flush // in the order in which their fate was known
}

const (
	journalHead = "haggar-journal 1 bucket %q seed %d walk %t preset %q\n"
	journalLine = "%s agent %d seq %d slot %d step %d slots %d first %d count %d refused %d\n"
)

// journal writes a run's journal. It is safe for use by several goroutines;
// nil writes nothing.
type journal struct {
	mu  sync.Mutex
	w   *bufio.Writer
	err error
}

func newJournal(c *Config) *journal {
	if c.Journal == nil {
		return nil
	}
	j := &journal{w: bufio.NewWriter(c.Journal)}
	_, j.err = fmt.Fprintf(j.w, journalHead, c.Bucket, c.Seed, c.Walk, c.Preset)
	return j
}

func (j *journal) add(f Flush) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		_, j.err = fmt.Fprintf(j.w, journalLine, f.State, f.Agent, f.Seq, f.Slot, f.Step, f.Slots, f.First, f.Count, f.Refused)
	}
}

// sync hands what was added to the writer below, and returns the first error.
func (j *journal) sync() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = j.w.Flush()
	}
	if j.err != nil {
		return fmt.Errorf("write the journal: %w", j.err)
	}
	return nil
}

// ReadJournal reads the journal of a run. A last line that was cut short, as
// by the end of the program, is left out.
func ReadJournal(r io.Reader) (*Journal, error) {
	in := bufio.NewReader(r)
	j := &Journal{}
	head, err := in.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("journal: its first line is not complete: %w", err)
	}
	if _, err := fmt.Sscanf(head, journalHead, &j.Bucket, &j.Seed, &j.Walk, &j.Preset); err != nil {
		return nil, fmt.Errorf("journal: the first line is %q: %w", head, err)
	}
	for line := 2; ; line++ {
		text, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return j, nil
		}
		if err != nil {
			return nil, fmt.Errorf("journal: line %d: %w", line, err)
		}
		var f Flush
		if err := parseFlush(text, &f); err != nil {
			return nil, fmt.Errorf("journal: line %d is %q: %w", line, strings.TrimSpace(text), err)
		}
		j.Flushes = append(j.Flushes, f)
	}
}

func parseFlush(text string, f *Flush) error {
	_, err := fmt.Sscanf(text, journalLine, &f.State, &f.Agent, &f.Seq, &f.Slot, &f.Step, &f.Slots, &f.First, &f.Count, &f.Refused)
	if err != nil {
		return err
	}
	if f.State != Sent && f.State != Acked && f.State != Failed {
		return fmt.Errorf("state %q is unknown", f.State)
	}
	return nil
}
