package command

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/duckstest"
)

// testFull: an import that the pool cannot take says so while it comes, and a running device writes
// on.
func testFull(sh *shell, m *machine, pool string) {
	sh.t.Helper()
	taken, image := filepath.Join(pool, "taken"), filepath.Join(sh.t.TempDir(), "image")
	duckstest.Run(sh.t, "fallocate", "-l", "200M", taken)
	duckstest.Run(sh.t, "sh", "-c", "head -c 300M /dev/urandom > "+image)
	disk, off := m.boots()
	defer off()
	sh.says("image import large --file "+image,
		"error: volume large: there is too little room in the pool",
		"are kept for what running devices write")
	sh.says("pool status", "of these for running devices only")
	if err := errors.Join(disk.WriteAt(sh.t.Context(), bytes.Repeat([]byte{3}, 1<<20), 0),
		disk.Flush(sh.t.Context())); err != nil {
		sh.t.Errorf("a running device cannot write: %v", err)
	}
	if s := sh.run("volume list"); strings.Contains(s, "large") {
		sh.t.Errorf("a part of an image is a volume: %s", s)
	}
	if err := os.Remove(taken); err != nil {
		sh.t.Fatal(err)
	}
}

func testImages(sh *shell, dir string) {
	sh.t.Helper()
	raw, copied := filepath.Join(dir, "raw"), filepath.Join(dir, "copied")
	disk := make([]byte, 3<<20+512)
	copy(disk[1<<20:], bytes.Repeat([]byte("image"), 10_000))
	disk[len(disk)-1] = 1
	if err := os.WriteFile(raw, disk, 0o600); err != nil {
		sh.t.Fatal(err)
	}
	sh.says("image import golden --file "+raw+" --note \"from elsewhere\"",
		"version 1 of volume golden, from "+raw)
	sh.says("image import golden --file "+raw, "version 2 of volume golden")
	sh.says("image import linux --file "+raw, "it has 67108864 bytes, and the image 3146240")
	sh.says("volume list", "golden 3.0M 1 import, SHA-256", "from elsewhere")
	sh.says("image export golden --version 1 --file "+copied,
		"version 1 of volume golden, 3.0M, SHA-256")
	if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, disk) {
		sh.t.Errorf("%d bytes, not those of the file: %v", len(got), err)
	}
	if history, err := os.ReadFile(copied + ".json"); err != nil ||
		!strings.Contains(string(history), "from elsewhere") {
		sh.t.Errorf("%s, %v", history, err)
	}
	sh.says("image export golden --file "+copied, "is there already")
	sh.says("image export none --file "+copied+"2", "there are golden, linux")
	testBodies(sh)
	if strings.Contains(sh.run("volume list"), "damaged") {
		sh.t.Error("an image that is not whole is a volume")
	}
	sh.says("pool orphans")
}

// testBodies: what is wrong with the bytes of a disk is the sender's, and is said.
func testBodies(sh *shell) {
	sh.t.Helper()
	url, disk := sh.flags[1]+"/api/v1/volumes/damaged/image?size=1024", strings.Repeat("x", 1024)
	for what, c := range map[string]struct {
		body   string
		sum    string
		coding string
		says   string
	}{
		"another sum":     {disk, strings.Repeat("0", 64), "", "should have"},
		"no sum":          {disk, "", "", "should have"},
		"too short":       {"x", "", "", "ends after 1 of 1024"},
		"too long":        {disk + "x", "", "", "is longer than"},
		"no sum, packed":  {inZstd(sh.t, disk), "", "zstd", "should have"},
		"too long within": {inZstd(sh.t, disk+"x"), "", "zstd", "is longer than"},
		"not packed":      {disk, "", "zstd", "ends after 0 of 1024"},
		"cut, packed":     {inZstd(sh.t, disk)[:10], "", "zstd", "ends after"},
		"another coding":  {disk, "", "gzip", "want zstd, or none"},
		"a VMDK":          {"KDMV" + disk[4:], "", "", "qemu-img convert -f vmdk -O raw FILE OUT"},
		"a VHD": {disk[512:] + "conectix" + disk[520:], "", "",
			"qemu-img convert -f vpc -O raw FILE OUT"},
		"a compressed": {"\x1f\x8b\x08" + disk[3:], "", "", "gunzip -c FILE > OUT"},
		"a qcow2":      {"QFI\xfb" + disk[4:], "", "", "ducks image import takes it"},
	} {
		q, err := http.NewRequestWithContext(sh.t.Context(), http.MethodPut, url,
			strings.NewReader(c.body))
		if err != nil {
			sh.t.Fatal(err)
		}
		token, err := os.ReadFile(sh.flags[3])
		if err != nil {
			sh.t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		q.Header.Set(api.SumHeader, c.sum)
		q.Header.Set("Content-Encoding", c.coding)
		r, err := trusting(sh.t).Do(q)
		if err != nil {
			sh.t.Fatal(err)
		}
		said, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil || r.StatusCode != http.StatusBadRequest ||
			!strings.Contains(string(said), c.says) {
			sh.t.Errorf("%s: %d %s, %v", what, r.StatusCode, said, err)
		}
	}
}

// inZstd returns a text as it crosses the network.
func inZstd(t *testing.T, text string) string {
	t.Helper()
	b, err := io.ReadAll(pack(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestZerosAreNotSent: a disk of zeros costs its reader some bytes for each MiB.
func TestZerosAreNotSent(t *testing.T) {
	const size = 64 << 20
	if b := inZstd(t, strings.Repeat("\x00", size)); len(b) > size/4000 {
		t.Errorf("%d bytes are sent for %d zeros", len(b), size)
	}
}

// TestADamagedFileIsToBlame: an import says which file is damaged, and not that the server has
// gone.
func TestADamagedFileIsToBlame(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		http.Error(w, "{}", http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	sh := &shell{t, []string{"--addr", s.URL, "--token", "x"}}
	const cluster = 512
	f := make([]byte, 4*cluster)
	copy(f, "QFI\xfb\x00\x00\x00\x02")
	// clusters of 512, a disk of as much, tables at 512 and 1024
	f[23], f[30], f[39], f[46], f[cluster+6] = 9, 2, 1, 2, 4
	f[2*cluster+6] = 64 // and data where no file is
	path := filepath.Join(t.TempDir(), "disk.qcow2")
	if err := os.WriteFile(path, f, 0o600); err != nil {
		t.Fatal(err)
	}
	sh.says("image import v --file "+path, "error: "+path+": byte 0 of the disk: the file is damaged",
		"it was not copied whole")
}
