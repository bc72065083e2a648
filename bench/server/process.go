package server

import (
	"strconv"
	"strings"
	"time"

	"dalmatiner/bench/measure"
)

// CPU returns the processor time the process has used, by all of its threads,
// those that ended included.
func (s *Server) CPU() (measure.CPU, error) { return measure.Time(s.cmd.Process.Pid) }

// Memory returns the process's resident memory in bytes, now and at its most.
func (s *Server) Memory() (now, peak int64, err error) { return measure.Memory(s.cmd.Process.Pid) }

// Transferred returns the bytes that the process has had read from and written to
// storage.
func (s *Server) Transferred() (read, written int64, err error) {
	return measure.Transferred(s.cmd.Process.Pid)
}

// Collecting returns the processor time of all garbage collections so far, of a
// store that reports them: an upper bound on a machine that does other things.
func (s *Server) Collecting() time.Duration { return collecting(s.Lines()) }

// collecting returns the processor time of all garbage collections that the Go
// runtime reported in a log. The runtime measures by the clock: on a machine
// with other work it is more than was really used.
func collecting(log []string) time.Duration {
	var ms float64
	for _, line := range log {
		if !strings.HasPrefix(line, "gc ") {
			continue
		}
		_, rest, _ := strings.Cut(line, " ms clock, ")
		cpu, _, ok := strings.Cut(rest, " ms cpu")
		if !ok {
			continue
		}
		for _, f := range strings.FieldsFunc(cpu, func(r rune) bool { return r == '+' || r == '/' }) {
			if v, err := strconv.ParseFloat(f, 64); err == nil {
				ms += v
			}
		}
	}
	return time.Duration(ms * float64(time.Millisecond))
}
