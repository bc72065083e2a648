package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
)

// The sizes of the format; DESIGN.md has the byte diagrams.
const (
	formatNumber = 4
	headerSize   = 16
	frameSize    = 12
)

// editLimit is the largest edit in bytes.
const editLimit = 64 << 20

var (
	magic      = [8]byte{'D', 'M', 'T', 'M', 'A', 'N', '\r', '\n'}
	marker     = [4]byte{0xed, 0x17, 'E', 'D'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// ErrFormat says that a MANIFEST was written by another version of the program.
var ErrFormat = errors.New("the MANIFEST has an unknown format")

var (
	errHeader  = errors.New("damaged header")
	errRecord  = errors.New("damaged record")
	errPayload = errors.New("malformed edit")
)

func appendHeader(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, formatNumber)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

func parseHeader(src []byte) (rest []byte, err error) {
	if len(src) < headerSize || [8]byte(src) != magic {
		return src, fmt.Errorf("%w: begins with %x", errHeader, src[:min(len(src), 8)])
	}
	want, got := binary.LittleEndian.Uint32(src[12:]), crc32.Checksum(src[:12], castagnoli)
	if want != got {
		return src, fmt.Errorf("%w: checksum %08x, computed %08x", errHeader, want, got)
	}
	if n := binary.LittleEndian.Uint32(src[8:]); n != formatNumber {
		return src, fmt.Errorf("%w: version %d, this program reads version %d", ErrFormat, n,
			formatNumber)
	}
	return src[headerSize:], nil
}

// appendRecord frames an edit and its number.
func appendRecord(dst []byte, number uint64, e *Edit) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, frameSize)...)
	dst = binary.AppendUvarint(dst, number)
	dst = appendEdit(dst, e)
	payload := dst[at+frameSize:]
	copy(dst[at:], marker[:])
	binary.LittleEndian.PutUint32(dst[at+4:], uint32(len(payload)))
	crc := crc32.Update(crc32.Checksum(dst[at+4:at+8], castagnoli), castagnoli, payload)
	binary.LittleEndian.PutUint32(dst[at+8:], crc)
	return dst
}

func (m *Manifest) encodeSnapshot() []byte {
	return appendRecord(appendHeader(nil), m.number, m.state.snapshot())
}

// recordSum returns the checksum of the whole record at the head of src.
func recordSum(src []byte) uint32 { return binary.LittleEndian.Uint32(src[8:]) }

// parseRecord returns an error for anything but a whole record with a sound
// checksum at the head of src.
func parseRecord(src []byte) (number uint64, e Edit, rest []byte, err error) {
	if len(src) < frameSize || [4]byte(src) != marker {
		return 0, e, src, fmt.Errorf("%w: begins with %x", errRecord, src[:min(len(src), frameSize)])
	}
	n := binary.LittleEndian.Uint32(src[4:])
	if n > editLimit || int(n) > len(src)-frameSize {
		return 0, e, src, fmt.Errorf("%w: %d bytes, of which the file has %d", errRecord, n,
			len(src)-frameSize)
	}
	payload, rest := src[frameSize:frameSize+int(n)], src[frameSize+int(n):]
	want := binary.LittleEndian.Uint32(src[8:])
	got := crc32.Update(crc32.Checksum(src[4:8], castagnoli), castagnoli, payload)
	if want != got {
		return 0, e, src, fmt.Errorf("%w: checksum %08x, computed %08x", errRecord, want, got)
	}
	r := fields.Reader{Src: payload}
	if number = r.Uvarint(); r.Bad {
		return 0, e, src, fmt.Errorf("%w: no number", errPayload)
	}
	e, err = parseEdit(r.Src)
	if err != nil {
		return 0, e, src, err
	}
	return number, e, rest, nil
}

// The fields of an edit. A number is never used for anything else.
const (
	tagReset = iota + 1
	tagAddSegment
	tagRemoveSegment
	tagPutBucket
	tagDeleteBucket
	tagReplayPosition
	tagGroupReplayPosition
	tagAccount
	tagAccountLSN
	tagNextSeq
	tagDeletionsFrom
	tagNextGroup
	tagSuspect
	tagSettled
	tagCatalogue
	tagTombstones
	tagDropTombstones
	tagPurged
	tagLastFlush
	tagLastMerged
	tagLive
	tagLost
	tagFound
	tagCopies
	tagDirectory
)

