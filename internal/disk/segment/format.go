package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/identity"
)

const (
	// format is the version of the format this package writes, and the only one
	// it reads.
	format = 7

	// maxChunk is the largest chunk in bytes: the length field of an index
	// entry has 16 bits. 720 raw points are 5,760 bytes.
	maxChunk = 1<<16 - 1

	// MaxName is the largest series key or bucket name in bytes. The bound keeps blocks
	// below maxBlock.
	MaxName = identity.MaxName

	// blockSize is where a data block ends: before the chunk that would make it
	// longer, CRC included. A look-up of one chunk reads and checks a whole
	// block, which asks for small blocks; every block costs 12 bytes (its CRC
	// and its offset in the directory), which asks for large ones.
	// DESIGN.md has the measurement.
	blockSize = 8 << 10

	// leafSize is where an index leaf ends, CRC included. A cold look-up reads
	// one leaf; a leaf costs 44 bytes in the directory.
	leafSize = 8 << 10

	// recordBlockSize is where a block of identities or buckets ends. They are
	// only ever read from one end to the other.
	recordBlockSize = 64 << 10

	// maxBlock bounds every block a reader accepts: one record of MaxName bytes
	// behind a full block of others, rounded up.
	maxBlock = 1 << 18

	// writeSize is the least size of a write of finished blocks: below it the
	// system call shows (limits: a write costs as much as copying 10 KiB).
	writeSize = 256 << 10

	// readSize bounds one read of adjacent blocks, and so the scratch memory of
	// one reader. It never cuts a single block.
	readSize = 256 << 10
)

const (
	magic = "DMTSEG\r\n"
	// The footer is what a file says it is, which a later program may change, and then tailSize
	// bytes, which stay: with their magic and version each program can name the format of another.
	tailSize   = 128
	ownSize    = origin.FileSize + 4
	footerSize = ownSize + tailSize
	crcSize    = 4
	fenceSize  = 8 + 16 + 8 // bucket, hash, chunk
	offsetSize = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockCRC is the checksum of a block that starts at offset. The offset is part
// of it, so that an intact block in the wrong place is damage too.
func blockCRC(payload []byte, offset int64) uint32 {
	// Eight bytes byte by byte: a slice of a local array would be allocated for
	// every block.
	crc := ^crc32.Checksum(payload, castagnoli)
	for range 8 {
		crc = castagnoli[byte(crc)^byte(offset)] ^ crc>>8
		offset >>= 8
	}
	return ^crc
}

// kind is what a block holds. The blocks of a file lie in this order.
type kind int

const (
	kindData kind = iota
	kindLeaf
	kindSmall // rollups of Small
	kindLarge // rollups of Large
	kindSeries
	kindBucket
	kinds
)

func (k kind) String() string {
	return [kinds]string{"data", "index", "rollups", "rollups", "series", "buckets"}[k]
}

// footer is the fixed last part of a file.
type footer struct {
	info   Info
	origin origin.File
	// blockSum is the CRC-32C of the checksums of all blocks, in their order: two files with the
	// same sum in the MANIFEST have the same content.
	blockSum uint32
	dirOff   int64
	dirCRC   uint32
	blocks   [kinds]uint32 // number of blocks of each kind
	unread   bool          // it stands for one that could not be read yet, see Files.UnreadReader
}

// first is the number of the first block of kind k; first(kinds) is the number
// of all blocks.
func (f *footer) first(k kind) int {
	n := 0
	for i := kindData; i < k; i++ {
		n += int(f.blocks[i])
	}
	return n
}

func appendFooter(dst []byte, f *footer) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = f.origin.Append(dst)
	dst = le.AppendUint32(dst, f.blockSum)
	dst = append(dst, magic...)
	dst = le.AppendUint32(dst, format)
	dst = le.AppendUint32(dst, f.dirCRC)
	dst = le.AppendUint64(dst, uint64(f.dirOff))
	for _, n := range f.blocks {
		dst = le.AppendUint32(dst, n)
	}
	for _, v := range f.info.fields() {
		dst = le.AppendUint64(dst, uint64(*v))
	}
	dst = le.AppendUint32(dst, uint32(f.info.Identities))
	dst = le.AppendUint32(dst, uint32(f.info.Buckets))
	dst = le.AppendUint32(dst, f.info.WindowChunks)
	return le.AppendUint32(dst, blockCRC(dst[start:], f.info.Size-footerSize))
}

