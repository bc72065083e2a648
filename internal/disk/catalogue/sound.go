package catalogue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebble takes a record of its MANIFEST that is damaged for the end of the file. What is
// here notices that.

// The records of pebble's MANIFEST are chunks in blocks of 32 KiB: a masked
// CRC-32C, a length and a type, and one of the types that begin a record.
const (
	manifestBlock = 32 << 10
	chunkHead     = 4 + 2 + 1
	chunkWhole    = 1
	chunkFirst    = 2
	chunkLast     = 4
	crcMask       = 0xa282ead8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkAt returns the length of the chunk at a position with its head, 0 for none.
func chunkAt(data []byte, at int) (size int, kind byte) {
	end := min(len(data), at-at%manifestBlock+manifestBlock)
	if at+chunkHead > end {
		return 0, 0
	}
	kind = data[at+6]
	size = chunkHead + int(binary.LittleEndian.Uint16(data[at+4:]))
	if kind < chunkWhole || kind > chunkLast || at+size > end {
		return 0, 0
	}
	c := crc32.Checksum(data[at+6:at+size], castagnoli)
	if (c>>15|c<<17)+crcMask != binary.LittleEndian.Uint32(data[at:]) {
		return 0, 0
	}
	return size, kind
}

// checkManifest returns an error where something that is no record stands in front
// of one: pebble syncs a record before it writes the next, so that a crash tears
// the last one only.
func checkManifest(data []byte) error {
	bad := -1
	for at := 0; at < len(data); {
		size, kind := chunkAt(data, at)
		switch {
		case size > 0 && bad >= 0 && (kind == chunkWhole || kind == chunkFirst):
			return fmt.Errorf("%d bytes at offset %d are no record, and one stands behind them", at-bad, bad)
		case size > 0:
			at += size
		case at%manifestBlock > manifestBlock-chunkHead:
			at += manifestBlock - at%manifestBlock // too short for a head
		default:
			if bad < 0 {
				bad = at
			}
			at++
		}
	}
	return nil
}

// checkListed checks the MANIFEST that pebble's newest marker names.
func checkListed(files vfs.FS, dir string, names []string) error {
	const marker = "marker.manifest."
	name := ""
	for _, n := range names { // sorted: the last one is the newest
		if rest, ok := strings.CutPrefix(n, marker); ok {
			_, name, _ = strings.Cut(rest, ".")
		}
	}
	if name == "" {
		return nil // pebble says so where there are tables
	}
	data, err := readAll(files, files.PathJoin(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // likewise
	}
	if err != nil {
		return err
	}
	if err := checkManifest(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func sortedList(files vfs.FS, dir string) ([]string, error) {
	names, err := files.List(dir)
	slices.Sort(names)
	return names, err
}

func readAll(files vfs.FS, path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, 1<<30))
	return data, errors.Join(err, f.Close())
}
