package pool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"testing"
)

// open opens a pool of a kind in a directory.
func open(t *testing.T, kind, dir string) Pool {
	t.Helper()
	p, err := Open(kind+":"+dir, Reserve{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// write writes bytes of one value to an image.
func write(t *testing.T, p Pool, image string, offset int64, length int, value byte) {
	t.Helper()
	f, err := os.OpenFile(p.Path(image), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(noise(length, value), offset); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// noise returns bytes that do not compress, and depend on a value.
func noise(length int, value byte) []byte {
	var b bytes.Buffer
	for sum := sha256.Sum256([]byte{value}); b.Len() < length; sum = sha256.Sum256(sum[:]) {
		b.Write(sum[:])
	}
	return b.Bytes()[:length]
}

// content returns the sum of what an image has.
func content(t *testing.T, p Pool, image string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(p.Path(image))
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// sent returns the stream of a snapshot.
func sent(t *testing.T, p Pool, from, to Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Send(context.Background(), from, to, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// must fails the test with an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
