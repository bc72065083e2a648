package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
)

// Copies is how many copies a file has.
const Copies = 2

// The sizes of the format, in bytes; DESIGN.md has the diagrams.
const (
	formatNumber = 3
	headerSize   = 68
	frameSize    = 32

	blockSize = 128 << 10 // a block ends when its items have as many

	// MaxItem is the longest item.
	MaxItem = 1<<20 - 16
	// maxStored bounds a block in the file: one item, its length and how it is stored.
	maxStored = 1<<20 + 64
)

var (
	magic      = [8]byte{'D', 'M', 'T', 'T', 'W', 'O', '\r', '\n'}
	blockMark  = [4]byte{0xeb, 0x17, 'B', 'K'}
	endMark    = [4]byte{0xee, 0x17, 'E', 'N'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// ErrFormat says that another version of the program wrote a file.
var ErrFormat = errors.New("the file has an unknown format")

var errHeader = errors.New("damaged header")

// appendHeader appends the header of one copy of a file of a directory.
func appendHeader(dst []byte, of origin.Directory, f *manifest.File, number int) []byte {
	at := len(dst)
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, formatNumber)
	dst = append(dst, byte(f.Kind), byte(number+1), 0, 0)
	dst = origin.File{Directory: of, Number: f.Seq}.Append(dst)
	for _, v := range []uint64{f.From, f.Past, f.Replaces} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// parseHeader returns what the header of a copy says of its file, and which copy it is.
func parseHeader(src []byte) (of origin.Directory, f manifest.File, number int, err error) {
	if len(src) < headerSize || [8]byte(src) != magic {
		return of, f, 0, fmt.Errorf("%w: begins with %x", errHeader, src[:min(len(src), 8)])
	}
	want, got := binary.LittleEndian.Uint32(src[headerSize-4:]),
		crc32.Checksum(src[:headerSize-4], castagnoli)
	if want != got {
		return of, f, 0, fmt.Errorf("%w: checksum %08x, computed %08x", errHeader, want, got)
	}
	if n := binary.LittleEndian.Uint32(src[8:]); n != formatNumber {
		return of, f, 0, fmt.Errorf("%w: version %d, this program reads version %d", ErrFormat, n,
			formatNumber)
	}
	own := origin.ParseFile(src[16:])
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(src[16+origin.FileSize+8*i:]) }
	f = manifest.File{
		Kind:     manifest.FileKind(src[12]),
		Seq:      own.Number,
		From:     at(0),
		Past:     at(1),
		Replaces: at(2),
	}
	return own.Directory, f, int(src[13]) - 1, nil
}

// frame is the head of a block, or of the end of a file.
type frame struct {
	end    bool
	number uint32 // of the block; of the end: how many blocks there are
	stored uint32 // bytes of the block
	items  uint32 // in the block
	// entries are what the items of the block say, first what those in front of it do.
	entries uint32
	first   uint64
}

func (h *frame) append(dst []byte) []byte {
	mark := blockMark
	if h.end {
		mark = endMark
	}
	dst = append(dst, mark[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, h.number)
	dst = binary.LittleEndian.AppendUint32(dst, h.stored)
	dst = binary.LittleEndian.AppendUint32(dst, h.items)
	dst = binary.LittleEndian.AppendUint32(dst, h.entries)
	return binary.LittleEndian.AppendUint64(dst, h.first)
}

// sum is the checksum of a block of a copy whose header has the checksum copySum.
func sum(copySum uint32, head, stored []byte) uint32 {
	c := binary.LittleEndian.AppendUint32(make([]byte, 0, 4), copySum)
	return crc32.Update(crc32.Update(crc32.Checksum(c, castagnoli), castagnoli, head), castagnoli,
		stored)
}

// parseFrame returns an error for anything but the head of a block or of the end.
func parseFrame(src []byte) (h frame, err error) {
	switch [4]byte(src) {
	case blockMark:
	case endMark:
		h.end = true
	default:
		return h, fmt.Errorf("no block begins with %x", src[:4])
	}
	h.number = binary.LittleEndian.Uint32(src[4:])
	h.stored = binary.LittleEndian.Uint32(src[8:])
	h.items = binary.LittleEndian.Uint32(src[12:])
	h.entries = binary.LittleEndian.Uint32(src[16:])
	h.first = binary.LittleEndian.Uint64(src[20:])
	if h.stored > maxStored || h.end != (h.stored == 0) {
		return h, fmt.Errorf("a block of %d bytes", h.stored)
	}
	return h, nil
}
