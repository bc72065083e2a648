// Package measure reads what benchmarks compare: processor time and memory of
// processes, space of directories, the machine they ran on.
package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat; Linux shows it as 1/100 s
// whatever it counts in.
const tick = 10 * time.Millisecond

// CPU is processor time: in user mode, in the kernel.
type CPU struct{ User, Sys time.Duration }

// Sub returns c − d.
func (c CPU) Sub(d CPU) CPU { return CPU{c.User - d.User, c.Sys - d.Sys} }

// Sum returns both kinds together.
func (c CPU) Sum() time.Duration { return c.User + c.Sys }

// Pause waits for d, or until the context ends, whose error it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// stat is what is taken from /proc/PID/stat.
type stat struct {
	parent int
	own    CPU // of all threads, those that ended included
	waited CPU // of children that ended and were waited for
}

// Time returns the processor time a process has used, by all of its threads,
// those that ended included.
func Time(pid int) (CPU, error) {
	s, err := readStat(pid)
	return s.own, err
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(text))
}

// parseStat reads the fields 4 and 14 to 17. The second field, the name in
// parentheses, may hold anything.
func parseStat(text string) (stat, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("stat line of a process has no times: %q", text)
	}
	var n [5]int64
	for i, at := range []int{1, 11, 12, 13, 14} {
		v, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("stat line of a process: %w", err)
		}
		n[i] = v
	}
	ticks := func(n int64) time.Duration { return time.Duration(n) * tick }
	return stat{int(n[0]), CPU{ticks(n[1]), ticks(n[2])}, CPU{ticks(n[3]), ticks(n[4])}}, nil
}

// Tree returns a process and all that descend from it.
func Tree(root int) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil { // else it ended meanwhile
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree, nil
}

// TreeTime returns the processor time of a process and all that descend from
// it, those included that ended and were waited for.
func TreeTime(root int) (CPU, error) {
	tree, err := Tree(root)
	if err != nil {
		return CPU{}, err
	}
	var sum CPU
	for _, pid := range tree {
		s, err := readStat(pid)
		if err != nil && pid == root {
			return CPU{}, err
		}
		sum.User += s.own.User + s.waited.User
		sum.Sys += s.own.Sys + s.waited.Sys
	}
	return sum, nil
}

// Memory returns a process's resident memory in bytes, now and at its most.
func Memory(pid int) (now, peak int64, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	if now, err = Kibibytes(Field(path, "VmRSS")); err != nil {
		return 0, 0, err
	}
	peak, err = Kibibytes(Field(path, "VmHWM"))
	return now, peak, err
}

// TreeMemory returns the sums of Memory over a process and all that descend
// from it.
func TreeMemory(root int) (now, peak int64, err error) {
	tree, err := Tree(root)
	if err != nil {
		return 0, 0, err
	}
	for _, pid := range tree {
		n, p, err := Memory(pid)
		if err != nil && pid == root {
			return 0, 0, err
		}
		now, peak = now+n, peak+p
	}
	return now, peak, nil
}

// Transferred returns the bytes that a process has had read from and written to
// storage; what the page cache answered is not in it.
func Transferred(pid int) (read, written int64, err error) {
	path := fmt.Sprintf("/proc/%d/io", pid)
	if read, err = strconv.ParseInt(Field(path, "read_bytes"), 10, 64); err == nil {
		written, err = strconv.ParseInt(Field(path, "write_bytes"), 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	return read, written, nil
}

// Kibibytes parses a size as /proc prints it, such as "12 kB", into bytes.
func Kibibytes(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory of a process is %q: %w", text, err)
	}
	return n << 10, nil
}
