package contents

import (
	"fmt"
	"io/fs"
	"os"
	"path"

	diskfs "github.com/diskfs/go-diskfs"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/disk"
	"github.com/diskfs/go-diskfs/filesystem"
)

// tree is the files of a partition, by path.
type tree struct {
	Partition
	files map[string]entry
}

// entry is what is compared of a file.
type entry struct {
	size int64
	time int64 // ns
	kind fs.FileMode
}

// read returns the partitions of an image. One whose file system is not known says so.
func read(f *os.File) ([]tree, error) {
	d, err := diskfs.OpenBackend(file.New(f, true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	numbers := []int{0}
	if table, err := d.GetPartitionTable(); err == nil {
		numbers = numbers[:0]
		for _, p := range table.GetPartitions() {
			if p.GetSize() > 0 {
				numbers = append(numbers, p.GetIndex())
			}
		}
	}
	var list []tree
	for _, n := range numbers {
		list = append(list, readPartition(d, n))
	}
	return list, nil
}

func readPartition(d *disk.Disk, number int) (t tree) {
	t = tree{Partition{Number: number}, make(map[string]entry)}
	defer func() {
		if r := recover(); r != nil {
			t.Error = fmt.Sprint("its file system is damaged: ", r)
		}
	}()
	f, err := d.GetFilesystem(number)
	if err != nil {
		t.Error = err.Error()
		return t
	}
	t.Kind = kinds[f.Type()]
	if err := t.walk(f, "."); err != nil {
		t.Error = err.Error()
	}
	return t
}

// kinds are the names of file systems.
var kinds = map[filesystem.Type]string{
	filesystem.TypeFat32: "fat", filesystem.TypeISO9660: "iso9660",
	filesystem.TypeSquashfs: "squashfs", filesystem.TypeExt4: "ext4",
}

// longestPath ends walks through directories that contain themselves.
const longestPath = 4096

func (t *tree) walk(f filesystem.FileSystem, dir string) error {
	if len(dir) > longestPath {
		return fmt.Errorf("a path is longer than %d bytes", longestPath)
	}
	list, err := f.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, e := range list {
		if e.Name() == "." || e.Name() == ".." {
			continue
		}
		if t.Files++; t.Files > mostFiles {
			return fmt.Errorf("it has more than %d files", mostFiles)
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("%s in %s: %w", e.Name(), dir, err)
		}
		at := path.Join(dir, e.Name())
		if info.IsDir() {
			t.files[at] = entry{kind: fs.ModeDir}
			if err := t.walk(f, at); err != nil {
				return err
			}
			continue
		}
		t.files[at] = entry{size: info.Size(), time: info.ModTime().UnixNano(), kind: info.Mode().Type()}
	}
	return nil
}
