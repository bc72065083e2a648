package diskfile

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// The head of qcow2: where its fields are.
const (
	magic          = "QFI\xfb"
	headBytes      = 72 // of version 2
	versionAt      = 4
	backingAt      = 8  // 8 bytes: where the name of the backing file is; 0: there is none
	bitsAt         = 20 // 4 bytes: the bits of a cluster
	sizeAt         = 24 // 8 bytes: of the disk
	cryptAt        = 32 // 4 bytes: how it is encrypted
	tableSizeAt    = 36 // 4 bytes: entries of the first table
	tableAt        = 40 // 8 bytes: where that is
	featuresAt     = 72 // 8 bytes, from version 3 on: incompatible features
	headSizeAt     = 100
	compressionAt  = 104 // 1 byte, if the head is so long
	extendedHead   = 112
	mostDiskBytes  = 1 << 50
	mostTable      = 4 << 20 // entries of the first table, as QEMU has it
	mostWindow     = 8 << 20 // of a cluster that is compressed with zstd
	leastBits      = 9
	mostBits       = 21
	leastBitsParts = 14 // where clusters have parts
)

// The incompatible features. One that is not here is not known.
const (
	dirty         = 1 << 0 // counts of references may be wrong; they are not read
	corrupt       = 1 << 1
	externalData  = 1 << 2
	compression   = 1 << 3
	extended      = 1 << 4 // entries of second tables say which parts of a cluster are there
	knownFeatures = dirty | compression | extended
)

// The bits of an entry of a table.
const (
	placeBits     = 0x00fffffffffffe00
	compressedBit = 1 << 62
	zeroBit       = 1 // from version 3 on
)

// qcow2 is a disk in a file of that form. It remembers the table and the cluster that it has read
// last: who reads a disk from its first byte to its last reads each once.
type qcow2 struct {
	file     *os.File
	fileSize int64
	version  uint32
	size     int64
	bits     uint
	zstd     bool
	extended bool
	first    []byte // the first table

	mu       sync.Mutex
	second   []byte // the second table that was read last
	secondAt int64
	unpacked []byte // the compressed cluster that was read last
	packed   uint64 // its entry; 0: none
}

// openQcow2 reads the head of a file.
func openQcow2(f *os.File) (*qcow2, error) {
	head := make([]byte, extendedHead)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if n < headBytes {
		return nil, fmt.Errorf("%w: it begins as qcow2 and ends in the head", ErrDamaged)
	}
	q := &qcow2{file: f, fileSize: info.Size(), version: binary.BigEndian.Uint32(head[versionAt:])}
	if err := q.take(head[:n]); err != nil {
		return nil, err
	}
	return q, q.table(head)
}

// take reads what the head says of the disk, and refuses what would be read from elsewhere.
func (q *qcow2) take(head []byte) error {
	var features uint64
	var packing byte
	if q.version >= 3 {
		head = head[:min(len(head), extendedHead)]
		if len(head) < compressionAt {
			return fmt.Errorf("%w: it begins as qcow2 and ends in the head", ErrDamaged)
		}
		features = binary.BigEndian.Uint64(head[featuresAt:])
		if features&compression != 0 && len(head) > compressionAt &&
			binary.BigEndian.Uint32(head[headSizeAt:]) > compressionAt {
			packing = head[compressionAt]
		}
	}
	converts := "qemu-img convert -O raw FILE OUT"
	switch {
	case q.version < 2:
		return refuse("it is a qcow file of version 1", "qemu-img convert -f qcow -O raw FILE OUT")
	case q.version > 3:
		return refuse(fmt.Sprintf("it is a qcow2 file of version %d, and 2 and 3 are known", q.version),
			converts)
	case binary.BigEndian.Uint64(head[backingAt:]) != 0:
		return refuse("it has a backing file", converts)
	case features&externalData != 0:
		return refuse("its data is in another file", converts)
	case binary.BigEndian.Uint32(head[cryptAt:]) != 0:
		return refuse("it is encrypted",
			"qemu-img convert with --object secret,… and --image-opts, as its manual says")
	case features&corrupt != 0:
		return refuse("it says of itself that it is corrupt", "qemu-img check -r all FILE")
	case features&^knownFeatures != 0 || packing > 1:
		return refuse(fmt.Sprintf("it has features that are not known: %#x, compression %d", features,
			packing), converts)
	}
	q.zstd, q.extended = packing == 1, features&extended != 0
	return nil
}

// table reads the first table. A small file cannot make it large.
func (q *qcow2) table(head []byte) error {
	bits := binary.BigEndian.Uint32(head[bitsAt:])
	size, entries := binary.BigEndian.Uint64(head[sizeAt:]),
		binary.BigEndian.Uint32(head[tableSizeAt:])
	at := binary.BigEndian.Uint64(head[tableAt:])
	least := uint32(leastBits)
	if q.extended {
		least = leastBitsParts
	}
	switch {
	case bits < least || bits > mostBits:
		return fmt.Errorf("%w: as qcow2 it has clusters of 2^%d bytes", ErrDamaged, bits)
	case size == 0 || size > mostDiskBytes:
		return fmt.Errorf("%w: as qcow2 it has a disk of %d bytes", ErrDamaged, size)
	case entries > mostTable || at > uint64(q.fileSize) || uint64(entries)*8 > uint64(q.fileSize)-at:
		return fmt.Errorf("%w: as qcow2 it has a table of %d entries at %d, in %d bytes", ErrDamaged,
			entries, at, q.fileSize)
	}
	q.bits, q.size = uint(bits), int64(size)
	if need := (size-1)>>(q.bits+q.perTable()) + 1; uint64(entries) < need {
		return fmt.Errorf("%w: as qcow2 it has a table of %d entries, and needs %d", ErrDamaged, entries,
			need)
	}
	q.first = make([]byte, 8*int(entries))
	_, err := q.file.ReadAt(q.first, int64(at))
	return err
}

