package flush_test

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/logrecord"
)

// side is something beside points: notes, which a flush writes into files. From the first one on
// it prints what the flusher asks of it.
type side struct {
	w              *world
	begun          bool
	pending, taken int // notes
	end            wal.LSN
	written        string
}

// note appends a record of a note to the log.
func (s *side) note() {
	if !s.begun {
		s.begun = true
		s.w.Must(s.w.Disk.MkdirAll("/data/tags", 0o755))
	}
	s.w.Must(s.w.Ledger.ChangeTwiceAt(logrecord.AppendTags(nil, 1), func(wal.LSN) { s.pending++ }))
	s.w.Printf("  record %d, a note\n", s.w.Logged())
}

// say prints a line, behind the first note.
func (s *side) say(format string, args ...any) {
	if s.begun {
		s.w.Printf("  side: "+format+"\n", args...)
	}
}

func (s *side) Take(end wal.LSN) {
	s.taken, s.pending, s.end = s.pending, 0, end
	s.say("take, %d notes below record %d", s.taken, s.w.Record(uint64(end)))
}

func (s *side) Write(seq uint64, e *manifest.FileChanges) error {
	if s.taken == 0 {
		return nil
	}
	f, err := s.w.Disk.Create(fmt.Sprintf("/data/tags/%d.notes", seq), vfs.WriteCategoryUnspecified)
	if err != nil {
		s.say("write %d: %v", seq, err)
		return err
	}
	s.w.Must(f.Close())
	s.written = fmt.Sprintf("%d.notes", seq)
	e.Add = append(e.Add, manifest.File{Kind: manifest.TagChanges, Seq: seq, Items: int64(s.taken),
		Past: uint64(s.end)})
	s.say("write %s", s.written)
	return nil
}

func (s *side) Committed() {
	s.say("committed")
	s.taken, s.written = 0, ""
}

func (s *side) PutBack() {
	if s.written != "" {
		s.w.Must(s.w.Disk.Remove("/data/tags/" + s.written))
	}
	s.pending, s.taken, s.written = s.pending+s.taken, 0, ""
	s.say("put back, %d notes wait", s.pending)
}

func (s *side) Unflushed() int64 { return int64(s.pending + s.taken) }

// notes prints the files of notes that the MANIFEST names, and those that are there.
func (s *side) notes() {
	var named []uint64
	for _, f := range s.w.Manifest.State().Files {
		named = append(named, f.Seq)
	}
	files, err := s.w.Disk.List("/data/tags")
	s.w.Must(err)
	slices.Sort(files) // the file system has no order
	s.w.Printf("  notes: named %d, files %s, wait %d\n", named, files, s.pending)
}
