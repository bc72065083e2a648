package manifest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Fields of edits about side files.
const (
	tagAddFile    = 50 // kind 1 · v seq · z bytes · z items · v from · v past - from · v replaces
	tagRemoveFile = 51 // kind 1 · v seq

	// kind 1 · v seq · v n · n × (bucket 8 · z first · v last - first · v items); behind its file
	tagFileRanges   = 52
	tagEventAccount = 53 // v lsn · v n · n bytes
	tagLostFile     = 54 // kind 1 · v seq · v items · noted 1 · v n · n × (as ranges)
	tagFoundFile    = 55 // kind 1 · v seq
)

// FileKind is the kind of a side file: one that holds something beside points.
type FileKind uint8

// The kinds of side files. Their numbers are in the MANIFEST.
const (
	TagBase    FileKind = iota + 1 // all tags that there were
	TagChanges                     // what changed since the file before
	EventFile                      // events, in one copy

	FileKinds = iota + 1 // above all
)

// File names one committed side file. Sides are told apart by the directories of their kinds
// (datadir.FileDir).
type File struct {
	Kind  FileKind
	Seq   uint64 // a number of segments, never given again
	Bytes int64  // of each copy
	Sum   uint32 // of all that it has, 0 for files of which each copy has sums of its own
	Items int64  // what the side counts

	// From and Past say which records of the log it holds: those of its side in [From, Past).
	From, Past uint64
	// Replaces is the highest Seq of the files of its side that it stands for: whichever of
	// them is still there does not count. 0 is none.
	Replaces uint64

	// Ranges say which time of which buckets it has, in ascending order of their ids. Only events
	// have them. They never change.
	Ranges []FileRange
}

// FileRange is what a side file has of a bucket.
type FileRange struct {
	Bucket      uint64
	First, Last int64 // times of its items, in nanoseconds
	Items       int64
}

// RangeOf returns what a file has of a bucket.
func (f *File) RangeOf(bucket uint64) (r FileRange, ok bool) {
	i, ok := slices.BinarySearchFunc(f.Ranges, bucket, func(r FileRange, id uint64) int {
		return cmp.Compare(r.Bucket, id)
	})
	if ok {
		r = f.Ranges[i]
	}
	return r, ok
}

// FileName tells a side file from all others.
type FileName struct {
	Kind FileKind
	Seq  uint64
}

// Name returns the name of the file.
func (f *File) Name() FileName { return FileName{f.Kind, f.Seq} }

// LostFile is a side file that counted and is gone, or one of which some was lost before it was
// replaced.
type LostFile struct {
	FileName
	Items  int64 // that are lost
	Ranges []FileRange

	// Noted says that the account has the loss, and that a file says what is missing.
	Noted bool
}

// FileChanges are the side files of an edit.
type FileChanges struct {
	Add    []File
	Remove []FileName // unknown ones are passed over

	Lost  []LostFile // each replaces what is known of its name
	Found []FileName // are there again, or nothing of them would be read any more

	// EventAccount is the account of events, which holds all records of the log below
	// EventAccountLSN. nil = unchanged.
	EventAccount    []byte
	EventAccountLSN uint64
}

func byName(f File, n FileName) int {
	return cmp.Or(cmp.Compare(f.Kind, n.Kind), cmp.Compare(f.Seq, n.Seq))
}

// HasFile reports whether a side file of that name is committed.
func (s *State) HasFile(n FileName) bool {
	_, ok := slices.BinarySearchFunc(s.Files, n, byName)
	return ok
}

func byLostName(f LostFile, n FileName) int {
	return cmp.Or(cmp.Compare(f.Kind, n.Kind), cmp.Compare(f.Seq, n.Seq))
}

// LostFile returns what is known of a side file that is lost, nil for any other.
func (s *State) LostFile(n FileName) *LostFile {
	i, ok := slices.BinarySearchFunc(s.LostFiles, n, byLostName)
	if !ok {
		return nil
	}
	return &s.LostFiles[i]
}

func (s *State) applyFiles(e *Edit) {
	for _, f := range e.Files.Lost {
		s.LostFiles = put(s.LostFiles, f, f.FileName, byLostName)
	}
	for _, n := range e.Files.Found {
		s.LostFiles = remove(s.LostFiles, n, byLostName)
	}
	for _, n := range e.Files.Remove {
		s.Files = remove(s.Files, n, byName)
	}
	for _, f := range e.Files.Add {
		s.Files = put(s.Files, f, f.Name(), byName)
	}
	if e.Files.EventAccount != nil {
		s.EventAccount, s.EventAccountLSN = slices.Clone(e.Files.EventAccount), e.Files.EventAccountLSN
	}
}

