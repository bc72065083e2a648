package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/testkit/frozen"
)

// frozenRecords are of all lengths, in the order of the log.
func frozenRecords() []string {
	recs := numberedRecords(6, 60)
	recs = append(recs, "\x00", strings.Repeat("\xff\x00", 300), "last")
	return append(recs, numberedRecords(3, 129)...)
}

// The format is frozen: the records give the bytes of the files, and the files
// give the records, with a place behind them for more.
func TestFrozenLog(t *testing.T) {
	fs := vfs.NewMem()
	change := func(o *Options) { o.ID, o.MinLSN = [16]byte{1, 2, 15: 0xff}, 1000 }
	l := open(t, fs, change)
	want := add(t, l, frozenRecords()...)
	for _, head := range []string{"head of a", "head of b", "longer head of c"} {
		lsn, err := l.AppendHeaded([]byte(head), []byte(" record"))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, entry{lsn, head + " record"})
	}
	lsn, err := l.AppendTwice([]byte("twice"))
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, entry{lsn, "twice"})
	closeLog(t, l)
	names := allFiles(t, fs)
	files := map[string][]byte{}
	for _, name := range names {
		frozen.Same(t, name, readFile(t, fs, name))
		files[name] = frozen.Read(t, name)
	}
	if len(names) < 4 || names[len(names)-1] != lastFile {
		t.Errorf("files %v, want some of the log and %s", names, lastFile)
	}
	fs = disk(t, files)
	got, report := replayAll(t, open(t, fs, change), 1000)
	wantEntries(t, got, want)
	if len(report.Torn)+len(report.Damaged)+len(report.Missing) != 0 {
		t.Errorf("%+v", report)
	}
	l = open(t, fs)
	got, _ = replayAll(t, l, 0)
	wantEntries(t, got, want)
	want = append(want, add(t, l, "later")...)
	closeLog(t, l)
	got, _ = replayAll(t, open(t, fs), 0)
	wantEntries(t, got, want)
}

// A header that version 2 does not know is refused by name: of a development
// version, of a later one, or with flags.
func TestOtherHeadersAreNamed(t *testing.T) {
	f := func(change func(header []byte), want string) {
		t.Helper()
		files, names, _ := buildFiles(t, 3, 3)
		data := files[names[0]]
		change(data)
		binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], castagnoli))
		_, err := Open(Options{FS: disk(t, files), Dir: dir})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), names[0]) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want the file's name and %q", err, want)
		}
	}
	for format := range byte(3) {
		f(func(h []byte) {
			copy(h, developmentMagic[:])
			h[8] = format
		}, fmt.Sprintf("format %d of a development version", format))
	}
	f(func(h []byte) { h[8] = 3 }, "version 3 with flags 0 and 0")
	f(func(h []byte) { h[12] = 4 }, "version 2 with flags 4 and 0")
	f(func(h []byte) { h[59] = 1 }, "version 2 with flags 0 and 1000000")
}
