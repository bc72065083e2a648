package catalogue

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"

	"dalmatiner/internal/testkit/filetest"
)

// records is a MANIFEST as pebble writes it, and where the last record begins.
func records(tb testing.TB, sizes ...int) (data []byte, last int) {
	tb.Helper()
	var buf bytes.Buffer
	w := record.NewWriter(&buf)
	for i, size := range sizes {
		if err := w.Flush(); err != nil {
			tb.Fatal(err)
		}
		last = buf.Len()
		if _, err := w.WriteRecord(bytes.Repeat([]byte{byte(i + 1)}, size)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes(), last
}

// Every flipped bit in front of the last record is found, in records of one and of
// several blocks, and nothing is found in what a crash leaves.
func TestDamagedRecordsAreFound(t *testing.T) {
	for _, sizes := range [][]int{{1}, {40, 100, 7}, {40, manifestBlock, 9},
		{manifestBlock - 2*chunkHead - 3, 1, 200}, {3 * manifestBlock, 50}} {
		data, last := records(t, sizes...)
		step := max(1, len(data)/2000)
		for at := 0; at < len(data); at += step {
			cut := data[:at]
			if err := checkManifest(cut); err != nil {
				t.Fatalf("%v cut at %d of %d: %v", sizes, at, len(data), err)
			}
			data[at] ^= 0x10
			err := checkManifest(data)
			data[at] ^= 0x10
			padding := at < last && at%manifestBlock > manifestBlock-chunkHead
			if err == nil && at < last && !padding {
				t.Fatalf("%v flipped at %d, the last record begins at %d: nothing is found", sizes, at, last)
			}
			if err != nil && at >= last {
				t.Fatalf("%v flipped in the last record at %d: %v", sizes, at, err)
			}
		}
		if err := checkManifest(append(data, make([]byte, 3*manifestBlock)...)); err != nil {
			t.Fatalf("%v with zeros behind: %v", sizes, err)
		}
	}
}

// Every flipped byte of the MANIFEST in front of its last record is said, and its absence.
func TestADamagedManifestIsSaid(t *testing.T) {
	fs, m, generation := filledFS(t)
	seen := 0
	for _, path := range filesOf(t, fs) {
		name := fs.PathBase(path)
		if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		seen++
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		last := len(data)
		for at := 0; at < len(data); {
			size, _ := chunkAt(data, at)
			last = at
			at += max(size, 1)
		}
		for at := 0; at < len(data); at++ {
			flipped := clone(fs)
			filetest.Rewrite(t, flipped, path, func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
			if bad := checkDamaged(t, fmt.Sprintf("%s flipped at %d", path, at), flipped, m,
				generation); !bad && at < last {
				t.Fatalf("%s flipped at %d of %d: nothing is said", path, at, len(data))
			}
			if at%16 != 0 {
				continue
			}
			cut := clone(fs)
			filetest.Rewrite(t, cut, path, func(b []byte) []byte { return b[:at] })
			checkDamaged(t, fmt.Sprintf("%s cut at %d", path, at), cut, m, generation)
		}
		removed := clone(fs)
		if err := removed.Remove(path); err != nil {
			t.Fatal(err)
		}
		if !checkDamaged(t, path+" removed", removed, m, generation) {
			t.Fatalf("%s is gone and nothing is said", path)
		}
	}
	if seen != 1 {
		t.Fatalf("%d files", seen)
	}
}
