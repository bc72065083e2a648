// Package origin says which data directory a file belongs to, and which file of it it is.
package origin

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Directory is the id of a data directory: random bytes of its first start. Zero stands for an
// unknown one.
type Directory [DirectorySize]byte

// The sizes of the encodings, in bytes.
const (
	DirectorySize = 16
	FileSize      = DirectorySize + 8
)

// NewDirectory returns an id that no other directory has.
func NewDirectory() (d Directory) {
	_, _ = rand.Read(d[:]) // it never fails
	return d
}

// String is the id in hexadecimal digits.
func (d Directory) String() string { return hex.EncodeToString(d[:]) }

// ParseDirectory undoes String.
func ParseDirectory(text string) (d Directory, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return Directory(b), true
}

// IsKnown reports whether the id is one.
func (d Directory) IsKnown() bool { return d != Directory{} }

// File tells a file from all others: its directory, and the number that it has there.
type File struct {
	Directory Directory
	Number    uint64
}

// Append appends the encoding of f.
func (f File) Append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, f.Directory[:]...), f.Number)
}

// ParseFile reads what Append wrote at the head of src, which has FileSize bytes at least.
func ParseFile(src []byte) (f File) {
	copy(f.Directory[:], src)
	f.Number = binary.LittleEndian.Uint64(src[DirectorySize:])
	return f
}

// ErrForeign is wrapped by what Check returns.
var ErrForeign = errors.New("it is not the file of its name")

// CheckContent returns why a file of some bytes and a checksum is not the one that the MANIFEST
// names.
func CheckContent(bytes int64, sum uint32, found int64, foundSum uint32) error {
	if found == bytes && foundSum == sum {
		return nil
	}
	return fmt.Errorf(
		"%w: the MANIFEST says that it has %d bytes and the sum %08x, it has %d and %08x",
		ErrForeign, bytes, sum, found, foundSum)
}

// Check returns why a file that says it is found does not belong where f is expected.
func (f File) Check(found File) error {
	switch {
	case found.Directory != f.Directory:
		return fmt.Errorf("%w: it is of the data directory %s, and this one is %s", ErrForeign,
			found.Directory, f.Directory)
	case found.Number != f.Number:
		return fmt.Errorf("%w: it is file %d of this directory under the name of file %d", ErrForeign,
			found.Number, f.Number)
	}
	return nil
}
