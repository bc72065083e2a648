package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The sizes of the format; DESIGN.md has the byte diagrams.
const (
	formatNumber = 2
	headerSize   = 64
	frameSize    = 8
	suffix       = ".wal"
)

// The flags in a frame's length.
const (
	ownFlag    = 1 << 31 // a record of the log itself; nobody is given it
	headedFlag = 1 << 30 // headFrame and a head come before the rest of the record
	lengthMask = headedFlag - 1

	headFrame = 5   // length of the head, its checksum
	maxHead   = 255 // bytes
)

// recordLimit is the largest record any log may hold, whatever its options
// say. A reader refuses longer ones before it allocates.
const recordLimit = 64 << 20

// maxLSN leaves room above every position, so that sums of an LSN and a file
// size never overflow. At 1 GB/s it is reached after 146 years.
const maxLSN LSN = 1 << 62

var (
	magic            = [8]byte{'D', 'M', 'T', 'W', 'A', 'L', '\r', '\n'}
	developmentMagic = [8]byte{'D', 'D', 'B', 'W', 'A', 'L', '\r', '\n'} // of formats before version 1
	castagnoli       = crc32.MakeTable(crc32.Castagnoli)
)

// ErrFormat is wrapped by the error of Open and Inspect for a log of another format.
var ErrFormat = errors.New("the log has an unknown format")

var (
	errNoHeader  = errors.New("no header")
	errBadHeader = errors.New("damaged header")
)

// header is the first block of a file.
type header struct {
	id    [16]byte // of the log; a file of another log is not replayed
	first LSN      // of the file's first record, also in its name
	clean LSN      // no record begins in [clean, first): settled when the file was created
	prev  LSN      // first LSN of the file before it, 0 = none
}

func appendHeader(dst []byte, h header) []byte {
	at := len(dst)
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, formatNumber)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, h.id[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.first))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.clean))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.prev))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// parseHeader returns errNoHeader or errBadHeader for bytes that are not a
// whole header and ErrFormat for a whole one of another version.
func parseHeader(src []byte) (h header, rest []byte, err error) {
	if len(src) < headerSize {
		return header{}, src, fmt.Errorf("%w: %d bytes of %d", errNoHeader, len(src), headerSize)
	}
	development := [8]byte(src) == developmentMagic
	if !development && [8]byte(src) != magic {
		return header{}, src, fmt.Errorf("%w: begins with %x", errNoHeader, src[:8])
	}
	want, got := binary.LittleEndian.Uint32(src[60:]), crc32.Checksum(src[:60], castagnoli)
	if want != got {
		return header{}, src, fmt.Errorf("%w: checksum %08x, computed %08x", errBadHeader, want, got)
	}
	flags, more := binary.LittleEndian.Uint32(src[12:]), binary.LittleEndian.Uint32(src[56:])
	switch n := binary.LittleEndian.Uint32(src[8:]); {
	case development:
		return header{}, src,
			fmt.Errorf("%w: format %d of a development version, this program reads version %d", ErrFormat, n,
				formatNumber)
	case n != formatNumber || flags|more != 0:
		return header{}, src,
			fmt.Errorf("%w: version %d with flags %x and %x, this program reads version %d without any",
				ErrFormat, n, flags, more, formatNumber)
	}
	copy(h.id[:], src[16:])
	h.first = LSN(binary.LittleEndian.Uint64(src[32:]))
	h.clean = LSN(binary.LittleEndian.Uint64(src[40:]))
	h.prev = LSN(binary.LittleEndian.Uint64(src[48:]))
	if h.first == 0 || h.first > maxLSN || h.clean > h.first || h.prev >= h.first {
		return header{}, src, fmt.Errorf("%w: first %d, clean end before it %d, previous file %d",
			errBadHeader, h.first, h.clean, h.prev)
	}
	return h, src[headerSize:], nil
}

