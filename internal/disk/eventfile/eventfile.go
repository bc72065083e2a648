// Package eventfile reads and writes immutable files of events. DESIGN.md has the bytes.
//
// The events of a file stand in the order of bucket, time and id, in compressed blocks. An index
// says which block has what, and is there twice. Every block and every copy of the index has a
// checksum that is verified on every read, and that depends on where the block stands.
package eventfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/origin"
)

// MaxBody is the longest body of an event in bytes: a block holds at least one.
const MaxBody = zstd.MaxLength - 1<<10

// ID tells events of one time from each other. A sender that may send an event again gives it an
// id of its own, and the same time.
type ID [16]byte

// Event is one event. The store does not look into its body.
type Event struct {
	Time int64  // in nanoseconds since 1970, from 1 on
	ID   ID     // zero: the store gives it one, and it is no repeat of any other
	Body []byte // an Erlang external term as on the wire
}

// Compare orders events by time and id.
func Compare(a, b *Event) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), bytes.Compare(a.ID[:], b.ID[:]))
}

// LostRange are events of a bucket that damage took: how many there were, and from when to when.
type LostRange struct {
	Bucket      uint64
	First, Last int64 // times in nanoseconds
	Events      int64
}

// Limits of a block. A block is read as a whole: a larger one compresses better, and costs more
// where few of its events are wanted. At 128 KiB the bodies of access logs have 1.1 times the size
// that they have at 1 MiB.
const (
	blockBytes  = 128 << 10
	blockEvents = 8192
)

// Sizes of the format.
const (
	version    = 2
	headerSize = 40
	tailSize   = 56
	// maxIndex bounds what is read as an index: some 4 million blocks.
	maxIndex = 128 << 20
)

var (
	headMagic  = [8]byte{'D', 'M', 'T', 'E', 'V', 'T', '\r', '\n'}
	tailMagic  = [8]byte{'E', 'V', 'T', 'e', 'n', 'd', '\r', '\n'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// ErrFormat is wrapped by the error of Open for a whole file of another version.
var ErrFormat = errors.New("unknown format of a file of events")

// errMalformed is for bytes whose checksum is right and whose content is not.
var errMalformed = errors.New("malformed content")

// DamageError names a range of a file that is not what was written. It is never answered; the
// rest of the file is.
type DamageError struct {
	File   string // path
	Offset int64  // of the range
	Length int64
	Part   string // keys, bodies, header, index, tail or file
	Cause  error  // what is wrong
	Read   bool   // the device could not read the range: it may the next time
}

// Error returns one line: the file, the range, what was found there.
func (e *DamageError) Error() string {
	return fmt.Sprintf("events %s: %s damaged, %d bytes at offset %d: %v; the rest of the file "+
		"stays readable",
		e.File, e.Part, e.Length, e.Offset, e.Cause)
}

// Unwrap returns what is wrong.
func (e *DamageError) Unwrap() error { return e.Cause }

// IsDamage reports whether err is a *DamageError.
func IsDamage(err error) bool {
	var d *DamageError
	return errors.As(err, &d)
}

// checksum is the CRC-32C of bytes that stand at an offset of a file: those of another place are
// damage.
func checksum(of origin.File, offset int64, data []byte) uint32 {
	var mem [origin.FileSize + 8]byte
	place := binary.LittleEndian.AppendUint64(of.Append(mem[:0]), uint64(offset))
	return crc32.Update(crc32.Checksum(place, castagnoli), castagnoli, data)
}

// appendHeader appends the header of a file.
func appendHeader(dst []byte, of origin.File) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(append(dst, headMagic[:]...), version)
	dst = of.Append(dst)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// parseHeader returns which file a header is of. Its errors are errMalformed and ErrFormat.
func parseHeader(src []byte) (of origin.File, err error) {
	sum := headerSize - 4
	if len(src) < headerSize || [8]byte(src) != headMagic ||
		crc32.Checksum(src[:sum], castagnoli) != binary.LittleEndian.Uint32(src[sum:]) {
		return of, errMalformed
	}
	if v := binary.LittleEndian.Uint32(src[8:]); v != version {
		return of, fmt.Errorf("%w: version %d, this program reads version %d", ErrFormat, v, version)
	}
	return origin.ParseFile(src[12:]), nil
}