func appendFiles(dst []byte, e *Edit) []byte {
	for _, n := range e.Files.Remove {
		dst = binary.AppendUvarint(append(dst, tagRemoveFile, byte(n.Kind)), n.Seq)
	}
	for i := range e.Files.Add {
		f := &e.Files.Add[i]
		dst = binary.AppendUvarint(append(dst, tagAddFile, byte(f.Kind)), f.Seq)
		dst = binary.AppendVarint(dst, f.Bytes)
		dst = binary.LittleEndian.AppendUint32(dst, f.Sum)
		dst = binary.AppendVarint(dst, f.Items)
		dst = binary.AppendUvarint(dst, f.From)
		dst = binary.AppendUvarint(dst, f.Past-f.From)
		dst = binary.AppendUvarint(dst, f.Replaces)
		dst = appendFileRanges(dst, f)
	}
	for i := range e.Files.Lost {
		f := &e.Files.Lost[i]
		dst = binary.AppendUvarint(append(dst, tagLostFile, byte(f.Kind)), f.Seq)
		dst = binary.AppendUvarint(dst, uint64(f.Items))
		dst = appendRanges(appendBool(dst, f.Noted), f.Ranges)
	}
	for _, n := range e.Files.Found {
		dst = binary.AppendUvarint(append(dst, tagFoundFile, byte(n.Kind)), n.Seq)
	}
	if e.Files.EventAccount != nil {
		dst = binary.AppendUvarint(append(dst, tagEventAccount), e.Files.EventAccountLSN)
		dst = appendBytes(dst, e.Files.EventAccount)
	}
	return dst
}

func appendFileRanges(dst []byte, f *File) []byte {
	if len(f.Ranges) == 0 {
		return dst
	}
	return appendRanges(binary.AppendUvarint(append(dst, tagFileRanges, byte(f.Kind)), f.Seq),
		f.Ranges)
}

func appendRanges(dst []byte, ranges []FileRange) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ranges)))
	for _, g := range ranges {
		dst = binary.AppendVarint(appendID(dst, g.Bucket), g.First)
		dst = binary.AppendUvarint(dst, uint64(g.Last-g.First))
		dst = binary.AppendUvarint(dst, uint64(g.Items))
	}
	return dst
}

// sideFile reads a field about side files.
func (r *reader) sideFile(tag byte, e *Edit) {
	switch tag {
	case tagAddFile, tagRemoveFile:
		r.file(tag, e)
	case tagLostFile, tagFoundFile:
		r.lostFile(tag, e)
	case tagFileRanges:
		r.fileRanges(e)
	case tagEventAccount:
		r.eventAccount(e)
	}
}

// leastRange is the least that a range takes.
const leastRange = 11

// fileRanges reads the ranges of the file that was read last.
func (r *reader) fileRanges(e *Edit) {
	n := FileName{Kind: FileKind(r.byteUpTo(FileKinds - 1)), Seq: r.Uvarint()}
	last := len(e.Files.Add) - 1
	r.Check(last >= 0 && e.Files.Add[last].Name() == n && e.Files.Add[last].Ranges == nil)
	ranges := r.ranges()
	r.Check(len(ranges) > 0)
	if !r.Bad {
		e.Files.Add[last].Ranges = ranges
	}
}

func (r *reader) ranges() []FileRange {
	ranges := make([]FileRange, r.UpTo(uint64(len(r.Src)/leastRange)))
	for i := range ranges {
		g := &ranges[i]
		g.Bucket, g.First = r.U64(), r.Varint()
		g.Last = g.First + int64(r.UpTo(math.MaxInt64))
		g.Items = int64(r.UpTo(math.MaxInt64))
		r.Check(g.Last >= g.First && (i == 0 || g.Bucket > ranges[i-1].Bucket))
	}
	return ranges
}

// lostFile reads a lost file, or the name of one that is found.
func (r *reader) lostFile(tag byte, e *Edit) {
	f := LostFile{FileName: FileName{Kind: FileKind(r.byteUpTo(FileKinds - 1)), Seq: r.Uvarint()}}
	r.Check(f.Kind != 0)
	if tag == tagFoundFile {
		e.Files.Found = append(e.Files.Found, f.FileName)
		return
	}
	f.Items, f.Noted = int64(r.UpTo(math.MaxInt64)), r.byteUpTo(1) == 1
	if f.Ranges = r.ranges(); len(f.Ranges) == 0 {
		f.Ranges = nil
	}
	e.Files.Lost = append(e.Files.Lost, f)
}

// sum reads a checksum.
func (r *reader) sum() uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) eventAccount(e *Edit) {
	e.Files.EventAccountLSN = r.Uvarint()
	e.Files.EventAccount = append([]byte{}, r.Bytes(len(r.Src))...)
}

func (r *reader) file(tag byte, e *Edit) {
	n := FileName{Kind: FileKind(r.byteUpTo(FileKinds - 1)), Seq: r.Uvarint()}
	r.Check(n.Kind != 0)
	if tag == tagRemoveFile {
		e.Files.Remove = append(e.Files.Remove, n)
		return
	}
	f := File{
		Kind:  n.Kind,
		Seq:   n.Seq,
		Bytes: r.Varint(),
		Sum:   r.sum(),
		Items: r.Varint(),
		From:  r.Uvarint(),
	}
	f.Past = f.From + r.UpTo(math.MaxUint64-f.From)
	f.Replaces = r.Uvarint()
	e.Files.Add = append(e.Files.Add, f)
}

// checkFiles refuses an edit that would hide a committed side file.
func (m *Manifest) checkFiles(e *Edit) error {
	for i := range e.Files.Add {
		if n := e.Files.Add[i].Name(); m.state.HasFile(n) && !slices.Contains(e.Files.Remove, n) {
			return fmt.Errorf("manifest: side file %d of kind %d is committed already", n.Seq, n.Kind)
		}
	}
	return nil
}