// sums computes the checksums of the records of a log. What they cover beside the
// payload is in memory of its own, which as a local would be allocated for every
// record.
type sums struct {
	id  uint32 // of the log: a record of another one is none
	mem [16 + headFrame]byte
}

func newSums(id [16]byte) sums { return sums{id: crc32.Checksum(id[:], castagnoli)} }

// record returns the checksum of a record from that of its payload. The payload
// comes first, so that its checksum is computed outside of the lock, before the
// record's position is known. word is the length with its flags, head the headFrame
// of a record that has one.
func (s *sums) record(payload, word uint32, lsn LSN, head []byte) uint32 {
	binary.LittleEndian.PutUint32(s.mem[0:], word)
	binary.LittleEndian.PutUint64(s.mem[4:], uint64(lsn))
	binary.LittleEndian.PutUint32(s.mem[12:], s.id)
	return crc32.Update(payload, castagnoli, s.mem[:16+copy(s.mem[16:], head)])
}

// head returns the checksum of a head from that of its bytes. It covers length and
// position of the record, so that they can be trusted where the rest is damaged.
func (s *sums) head(head, word uint32, lsn LSN) uint32 {
	return s.record(^head, word, lsn, nil)
}

// frame is a whole record where it lies.
type frame struct {
	lsn  LSN
	size int    // with everything before the payload
	own  bool   // see ownFlag
	rec  []byte // payload: head and body
	head int    // bytes of the head, 0 = none
}

// parseFrame reads the record at the begin of src, which is whole and lies at lsn,
// or says why there is none. src has all bytes that the length claims.
func (s *sums) parseFrame(src []byte, lsn LSN) (f frame, why string) {
	word, want := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:])
	length := int(word & lengthMask)
	f = frame{
		lsn:  lsn,
		size: frameSize + length,
		own:  word&ownFlag != 0,
		rec:  src[frameSize : frameSize+length],
	}
	var prefix []byte
	if word&headedFlag != 0 {
		if f.own || length < headFrame {
			return f, fmt.Sprintf("record of %d bytes with a head", length)
		}
		prefix, f.rec = f.rec[:headFrame], f.rec[headFrame:]
		f.head = int(prefix[0])
	}
	got := s.record(crc32.Checksum(f.rec, castagnoli), word, lsn, prefix)
	if got != want {
		return f, fmt.Sprintf("record of %d bytes: checksum %08x, computed %08x", length, want, got)
	}
	if prefix != nil && (f.head == 0 || f.head > len(f.rec)) {
		return f, fmt.Sprintf("record of %d bytes with a head of %d", length, f.head)
	}
	return f, ""
}

// parseHead reads the head at the begin of src, which lies at lsn, of a record that
// may be damaged behind it. It returns the size of the record, 0 where there is no
// whole head.
func (s *sums) parseHead(src []byte, lsn LSN) (head []byte, size int) {
	if len(src) < frameSize+headFrame {
		return nil, 0
	}
	word := binary.LittleEndian.Uint32(src)
	length, n := int(word&lengthMask), int(src[frameSize])
	if word&(ownFlag|headedFlag) != headedFlag || n == 0 || length < headFrame+n ||
		length > recordLimit {
		return nil, 0
	}
	if len(src) < frameSize+headFrame+n {
		return nil, 0
	}
	head = src[frameSize+headFrame:][:n]
	if s.head(crc32.Checksum(head, castagnoli), word, lsn) != binary.LittleEndian.Uint32(
		src[frameSize+1:]) {
		return nil, 0
	}
	return head, frameSize + length
}

func fileName(first LSN) string {
	return fmt.Sprintf("%016x%s", uint64(first), suffix)
}

// parseFileName reports false for any name that fileName does not make.
func parseFileName(name string) (LSN, bool) {
	hex, ok := strings.CutSuffix(name, suffix)
	if !ok || len(hex) != 16 || strings.ToLower(hex) != hex {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil || n == 0 || LSN(n) > maxLSN {
		return 0, false
	}
	return LSN(n), true
}
