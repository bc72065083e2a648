package pool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kinds are the kinds of pools, with how their file systems are made.
var kinds = map[string]struct{ mkfs, options []string }{
	"btrfs":   {[]string{"mkfs.btrfs", "-q"}, []string{"loop,compress-force=zstd:1"}},
	"reflink": {[]string{"mkfs.xfs", "-q", "-m", "reflink=1"}, []string{"loop"}},
}

// mounted returns a directory on a new file system of a kind of pool.
func mounted(t *testing.T, kind string) string {
	t.Helper()
	of := kinds[kind]
	dir := t.TempDir()
	file, at := filepath.Join(dir, "file"), filepath.Join(dir, "at")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeEmpty(file, 512<<20); err != nil {
		t.Fatal(err)
	}
	output(t, append(of.mkfs, file)...)
	output(t, "mount", "-o", of.options[0], file, at)
	t.Cleanup(func() { output(t, "umount", at) })
	return at
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// open opens a pool of a kind in a directory.
func open(t *testing.T, kind, dir string) Pool {
	t.Helper()
	p, err := Open(kind + ":" + dir)
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
