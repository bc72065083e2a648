package datadir

import (
	"fmt"
	"strconv"
	"strings"

	"dalmatiner/internal/disk/manifest"
)

// fileKinds are the side files by kind: the directory of their side, and how the names of
// their copies end.
var fileKinds = [manifest.FileKinds]struct {
	dir      string
	suffixes []string
}{
	manifest.TagBase:    {"tags", []string{".base", ".base2"}},
	manifest.TagChanges: {"tags", []string{".changes", ".changes2"}},
	manifest.EventFile:  {"events", []string{".evt"}},
}

// FileDirs returns the directories of side files, one for each side.
func FileDirs() (dirs []string) {
	last := ""
	for _, k := range fileKinds[1:] { // those of a side stand together
		if k.dir != last {
			dirs = append(dirs, k.dir)
		}
		last = k.dir
	}
	return dirs
}

// FileDir is the directory of a side file below the data directory.
func FileDir(n manifest.FileName) string { return fileKinds[n.Kind].dir }

// FilePaths are the paths of a side file below the data directory: one for each of its copies.
func FilePaths(n manifest.FileName) []string {
	k := &fileKinds[n.Kind]
	paths := make([]string, len(k.suffixes))
	for i, suffix := range k.suffixes {
		paths[i] = fmt.Sprintf("%s/%016x%s", k.dir, n.Seq, suffix)
	}
	return paths
}

// ParseFile returns which side file has a name in the directory of a side.
func ParseFile(dir, name string) (n manifest.FileName, ok bool) {
	number, suffix, _ := strings.Cut(name, ".")
	seq, err := strconv.ParseUint(number, 16, 63)
	if err != nil || len(number) != 16 {
		return n, false
	}
	for kind := range fileKinds {
		for _, s := range fileKinds[kind].suffixes {
			if fileKinds[kind].dir == dir && s == "."+suffix {
				return manifest.FileName{Kind: manifest.FileKind(kind), Seq: seq}, true
			}
		}
	}
	return n, false
}

// Immutable reports whether a file, by its path, never changes once it has its name.
func Immutable(path string) bool {
	dir, name, _ := strings.Cut(path, "/")
	_, side := ParseFile(dir, name)
	return side || strings.HasSuffix(path, SegmentSuffix)
}
