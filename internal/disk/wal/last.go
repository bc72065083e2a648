package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// lastFile says how far the log reached: the header of the newest file, and the LSN
// below which all was durable. It is made before the first file, and has both twice,
// copyDistance apart.
const (
	lastFile = "LAST"
	lastTemp = lastFile + ".tmp"
	lastSize = headerSize + 8 + 4

	// lastAttempts is how often a copy is read again that somebody may just write.
	lastAttempts = 5
)

// fileState is what lastFile says.
type fileState struct {
	head    header
	durable LSN // 0 = the file was not begun
}

func (m *fileState) append(dst []byte) []byte {
	at := len(dst)
	dst = appendHeader(dst, m.head)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.durable))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

func parseLast(src []byte) (m fileState, err error) {
	if len(src) < lastSize {
		return m, fmt.Errorf("%w: %d bytes of %d", errNoHeader, len(src), lastSize)
	}
	if m.head, _, err = parseHeader(src); err != nil {
		return m, err
	}
	body, want := src[:lastSize-4], binary.LittleEndian.Uint32(src[lastSize-4:])
	if got := crc32.Checksum(body, castagnoli); got != want {
		return m, fmt.Errorf("%w: checksum %08x, computed %08x", errBadHeader, want, got)
	}
	m.durable = LSN(binary.LittleEndian.Uint64(src[headerSize:]))
	if m.durable > maxLSN {
		return m, fmt.Errorf("%w: durable up to %d", errBadHeader, m.durable)
	}
	return m, nil
}

// newer reports whether m was written after n.
func (m *fileState) newer(n *fileState) bool {
	return m.head.first > n.head.first || m.head.first == n.head.first && m.durable > n.durable
}

// readLast reads the better copy. The places are copies that are damaged; there is
// no copy at all where found is false.
func readLast(o *Options) (m fileState, found bool, bad []Place, err error) {
	name := o.FS.PathJoin(o.Dir, lastFile)
	f, err := o.FS.Open(name)
	if oserror.IsNotExist(err) {
		return m, false, []Place{
			{File: name, Reason: "it is missing: how far the log reached is not known"}}, nil
	}
	if err != nil {
		return m, false, nil, err
	}
	defer f.Close()
	for attempt := 1; ; attempt++ {
		found, bad = false, nil
		var mem [copyDistance + lastSize]byte
		n, err := f.ReadAt(mem[:], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return m, false, nil, fmt.Errorf("%s: %w", name, err)
		}
		for at := int64(0); at <= copyDistance; at += copyDistance {
			one, err := parseLast(mem[min(at, int64(n)):min(at+lastSize, int64(n))])
			if errors.Is(err, ErrFormat) {
				return m, false, nil, fmt.Errorf("%s: %w", name, err)
			}
			if err != nil {
				bad = append(bad, Place{File: name, Offset: at, Bytes: lastSize, Reason: err.Error()})
			} else if !found || one.newer(&m) {
				m, found = one, true
			}
		}
		if !allZero(mem[lastSize:copyDistance]) {
			bad = append(bad, Place{
				File:   name,
				Offset: lastSize,
				Bytes:  copyDistance - lastSize,
				Reason: "it holds something between the copies",
			})
		}
		if len(bad) == 0 || attempt == lastAttempts {
			return m, found, bad, nil
		}
	}
}

// createLast makes the file anew.
func createLast(fs vfs.FS, dir string, m *fileState) error {
	name := fs.PathJoin(dir, lastFile)
	f, err := fs.Create(fs.PathJoin(dir, lastTemp), vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	data := m.append(nil)
	data = append(data, make([]byte, copyDistance-lastSize)...)
	if _, err = f.Write(m.append(data)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := fs.Rename(fs.PathJoin(dir, lastTemp), name); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return durable.SyncDir(fs, dir)
}