func appendEdit(dst []byte, e *Edit) []byte {
	dst = appendBegin(dst, &e.begin)
	for _, seq := range e.RemoveSegments {
		dst = binary.AppendUvarint(append(dst, tagRemoveSegment), seq)
	}
	for i := range e.AddSegments {
		s := &e.AddSegments[i]
		dst = binary.AppendUvarint(append(dst, tagAddSegment), s.Seq)
		dst = append(dst, byte(s.Kind))
		dst = binary.AppendVarint(dst, s.Bytes)
		dst = binary.LittleEndian.AppendUint32(dst, s.Sum)
		dst = binary.AppendVarint(dst, s.Points)
		dst = binary.AppendUvarint(dst, s.Generation)
		dst = binary.AppendUvarint(dst, uint64(len(s.Ranges)))
		for _, g := range s.Ranges {
			dst = appendID(dst, g.Bucket)
			dst = binary.AppendVarint(dst, g.First)
			dst = binary.AppendVarint(dst, g.Past-g.First)
		}
		if s.Purged != 0 {
			dst = binary.AppendUvarint(append(dst, tagPurged), s.Seq)
			dst = binary.AppendUvarint(dst, s.Purged)
		}
		dst = appendMarks(dst, s)
	}
	for _, c := range e.Purged {
		dst = binary.AppendUvarint(append(dst, tagPurged), c.Seq)
		dst = binary.AppendUvarint(dst, c.Purged)
	}
	dst = appendTombstones(dst, e)
	dst = appendHoles(dst, e)
	dst = appendLate(dst, e.Late)
	for i := range e.PutBuckets {
		dst = appendBucket(append(dst, tagPutBucket), &e.PutBuckets[i])
	}
	for _, d := range e.DeleteBuckets {
		dst = appendID(append(dst, tagDeleteBucket), d.ID)
		dst = appendBytes(binary.AppendUvarint(dst, d.Clock), d.Name)
	}
	dst = appendNumber(dst, tagReplayPosition, e.ReplayPosition)
	for _, f := range e.ReplayPositions {
		dst = binary.AppendUvarint(append(dst, tagGroupReplayPosition), uint64(f.Group))
		dst = binary.AppendUvarint(dst, f.LSN)
	}
	if e.Account != nil {
		dst = appendBytes(append(dst, tagAccount), e.Account)
	}
	if e.Copies != nil {
		dst = appendBytes(append(dst, tagCopies), e.Copies)
	}
	dst = appendNumber(dst, tagAccountLSN, e.AccountLSN)
	dst = appendNumber(dst, tagNextSeq, e.NextSeq)
	dst = appendNumber(dst, tagDeletionsFrom, e.DeletionsFrom)
	dst = appendNumber(dst, tagNextGroup, uint64(e.NextGroup))
	dst = appendNumber(dst, tagCatalogue, e.Catalogue)
	dst = appendNumber(dst, tagLastFlush, e.LastFlush)
	dst = appendNumber(dst, tagLastMerged, e.LastMerged)
	dst = appendLive(dst, e.Live)
	for _, l := range e.Lost {
		dst = append(binary.AppendUvarint(append(dst, tagLost), l.Seq), byte(l.Kind))
		dst = binary.AppendUvarint(dst, l.Points)
	}
	for _, seq := range e.Found {
		dst = binary.AppendUvarint(append(dst, tagFound), seq)
	}
	dst = appendFiles(dst, e)
	dst = appendFlag(dst, tagSuspect, e.Suspect)
	return appendFlag(dst, tagSettled, e.Settled)
}

func appendBegin(dst []byte, b *begin) []byte {
	dst = appendFlag(dst, tagReset, b.reset)
	if !b.directory.IsKnown() {
		return dst
	}
	return append(append(dst, tagDirectory), b.directory[:]...)
}

func appendBucket(dst []byte, b *buckets.Info) []byte {
	dst = appendID(dst, b.ID)
	dst = appendBytes(dst, b.Name)
	dst = binary.AppendVarint(dst, b.Resolution)
	dst = binary.AppendVarint(dst, b.PPF)
	dst = binary.AppendVarint(dst, b.TTL)
	dst = binary.AppendVarint(dst, b.Grace)
	return appendBool(dst, b.HPTS)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// appendID appends the id of a bucket, whose bits are all in use.
func appendID(dst []byte, id uint64) []byte { return binary.LittleEndian.AppendUint64(dst, id) }

func appendFlag(dst []byte, tag byte, set bool) []byte {
	if set {
		return append(dst, tag)
	}
	return dst
}

func appendNumber(dst []byte, tag byte, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, tag), v)
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// parseEdit returns an edit that shares no memory with src.
func parseEdit(src []byte) (e Edit, err error) {
	r := reader{fields.Reader{Src: src}}
	for len(r.Src) > 0 {
		left, tag := len(r.Src), r.U8()
		if r.field(tag, &e); r.Bad {
			return e, fmt.Errorf("%w: field %d, %d bytes from its end", errPayload, tag, left)
		}
	}
	return e, nil
}