// perTable is how many bits of the number of a cluster are its place in a second table.
func (q *qcow2) perTable() uint {
	if q.extended {
		return q.bits - 4
	}
	return q.bits - 3
}

// ReadAt implements io.ReaderAt.
func (q *qcow2) ReadAt(p []byte, at int64) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at >= q.size {
		return 0, io.EOF
	}
	left := p[:min(int64(len(p)), q.size-at)]
	for len(left) > 0 {
		within := at & (1<<q.bits - 1)
		part := left[:min(int64(len(left)), 1<<q.bits-within)]
		if err := q.cluster(part, at>>q.bits, within); err != nil {
			return n, fmt.Errorf("byte %d of the disk: %w", at, err)
		}
		left, at, n = left[len(part):], at+int64(len(part)), n+len(part)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// cluster reads bytes of one, from a place within it on.
func (q *qcow2) cluster(p []byte, number, within int64) error {
	entry, parts, err := q.entry(number)
	switch place := int64(entry & placeBits); {
	case err != nil:
		return err
	case entry&compressedBit != 0:
		return q.compressed(p, entry, within)
	case q.extended:
		return q.parts(p, place, within, parts)
	case place == 0 || q.version > 2 && entry&zeroBit != 0:
		clear(p)
		return nil
	default:
		return q.data(p, place, within)
	}
}

// entry returns what the tables say of a cluster: zeros if there is none.
func (q *qcow2) entry(number int64) (entry, parts uint64, err error) {
	per := q.perTable()
	place := int64(binary.BigEndian.Uint64(q.first[8*(number>>per):]) & placeBits)
	if place == 0 {
		return 0, 0, nil
	}
	if place != q.secondAt {
		q.secondAt = 0
		if q.second == nil {
			q.second = make([]byte, 1<<q.bits)
		}
		if err := q.data(q.second, place, 0); err != nil {
			return 0, 0, fmt.Errorf("its table: %w", err)
		}
		q.secondAt = place
	}
	number &= 1<<per - 1
	if !q.extended {
		return binary.BigEndian.Uint64(q.second[8*number:]), 0, nil
	}
	return binary.BigEndian.Uint64(q.second[16*number:]),
		binary.BigEndian.Uint64(q.second[16*number+8:]), nil
}

// data reads bytes of a cluster that is as it is.
func (q *qcow2) data(p []byte, place, within int64) error {
	if place&(1<<q.bits-1) != 0 {
		return fmt.Errorf("%w: its cluster begins at %d, within another one", ErrDamaged, place)
	}
	if end := place + within + int64(len(p)); end > q.fileSize {
		return fmt.Errorf("%w: it ends at %d, and its cluster at %d: it was not copied whole", ErrDamaged,
			q.fileSize, end)
	}
	_, err := q.file.ReadAt(p, place+within)
	return err
}

// parts reads bytes of a cluster of which 32 parts are there or not.
func (q *qcow2) parts(p []byte, place, within int64, which uint64) error {
	size := int64(1) << q.bits / 32
	for len(p) > 0 {
		i := within / size
		part := p[:min(int64(len(p)), size-within%size)]
		if which>>i&1 == 0 || which>>(32+i)&1 != 0 {
			clear(part)
		} else if err := q.data(part, place, within); err != nil {
			return err
		}
		p, within = p[len(part):], within+int64(len(part))
	}
	return nil
}

// compressed reads bytes of a cluster that is compressed: its place, and in how many sectors of 512
// bytes it ends.
func (q *qcow2) compressed(p []byte, entry uint64, within int64) error {
	if entry != q.packed {
		q.packed = 0
		if q.unpacked == nil {
			q.unpacked = make([]byte, 1<<q.bits)
		}
		if err := q.unpack(entry); err != nil {
			return err
		}
		q.packed = entry
	}
	copy(p, q.unpacked[within:])
	return nil
}

func (q *qcow2) unpack(entry uint64) error {
	placeIn := 62 - (q.bits - 8)
	place := int64(entry & (1<<placeIn - 1))
	sectors := int64(entry &^ (3 << 62) >> placeIn)
	from := io.NewSectionReader(q.file, place, (sectors+1)*512-place%512)
	if place >= q.fileSize {
		return fmt.Errorf("%w: it ends at %d, and a compressed cluster begins at %d: it was not copied "+
			"whole", ErrDamaged, q.fileSize, place)
	}
	to := flate.NewReader(from)
	if q.zstd {
		z, err := Unpack(from)
		if err != nil {
			return err
		}
		to = z
	}
	defer to.Close()
	if _, err := io.ReadFull(to, q.unpacked); err != nil {
		return fmt.Errorf("%w: its compressed cluster at %d: %w", ErrDamaged, place, err)
	}
	return nil
}

// isQcow2 reports whether a file begins as one.
func isQcow2(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
