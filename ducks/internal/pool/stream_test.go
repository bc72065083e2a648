package pool

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What was written is read, however it is cut, and the end is known.
func TestFrames(t *testing.T) {
	for _, size := range []int{0, 1, maxFrame - 1, maxFrame, maxFrame + 1, 3*maxFrame + 7} {
		var b bytes.Buffer
		f, err := newFrames(&b, "kind-one")
		must(t, err)
		content := noise(size, 1)
		_, err = f.Write(content)
		must(t, err)
		must(t, f.end())
		u, err := newUnframed(&b, "kind-one")
		must(t, err)
		if got, err := io.ReadAll(u); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes of %d, %v", len(got), size, err)
		}
	}
	if _, err := newUnframed(bytes.NewReader([]byte("kind-two")), "kind-one"); !errors.Is(err,
		ErrStream) {
		t.Error(err)
	}
}

// A stream of anything gives its content with the right sum, or an error; never more than was sent.
func FuzzUnframed(f *testing.F) {
	var b bytes.Buffer
	w, err := newFrames(&b, "kind-one")
	if err == nil {
		_, err = w.Write(noise(300, 1))
	}
	if err := errors.Join(err, w.end()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:40])
	f.Fuzz(func(t *testing.T, stream []byte) {
		u, err := newUnframed(bytes.NewReader(stream), "kind-one")
		if err != nil {
			return
		}
		got, err := io.ReadAll(u)
		if len(got) > len(stream) {
			t.Errorf("%d bytes of a stream of %d", len(got), len(stream))
		}
		if err != nil {
			return
		}
		end := 8 + len(got) + sha256.Size // at least, and a length for each frame
		if len(stream) < end {
			t.Errorf("a stream of %d bytes gives %d", len(stream), len(got))
		}
	})
}

// Spans of anything change a file within its size only, and never its size.
func FuzzApply(f *testing.F) {
	const size = 8192
	f.Add(append(make([]byte, 7), append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 65, 66},
		make([]byte, spanHeader)...)...))
	f.Add(make([]byte, spanHeader))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, spans []byte) {
		file, err := os.OpenFile(filepath.Join(dir, "disk"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		must(t, err)
		defer file.Close()
		must(t, file.Truncate(size))
		applied := apply(file, size, bytes.NewReader(spans))
		if info, err := file.Stat(); err != nil || info.Size() != size {
			t.Errorf("%v: the disk has %d bytes, %v", applied, info.Size(), err)
		}
	})
}

// The naive model of a file: which block of the disk each byte lies on, 0 for none.
func blocks(list []extent, size int64) []int64 {
	out := make([]int64, size)
	for _, e := range list {
		for i := range e.length {
			if !e.unwritten {
				out[e.offset+i] = e.physical + i
			}
		}
	}
	return out
}

func TestDifferencesEqualTheModel(t *testing.T) {
	const size = 64
	file := rapid.Custom(func(t *rapid.T) (list []extent) {
		at := int64(0)
		for at < size {
			length := rapid.Int64Range(1, 12).Draw(t, "length")
			length = min(length, size-at)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0: // a hole
			case 1:
				list = append(list, extent{offset: at, physical: 1000 + at, length: length, unwritten: true})
			default:
				list = append(list,
					extent{offset: at, physical: rapid.SampledFrom([]int64{1000, 2000}).Draw(t, "place") + at,
						length: length})
			}
			at += length
		}
		return list
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := file.Draw(t, "a"), file.Draw(t, "b")
		type change struct{ is, zero bool }
		want, got := make([]change, size), make([]change, size)
		inA, inB := blocks(a, size), blocks(b, size)
		for i := range want {
			if inA[i] != inB[i] {
				want[i] = change{true, inB[i] == 0}
			}
		}
		last := int64(-1)
		for _, s := range differences(a, b, size) {
			if s.offset <= last || s.length <= 0 {
				t.Fatalf("span %+v behind %d", s, last)
			}
			for i := range s.length {
				got[s.offset+i] = change{true, s.zero}
			}
			last = s.offset + s.length - 1
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, not %v", got, want)
		}
	})
}

// A pool is that of one process.
func TestLock(t *testing.T) {
	spec := "btrfs:" + t.TempDir()
	first, err := Lock(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(spec); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "btrfs", "btrfs:/none/of/it"} {
		if _, err := Lock(bad); err == nil {
			t.Errorf("%q is locked", bad)
		}
	}
}
