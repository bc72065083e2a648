package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat; Linux shows it as 1/100 s
// whatever it counts in.
const tick = 10 * time.Millisecond

// cpu is processor time: in user mode, in the kernel.
type cpu struct{ user, sys time.Duration }

func (c cpu) sub(d cpu) cpu { return cpu{c.user - d.user, c.sys - d.sys} }

func (c cpu) sum() time.Duration { return c.user + c.sys }

// cpuTime returns the processor time a process has used, by all of its threads,
// those that ended included.
func (s *server) cpuTime() (cpu, error) {
	path := fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return cpu{}, err
	}
	return parseStat(string(text))
}

// parseStat reads the fields 14 and 15. The second field, the name in
// parentheses, may hold anything.
func parseStat(text string) (cpu, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return cpu{}, fmt.Errorf("stat line of a process has no times: %q", text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return cpu{}, fmt.Errorf("stat line of a process: %w", err)
	}
	sys, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return cpu{}, fmt.Errorf("stat line of a process: %w", err)
	}
	return cpu{time.Duration(user) * tick, time.Duration(sys) * tick}, nil
}

// memory returns a process's resident memory in bytes, now and at its most.
func (s *server) memory() (now, peak int64, err error) {
	path := fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)
	if now, err = kibibytes(fieldOf(path, "VmRSS")); err != nil {
		return 0, 0, err
	}
	peak, err = kibibytes(fieldOf(path, "VmHWM"))
	return now, peak, err
}

func kibibytes(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory of a process is %q: %w", text, err)
	}
	return n << 10, nil
}

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
