package flush_test

import (
	"testing"

	"dalmatiner/internal/testkit/golden"
)

// TestScripts goes through the scripts in testdata and compares what the flusher does. A line that
// begins with two spaces is a result; -update rewrites them. Slots and chunks count from the time
// at which the clock starts; a block has 60 slots, a chunk 120. Beside the commands of
// flushtest.World there are:
//
//	delete a/m1               deletes a series
//	flush                     flushes what is sealed
//	adopt a/m1:2 a/m2:0       does so with whole chunks of other nodes, of series that were never deleted
//	sync                      syncs the log
//	keep on|off               KeepPositions
//	look                      looks at the disk, as every second
//	note                      appends a record of something beside points
//	notes                     prints the files of notes
func TestScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(s *golden.Script) func(string, []string) {
		return newWorld(s).run
	})
}

func (w *world) run(command string, args []string) {
	w.T.Helper()
	switch command {
	case "delete":
		w.delete(args[0])
	case "flush":
		w.flush(w.Flusher.Sealed)
	case "adopt":
		w.adopt(args)
	case "sync":
		w.Must(w.Log.Sync())
	case "keep":
		w.Flusher.KeepPositions(args[0] == "on")
	case "look":
		w.Pressure.CheckDisk()
		w.waits()
	case "note":
		w.side.note()
	case "notes":
		w.side.notes()
	default:
		if !w.Run(command, args) {
			w.T.Fatalf("command %q", command)
		}
	}
}
