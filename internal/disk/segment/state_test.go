package segment

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A state of any size comes back, needs no block of the file to be whole, and each
// flipped bit of it is damage that is named.
func TestState(t *testing.T) {
	for _, want := range [][]byte{nil, {}, []byte("x"),
		bytes.Repeat([]byte("0123456789abcdef"), 1<<10), bytes.Repeat([]byte{7}, statePart),
		bytes.Repeat([]byte{8}, 2*statePart+5)} {
		fs := vfs.NewMem()
		w, err := Create(fs, "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(1, Hash{1}, 5, 3, []byte("chunk")); err != nil {
			t.Fatal(err)
		}
		sealed, err := w.Seal()
		if err != nil || sealed.Points != 3 {
			t.Fatalf("%+v, %v", sealed, err)
		}
		w.SetState(want)
		info, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(fs, "s")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.State()
		if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%d bytes: got %d, %v", len(want), len(got), err)
		}
		if err := r.Verify(); err != nil {
			t.Errorf("%d bytes: %v", len(want), err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if len(want) > 0 && len(want) < 1<<16 {
			spoilState(t, fs, info, want)
		}
	}
}

// spoilState flips bits of the file, before and in the state.
func spoilState(t *testing.T, fs vfs.FS, info Info, want []byte) {
	t.Helper()
	data := make([]byte, info.Size)
	f, err := fs.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	state := int(info.Size) - footerSize - len(want) - statePartHeader
	for at := 0; at < len(data)-footerSize; at += 1 + len(want)/64 {
		bad := bytes.Clone(data)
		bad[at] ^= 0x40
		fs := vfs.NewMem()
		f, err := fs.Create("s", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bad); err != nil {
			t.Fatal(err)
		}
		r, err := Open(fs, "s")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.State()
		if at < state && (err != nil || !bytes.Equal(got, want)) {
			t.Fatalf("byte %d of the blocks: %v", at, err)
		}
		if at >= state && (!IsDamage(err) || got != nil) {
			t.Fatalf("byte %d of the state: %q, %v", at, got, err)
		}
		if err := r.Verify(); !IsDamage(err) {
			t.Fatalf("byte %d: Verify says %v", at, err)
		}
	}
}
