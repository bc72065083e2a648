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
)

// FileKind is the kind of a side file: one that holds something beside points.
type FileKind uint8

// The kinds of side files. Their numbers are in the MANIFEST.
const (
	TagBase    FileKind = iota + 1 // all tags that there were
	TagChanges                     // what changed since the file before

	FileKinds = iota + 1 // above all
)

// File names one committed side file. Sides are told apart by the directories of their kinds
// (datadir.FileDir).
type File struct {
	Kind  FileKind
	Seq   uint64 // a number of segments, never given again
	Bytes int64  // of each copy
	Items int64  // what the side counts

	// From and Past say which records of the log it holds: those of its side in [From, Past).
	From, Past uint64
	// Replaces is the highest Seq of the files of its side that it stands for: whichever of
	// them is still there does not count. 0 is none.
	Replaces uint64
}

// FileName tells a side file from all others.
type FileName struct {
	Kind FileKind
	Seq  uint64
}

// Name returns the name of the file.
func (f *File) Name() FileName { return FileName{f.Kind, f.Seq} }

// FileChanges are the side files of an edit.
type FileChanges struct {
	Add    []File
	Remove []FileName // unknown ones are passed over
}

func byName(f File, n FileName) int {
	return cmp.Or(cmp.Compare(f.Kind, n.Kind), cmp.Compare(f.Seq, n.Seq))
}

// HasFile reports whether a side file of that name is committed.
func (s *State) HasFile(n FileName) bool {
	_, ok := slices.BinarySearchFunc(s.Files, n, byName)
	return ok
}

func (s *State) applyFiles(e *Edit) {
	for _, n := range e.Files.Remove {
		s.Files = remove(s.Files, n, byName)
	}
	for _, f := range e.Files.Add {
		s.Files = put(s.Files, f, f.Name(), byName)
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
		dst = binary.AppendVarint(dst, f.Items)
		dst = binary.AppendUvarint(dst, f.From)
		dst = binary.AppendUvarint(dst, f.Past-f.From)
		dst = binary.AppendUvarint(dst, f.Replaces)
	}
	return dst
}

func (r *reader) file(tag byte, e *Edit) {
	n := FileName{Kind: FileKind(r.limited(FileKinds - 1)), Seq: r.Uvarint()}
	r.Check(n.Kind != 0)
	if tag == tagRemoveFile {
		e.Files.Remove = append(e.Files.Remove, n)
		return
	}
	f := File{Kind: n.Kind, Seq: n.Seq, Bytes: r.Varint(), Items: r.Varint(), From: r.Uvarint()}
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
