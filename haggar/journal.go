package haggar

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
		_, j.err = fmt.Fprintf(j.w, journalLine, f.State, f.Agent, f.Seq, f.Slot, f.Step, f.Slots,
			f.First, f.Count, f.Refused)
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

// maxLine bounds a line of a journal: the longest bucket, each byte escaped,
// and the rest.
const maxLine = 4096

// ReadJournal reads the journal of a run. A last line that was cut short, as
// by the end of the program, is left out.
func ReadJournal(r io.Reader) (*Journal, error) {
	in := bufio.NewReaderSize(r, maxLine)
	j := &Journal{}
	for line := 1; ; line++ {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && line > 1:
			return j, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("journal: line %d is longer than %d bytes", line, maxLine)
		case err != nil:
			return nil, fmt.Errorf("journal: read line %d: %w", line, err)
		}
		if err := j.parse(string(text), line == 1); err != nil {
			return nil, fmt.Errorf("journal: line %d is %q: %w", line, bytes.TrimSpace(text), err)
		}
	}
}

func (j *Journal) parse(line string, head bool) error {
	if head {
		_, err := fmt.Sscanf(line, journalHead, &j.Bucket, &j.Seed, &j.Walk, &j.Preset)
		if err == nil && j.Preset != "" && j.Preset != Published {
			err = fmt.Errorf("preset %q is unknown, there is %q", j.Preset, Published)
		}
		return err
	}
	var f Flush
	_, err := fmt.Sscanf(line, journalLine, &f.State, &f.Agent, &f.Seq, &f.Slot, &f.Step, &f.Slots,
		&f.First, &f.Count, &f.Refused)
	if err != nil {
		return err
	}
	metrics := maxMetrics
	if j.Preset == Published {
		metrics = len(publishedSeries())
	}
	switch {
	case f.State != Sent && f.State != Acked && f.State != Failed:
		return fmt.Errorf("state %q is unknown", f.State)
	case f.Agent < 0 || f.First < 0 || f.Count < 1 || f.First > metrics-f.Count:
		return fmt.Errorf("metrics %d to %d+%d of agent %d, there are %d", f.First, f.First, f.Count,
			f.Agent, metrics)
	case f.Slots < 1 || f.Slots > flushSize || f.Step < 1:
		return fmt.Errorf("%d slots %d apart, a flush has 1 to %d, at least 1 apart", f.Slots, f.Step,
			flushSize)
	}
	j.Flushes = append(j.Flushes, f)
	return nil
}
