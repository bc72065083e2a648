package segment

import (
	"errors"
	"fmt"
	"slices"
)

// ErrFormat is wrapped by the error of Open for an intact file whose format number this
// package does not know. Such a file counts as unknown, not as damaged.
var ErrFormat = errors.New("unknown segment format")

const (
	partFooter    = "footer"
	partDirectory = "directory"
	partState     = "state"
	partChunk     = "chunk"
)

// DamageError names a range of a segment that is not what was written. The data of that
// range is never returned (I5). The other blocks of the file stay readable.
type DamageError struct {
	File      string // path
	Offset    int64  // of the damaged range in the file
	Length    int64  // of the damaged range, in bytes
	Want, Got uint32 // CRC-32C: stored and computed; both 0 if Detail is set
	// data, index, rollups, series, buckets, directory, state or footer; chunk if there is no range
	Part   string
	Detail string // what is wrong, if it is not the checksum
	Cause  error  // error of the device, which could not read the range; else nil
}

// Unwrap returns the error of the device, nil if there was none.
func (e *DamageError) Unwrap() error { return e.Cause }

// IsDamage reports whether err holds a DamageError. A call whose error is nothing but damage
// has given all that is intact; any other error has ended it.
func IsDamage(err error) bool { return len(Damages(err)) > 0 }

// ReadFailed reports whether err holds a DamageError for a range that the device could not
// read. Unlike other damage it may be gone the next time.
func ReadFailed(err error) bool {
	return slices.ContainsFunc(Damages(err), func(e *DamageError) bool { return e.Cause != nil })
}

// Error returns one line: the file, the range, what was found there, and a remedy.
func (e *DamageError) Error() string {
	what := e.Detail
	if what == "" {
		what = fmt.Sprintf("CRC-32C is %08x, computed %08x", e.Want, e.Got)
	}
	if e.Part == partChunk {
		return fmt.Sprintf("segment %s: %s; the rest of the file stays readable, restore it from a "+
			"snapshot or a backup", e.File, what)
	}
	return fmt.Sprintf("segment %s: %s damaged, %d bytes at offset %d: %s; the rest of the file "+
		"stays readable, restore it from a snapshot or a backup",
		e.File, e.Part, e.Length, e.Offset, what)
}

// UndecodableError returns the damage of a chunk whose bytes are those that were written, by their
// checksum, and do not decode for the given cause.
func (r *Reader) UndecodableError(h Hash, chunk int64, cause error) *DamageError {
	return &DamageError{
		File:   r.file.path,
		Part:   partChunk,
		Detail: fmt.Sprintf("chunk %d of series %s does not decode: %v", chunk, h, cause),
	}
}

// Damages returns every DamageError in err, however they are joined and wrapped. One call of
// a Reader returns at most 64 of them, and says how many more there are.
func Damages(err error) []*DamageError {
	switch e := err.(type) {
	case nil:
		return nil
	case *DamageError:
		return []*DamageError{e}
	case interface{ Unwrap() []error }:
		var all []*DamageError
		for _, sub := range e.Unwrap() {
			all = append(all, Damages(sub)...)
		}
		return all
	default:
		return Damages(errors.Unwrap(err))
	}
}

// maxDamages bounds the errors one call collects: a file that is bad all over
// is reported as such, not block by block.
const maxDamages = 64

// damages collects what a call finds damaged while it goes on with the rest.
// Each range is kept once.
type damages struct {
	seen map[int64]bool // by offset
	errs []error        // each a *DamageError
}

// add takes err if it is damage and returns nil, or returns err.
func (d *damages) add(err error) error {
	e, ok := err.(*DamageError)
	if !ok {
		return err
	}
	d.note(e)
	return nil
}

// note keeps e unless its range is known.
func (d *damages) note(e *DamageError) {
	if d.seen[e.Offset] {
		return
	}
	if d.seen == nil {
		d.seen = make(map[int64]bool)
	}
	d.seen[e.Offset] = true
	if len(d.errs) < maxDamages {
		d.errs = append(d.errs, e)
	}
}

// join takes what other found.
func (d *damages) join(other *damages) {
	for _, err := range other.errs {
		d.note(err.(*DamageError))
	}
}

// err is all that was collected, or nil.
func (d *damages) err() error {
	if more := len(d.seen) - len(d.errs); more > 0 {
		return errors.Join(append(d.errs, fmt.Errorf("and %d more damaged ranges", more))...)
	}
	return errors.Join(d.errs...)
}
