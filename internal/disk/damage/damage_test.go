package damage

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
)

func newNotes() (*Notes, *bytes.Buffer) {
	var log bytes.Buffer
	return &Notes{Logger: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

// TestNamedOnce: damage that is met again is counted, and neither listed nor logged again.
func TestNamedOnce(t *testing.T) {
	n, log := newNotes()
	for range 3 {
		n.Report("a file", errors.New("torn"))
	}
	n.Report("a file", errors.New("gone"))
	names, count := n.Names()
	if got := strings.Join(names, ", "); got != "a file: torn, a file: gone" || count != 4 ||
		strings.Count(log.String(), "\n") != 2 {
		t.Errorf("%s; %d times; logged\n%s", got, count, log)
	}
}

// TestMet: damage in a segment is met where its buckets are read, any other everywhere.
func TestMet(t *testing.T) {
	n, _ := newNotes()
	met := func(want ...uint64) {
		t.Helper()
		for bucket, want := range want {
			if got, any := n.CountOf(uint64(bucket)); got != want || !any {
				t.Errorf("bucket %d has met damage %d times, want %d; any: %v", bucket, got, want, any)
			}
		}
	}
	if got, any := n.CountOf(1); got != 0 || any {
		t.Errorf("damage was met %d times before there was any", got)
	}
	seg := &version.Segment{Meta: manifest.Segment{Ranges: []manifest.Range{{Bucket: 1}, {Bucket: 2}}}}
	n.report("a segment", errors.New("torn"), seg)
	met(0, 1, 1, 0)
	n.report("a segment", errors.New("torn"), seg)
	met(0, 2, 2, 0)
	n.Report("a file", errors.New("torn"))
	met(1, 3, 3, 1)
}

// TestTheListIsBounded, the count is not.
func TestTheListIsBounded(t *testing.T) {
	n, _ := newNotes()
	for i := range maxNames + 7 {
		n.Report("a file", fmt.Errorf("block %d", i))
	}
	if names, count := n.Names(); len(names) != maxNames || count != maxNames+7 {
		t.Errorf("%d names, %d times", len(names), count)
	}
}

// TestOtherErrorsAreNoDamage: a read that was given up says nothing of the file.
func TestOtherErrorsAreNoDamage(t *testing.T) {
	n, _ := newNotes()
	seg := &version.Segment{Meta: manifest.Segment{Kind: manifest.Window, Seq: 7}}
	cause := errors.New("given up")
	if err := n.NoteReadError(seg, cause); !errors.Is(err, cause) ||
		!strings.Contains(err.Error(), seg.Name()) {
		t.Errorf("the error is %v", err)
	}
	if err := n.NoteReadError(seg, nil); err != nil {
		t.Errorf("of nothing the error is %v", err)
	}
	if _, count := n.Names(); count != 0 || n.ReadErrors() != 0 {
		t.Errorf("%d damages, %d of them not read", count, n.ReadErrors())
	}
}
