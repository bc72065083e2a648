package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
)

// Machine is what a reader must know to compare two results.
type Machine struct {
	CPU    string // model name
	Memory string
	Commit string // of the programs that are measured: short, with "-dirty" after changes
	Source string // the same of the tree the benchmark itself was built from
	Load   string // before the start
}

// Look describes this machine and the programs in a directory.
func Look(bin string) Machine {
	m := Machine{
		CPU: Field("/proc/cpuinfo", "model name"), Memory: Field("/proc/meminfo", "MemTotal"),
		Source: source(), Load: Load(),
	}
	if m.Commit = built(bin); m.Commit == "" {
		m.Commit = m.Source
	}
	return m
}

// String describes the machine in a line.
func (m Machine) String() string {
	commit := m.Commit
	if m.Source != m.Commit {
		commit += " (measured by the benchmark of " + m.Source + ")"
	}
	return fmt.Sprintf("%s, %d cores, %s of memory, %s/%s, %s, commit %s. %s before the start.\n",
		m.CPU, runtime.NumCPU(), m.Memory, runtime.GOOS, runtime.GOARCH, runtime.Version(), commit,
		m.Load)
}

// Load tells how busy the machine was in the last minute.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load average unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return "Load average " + load
}

// Field returns the value of the first line "name : value" of a file.
func Field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown " + name
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown " + name
}

// built returns the commit that the store in a directory says it was built
// from, "" where it does not say.
func built(bin string) string {
	out, err := exec.Command(filepath.Join(bin, "ddb"), "--version").Output()
	if err != nil {
		return ""
	}
	return parseVersion(string(out))
}

// described is the end of what git describe prints, behind a tag and the
// number of commits since, if there is a tag.
var described = regexp.MustCompile(`(?:^|-g)([0-9a-f]{7,40}(?:-dirty)?)$`)

// parseVersion returns the commit in what a program says of itself, such as
// "ddb v0.2-7-g1234567-dirty". A version that is exactly a tag is its own name.
func parseVersion(text string) string {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return ""
	}
	version := fields[len(fields)-1]
	if m := described.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	if version == "devel" {
		return ""
	}
	return version
}

// source names the commit that is checked out.
func source() string {
	id, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(id))
	if changed, err := exec.Command("git", "status", "--porcelain", "-uno").Output(); err == nil &&
		len(changed) > 0 {
		name += "-dirty"
	}
	return name
}

// CheckSpace fails where a directory has less free space than is needed, in
// bytes.
func CheckSpace(dir string, need int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fmt.Errorf("%s has %d MiB free and up to %d are needed: name another directory with -dir",
			dir, free>>20, need>>20)
	}
	return nil
}
