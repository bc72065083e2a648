package flush

import (
	"testing"
	"time"

	"dalmatiner/internal/golden"
)

// TestScripts goes through the scripts in testdata and compares what the flusher does. A line that
// begins with two spaces is a result; -update rewrites them. Slots and chunks count from the time at
// which the clock starts; a block has 60 slots, a chunk 120.
//
//	bucket a                  makes a bucket
//	define a/m1               gives a series a column
//	write a/m1 0 60           stores 60 points from slot 0 on
//	seal [1]                  closes the oldest blocks, or all, and encodes them
//	delete a/m1               deletes a series
//	drop a                    deletes a bucket
//	flush                     flushes what is sealed
//	sync                      syncs the log
//	keep on|off               KeepPositions
//	wait 90s                  lets the clock go on
//	fail <path> io|full|sync|rename|remove    what is written below a path of the directory fails
//	free 5                    so many bytes of the disk are free
//	mend                      the disk is as it was
//	look                      looks at the disk, as every second
func TestScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(s *golden.Script) func(string, []string) {
		w := newWorld(s)
		s.T.Cleanup(w.close)
		return w.run
	})
}

func (w *world) run(command string, args []string) {
	w.T.Helper()
	switch command {
	case "bucket":
		w.bucket(args[0])
	case "define":
		w.define(args[0])
	case "write":
		w.write(args[0], w.Number(args[1]), w.Number(args[2]))
	case "seal":
		blocks := int64(1 << 20)
		if len(args) > 0 {
			blocks = w.Number(args[0])
		}
		w.seal(int(blocks))
	case "delete":
		w.delete(args[0])
	case "drop":
		w.drop(args[0])
	case "flush":
		w.flush()
	case "sync":
		w.must(w.log.Sync())
	case "keep":
		w.flusher.KeepPositions(args[0] == "on")
	case "wait":
		d, err := time.ParseDuration(args[0])
		w.must(err)
		w.now = w.now.Add(d)
		w.clock.Advance()
	case "fail":
		w.disk.fail("/data/"+args[0], args[1])
	case "free":
		w.disk.free.Store(uint64(w.Number(args[0])))
	case "mend":
		w.disk.mend()
	case "look":
		w.pressure.CheckDisk()
		w.waits()
	default:
		w.T.Fatalf("command %q", command)
	}
}