// fields lists what the footer stores of an Info in 64 bits, in file order. Size
// is not there: the file knows it.
func (i *Info) fields() []*int64 {
	return []*int64{&i.Chunks, &i.Points, &i.Series, &i.MinChunk, &i.MaxChunk, &i.DataBytes,
		&i.Generation, &i.WindowFirst}
}

// parseFooter reads the footer of a file of size bytes from its last bytes.
// Checks are ordered so that a file of another format is named as such.
func parseFooter(src []byte, file string, size int64) (footer, error) {
	le := binary.LittleEndian
	damage := func(detail string) error {
		return &DamageError{File: file, Offset: max(0, size-footerSize), Length: min(size, footerSize),
			Part: partFooter, Detail: detail}
	}
	if len(src) != footerSize {
		return footer{}, damage(fmt.Sprintf("the file has %d bytes, a footer %d", size, footerSize))
	}
	if string(src[ownSize:ownSize+len(magic)]) != magic {
		return footer{}, damage("no footer at the end of the file")
	}
	want, got := le.Uint32(src[footerSize-crcSize:]),
		blockCRC(src[:footerSize-crcSize], size-footerSize)
	if want != got {
		return footer{}, &DamageError{File: file, Offset: size - footerSize, Length: footerSize,
			Want: want, Got: got, Part: partFooter}
	}
	f := footer{origin: origin.ParseFile(src), blockSum: le.Uint32(src[origin.FileSize:])}
	f.info.Sum = want
	src = src[ownSize:]
	if v := le.Uint32(src[8:]); v != format {
		return footer{}, fmt.Errorf("segment %s: %w: version %d, this program reads version %d", file,
			ErrFormat, v, format)
	}
	f.dirCRC, f.dirOff = le.Uint32(src[12:]), int64(le.Uint64(src[16:]))
	src = src[24:]
	for k := range f.blocks {
		f.blocks[k] = le.Uint32(src)
		src = src[4:]
	}
	for _, v := range f.info.fields() {
		*v = int64(le.Uint64(src))
		src = src[8:]
	}
	f.info.Identities, f.info.Buckets = int64(le.Uint32(src)), int64(le.Uint32(src[4:]))
	f.info.WindowChunks = le.Uint32(src[8:])
	f.info.Size = size
	if f.dirOff < 0 || f.dirOff > size-footerSize || f.dirLen() > size-footerSize-f.dirOff {
		return footer{}, damage(fmt.Sprintf("a directory of %d bytes at offset %d does not fit a file "+
			"of %d bytes",
			f.dirLen(), f.dirOff, size))
	}
	return f, nil
}

// dirLen is the length of the directory in bytes: the offset of every block and
// of the directory itself, one fence per leaf and block of rollups, and the last
// key of all.
func (f *footer) dirLen() int64 {
	n := int64(1)
	for _, b := range f.blocks {
		n += int64(b)
	}
	return n*offsetSize + int64(f.fences()+1)*fenceSize
}

// fences is the number of blocks that have a fence.
func (f *footer) fences() int { return f.first(kindSeries) - f.first(kindLeaf) }

// appendFence appends the key of an index position. Fences compare as bytes in
// the order (bucket, hash, chunk).
func appendFence(dst []byte, bucket uint64, h *Hash, chunk int64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, bucket)
	dst = append(dst, h[:]...)
	return binary.BigEndian.AppendUint64(dst, uint64(chunk)^1<<63)
}