// reader reads the fields of an edit.
type reader struct{ fields.Reader }

func (r *reader) field(tag byte, e *Edit) {
	switch tag {
	case tagReset:
		e.reset = true
	case tagDirectory:
		copy(e.directory[:], r.Take(origin.DirectorySize))
	case tagRemoveSegment:
		e.RemoveSegments = append(e.RemoveSegments, r.Uvarint())
	case tagAddSegment:
		r.Check(len(e.Purged) == 0) // never written: which segment they meant would depend on the order
		e.AddSegments = append(e.AddSegments, r.segment())
	case tagPutBucket, tagDeleteBucket:
		r.bucket(tag, e)
	case tagTombstones, tagRemembered, tagRememberAfter, tagIncarnation, tagRecall, tagDropTombstones:
		r.deletion(tag, e)
	case tagPurged:
		r.purgedThrough(e)
	case tagMarks:
		r.marks(e)
	case tagAddHole:
		e.AddHoles = append(e.AddHoles, hole.ReadHole(&r.Reader))
	case tagEndHole:
		e.EndHoles = append(e.EndHoles, hole.ReadHole(&r.Reader))
	case tagHighest:
		e.Highest = append(e.Highest, Highest{Bucket: r.U64(), Slot: r.Varint()})
	case tagLate:
		e.Late = append(e.Late, r.lateNote())
	case tagAddFile, tagRemoveFile, tagLostFile, tagFoundFile, tagFileRanges, tagEventAccount:
		r.sideFile(tag, e)
	case tagReplayPosition:
		e.ReplayPosition = r.Uvarint()
	case tagGroupReplayPosition:
		e.ReplayPositions = append(e.ReplayPositions, ReplayPosition{Group: r.group(), LSN: r.Uvarint()})
	case tagAccount:
		e.Account = append([]byte{}, r.bytes()...)
	case tagCopies:
		e.Copies = append([]byte{}, r.bytes()...)
	case tagAccountLSN:
		e.AccountLSN = r.Uvarint()
	case tagNextSeq:
		e.NextSeq = r.Uvarint()
	case tagDeletionsFrom:
		e.DeletionsFrom = r.Uvarint()
	case tagNextGroup:
		e.NextGroup = r.group()
	case tagCatalogue:
		e.Catalogue = r.Uvarint()
	case tagLastFlush:
		e.LastFlush = r.Uvarint()
	case tagLastMerged:
		e.LastMerged = r.Uvarint()
	case tagLive:
		e.Live = r.live()
	case tagLost:
		e.Lost = append(e.Lost, LostSegment{Seq: r.Uvarint(), Kind: r.kind(), Points: r.Uvarint()})
	case tagFound:
		e.Found = append(e.Found, r.Uvarint())
	case tagSuspect:
		e.Suspect = true
	case tagSettled:
		e.Settled = true
	default:
		r.Check(false)
	}
}

// bucket reads a bucket that there is, or that was deleted.
func (r *reader) bucket(tag byte, e *Edit) {
	switch tag {
	case tagPutBucket:
		e.PutBuckets = append(e.PutBuckets, buckets.Info{
			ID: r.U64(), Name: string(r.bytes()), Resolution: r.Varint(), PPF: r.Varint(),
			TTL: r.Varint(), Grace: r.Varint(), HPTS: r.byteUpTo(1) == 1,
		})
	case tagDeleteBucket:
		e.DeleteBuckets = append(e.DeleteBuckets, buckets.Deletion{
			ID:    r.U64(),
			Clock: r.Uvarint(),
			Name:  string(r.bytes()),
		})
	}
}

func (r *reader) segment() Segment {
	s := Segment{
		Seq:        r.Uvarint(),
		Kind:       r.kind(),
		Bytes:      r.Varint(),
		Sum:        r.sum(),
		Points:     r.Varint(),
		Generation: r.Uvarint(),
	}
	for n := r.Uvarint(); n > 0 && !r.Bad; n-- {
		g := Range{Bucket: r.U64(), First: r.Varint()}
		g.Past = g.First + r.Varint()
		s.Ranges = append(s.Ranges, g)
	}
	return s
}

// byteUpTo reads a byte of which the format knows the values up to most.
func (r *reader) byteUpTo(most byte) byte {
	b := r.U8()
	r.Check(b <= most)
	return b
}

// kind reads a kind of segment.
func (r *reader) kind() Kind { return Kind(r.byteUpTo(byte(Overlay))) }

// group reads the id of a group.
func (r *reader) group() uint32 { return uint32(r.UpTo(math.MaxUint32)) }

// bytes reads a length and so many bytes.
func (r *reader) bytes() []byte { return r.Bytes(len(r.Src)) }
