package measure

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine tells what a reader must know to compare two tables.
func Machine() string {
	kib := Field("/proc/meminfo", "MemTotal")
	return fmt.Sprintf("%s, %d cores, %s of memory, %s/%s, %s, commit %s. %s before the start.\n",
		Field("/proc/cpuinfo", "model name"), runtime.NumCPU(), kib, runtime.GOOS, runtime.GOARCH, runtime.Version(), commit(), Load())
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

// commit names the source the programs are presumably built from.
func commit() string {
	id, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(id))
	if changed, err := exec.Command("git", "status", "--porcelain", "-uno").Output(); err == nil && len(changed) > 0 {
		name += " with changes"
	}
	return name
}
