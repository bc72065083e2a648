package wal

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Heads are repeated while the log is written, not only when it rests or is closed: after
// kill -9 a record is known although all of its own bytes are damaged.
func TestHeadsAreRepeatedWhileTheLogIsWritten(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs)
	body := make([]byte, 100)
	first, err := l.AppendHeaded([]byte("the first"), body)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 * copySpan / len(body) {
		if _, err := l.AppendHeaded([]byte("another"), body); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	killed := vfs.NewMem()
	begin := l.files[0].first
	for _, name := range allFiles(t, fs) {
		writeFile(t, killed, name, readFile(t, fs, name))
	}
	closeLog(t, l)
	name := walFiles(t, killed)[0]
	data := readFile(t, killed, name)
	at := headerSize + int(first-begin)
	copy(data[at:], bytes.Repeat([]byte{0xff}, frameSize+headFrame+len("the first")+len(body)))
	writeFile(t, killed, name, data)

	l = open(t, killed)
	_, report := replayAll(t, l, 1)
	if len(report.Lost) != 1 || report.Lost[0].LSN != first ||
		string(report.Lost[0].Head) != "the first" || report.Unknown != 0 {
		t.Errorf("lost is %+v, unknown %d", report.Lost, report.Unknown)
	}
	closeLog(t, l)
}
