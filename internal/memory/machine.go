package memory

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

const (
	// share of the machine, or of the control group, that a node takes unless
	// it is told otherwise, in percent: the page cache needs the rest.
	defaultShare = 60

	// leastDefault is the least limit that a node takes by itself.
	leastDefault = 256 << 20
)

// Default returns the limit of a node that was not told one: 60 % of the
// machine's memory or of the limit of its control group, whichever is less, and
// at least leastDefault. root is the root of the file system. It is 0, no
// limit, where the system does not say what there is.
func Default(root string) int64 {
	have := meminfo(root)
	for _, file := range groupFiles(root) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // another version of control groups, or none
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && (have == 0 || n < have) { // "max" is no number
			have = n
		}
	}
	if have == 0 {
		return 0
	}
	return max(have/100*defaultShare, leastDefault)
}

// meminfo returns the machine's memory, 0 where it is unknown.
func meminfo(root string) int64 {
	text, err := os.ReadFile(path.Join(root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return kib << 10
	}
	return 0
}

// groupFiles returns the files that may hold the limit of the process's control
// group or of one around it, in both versions of control groups.
func groupFiles(root string) []string {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // id:controllers:path
		if len(parts) < 3 {
			continue
		}
		dir, name := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if parts[1] != "memory" {
				continue
			}
			dir, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for group := path.Join("/", parts[2]); ; group = path.Dir(group) {
			files = append(files, path.Join(root, dir, group, name))
			if group == "/" {
				break
			}
		}
	}
	return files
}
