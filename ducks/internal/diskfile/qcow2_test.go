package diskfile

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// form is how a disk is written into a qcow2 file.
type form struct {
	version          uint32
	bits             uint
	packed           string // deflate, zstd, or empty: clusters are as they are
	extended         bool
	features         uint64
	crypt, backingAt uint32
}

func (f form) String() string {
	return fmt.Sprintf("version %d, clusters of 2^%d, %q, parts %t", f.version, f.bits, f.packed,
		f.extended)
}

// file writes a disk by the specification. Clusters of zeros are left out; of extended ones, so are
// parts.
func (f form) file(t testing.TB, disk []byte) []byte {
	t.Helper()
	cluster, per, width := 1<<f.bits, 1<<f.bits/8, 8
	if f.extended {
		per, width = per/2, 16
	}
	clusters := (len(disk) + cluster - 1) / cluster
	tables := (clusters + per - 1) / per
	first := max(cluster, extendedHead) // where the first table is
	file := make([]byte, first+(tables*8+cluster-1)/cluster*cluster+tables*cluster)
	second := len(file) - tables*cluster
	f.head(file, len(disk), tables, first)
	for i := range tables {
		binary.BigEndian.PutUint64(file[first+8*i:], 1<<63|uint64(second+i*cluster))
	}
	for i := range clusters {
		data := make([]byte, cluster)
		copy(data, disk[i*cluster:])
		if len(bytes.Trim(data, "\x00")) == 0 {
			continue
		}
		var entry, parts uint64
		file, entry, parts = f.cluster(t, file, data)
		at := second + i/per*cluster + i%per*width
		binary.BigEndian.PutUint64(file[at:], entry)
		if f.extended {
			binary.BigEndian.PutUint64(file[at+8:], parts)
		}
	}
	return file
}

func (f form) head(file []byte, size, tables, first int) {
	put32, put64 := binary.BigEndian.PutUint32, binary.BigEndian.PutUint64
	copy(file, magic)
	put32(file[versionAt:], f.version)
	put64(file[backingAt:], uint64(f.backingAt))
	put32(file[bitsAt:], uint32(f.bits))
	put64(file[sizeAt:], uint64(size))
	put32(file[cryptAt:], f.crypt)
	put32(file[tableSizeAt:], uint32(tables))
	put64(file[tableAt:], uint64(first))
	if f.version < 3 {
		return
	}
	features := f.features
	if f.packed == "zstd" {
		features |= compression
		file[compressionAt] = 1
	}
	if f.extended {
		features |= extended
	}
	put64(file[featuresAt:], features)
	put32(file[headSizeAt:], extendedHead)
}

// cluster appends one, and returns what the tables say of it.
func (f form) cluster(t testing.TB, file, data []byte) (_ []byte, entry, parts uint64) {
	t.Helper()
	if b := pack(t, f.packed, data); b != nil && len(b) < len(data) {
		place := len(file)
		sectors := (place%512+len(b)+511)/512 - 1
		return append(file, b...), compressedBit | uint64(sectors)<<(62-(f.bits-8)) | uint64(place), 0
	}
	cluster := 1 << f.bits
	file = append(file, make([]byte, (cluster-len(file)%cluster)%cluster)...)
	place := len(file)
	file = append(file, data...)
	for i := range 32 {
		if part := data[i*cluster/32 : (i+1)*cluster/32]; f.extended &&
			len(bytes.Trim(part, "\x00")) == 0 {
			copy(file[place+i*cluster/32:], bytes.Repeat([]byte("x"), cluster/32)) // that is not there
			// and may be said to be zeros
			parts |= uint64(i%2) << (32 + i)
		} else if f.extended {
			parts |= 1 << i
		}
	}
	return file, 1<<63 | uint64(place), parts
}

func pack(t testing.TB, how string, data []byte) []byte {
	t.Helper()
	if how == "" {
		return nil
	}
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	if how == "zstd" {
		w, err = zstd.NewWriter(&b)
	} else {
		w, err = flate.NewWriter(&b, flate.BestSpeed)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// someDisk has letters, which compress to some half, zeros, and ends within a cluster.
func someDisk() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	disk := make([]byte, 300<<10+512)
	for i := range disk {
		disk[i] = byte('a' + r.IntN(16))
	}
	clear(disk[40<<10 : 90<<10])
	clear(disk[100<<10 : 101<<10])
	return disk
}

// TestQcow2 reads every form that is valid, at once and in parts.
func TestQcow2(t *testing.T) {
	disk := someDisk()
	for _, version := range []uint32{2, 3} {
		for bits := uint(leastBits); bits <= mostBits; bits++ {
			for _, packed := range []string{"", "deflate", "zstd"} {
				for _, parts := range []bool{false, true} {
					f := form{version: version, bits: bits, packed: packed, extended: parts}
					if version == 2 && (packed == "zstd" || parts) || parts && bits < leastBitsParts {
						continue
					}
					reads(t, f.String(), write(t, f.file(t, disk)), disk)
				}
			}
		}
	}
}

func reads(t *testing.T, what, path string, disk []byte) {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer d.Close()
	got, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size))
	if err != nil || !bytes.Equal(got, disk) {
		t.Errorf("%s: %d bytes of %d, equal up to %d, %v", what, len(got), len(disk), same(got, disk),
			err)
	}
	for _, at := range []int{0, 1, 511, 39 << 10, 89<<10 + 7, len(disk) - 3} {
		p := make([]byte, 3000)
		n, err := d.ReadAt(p, int64(at))
		if want := disk[at:min(len(disk), at+len(p))]; !bytes.Equal(p[:n], want) ||
			(err == nil) != (n == len(p)) {
			t.Errorf("%s: at %d: %d bytes, %v", what, at, n, err)
		}
	}
}

// same returns how many bytes two have in common at their beginning.
func same(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestQcow2OfQEMU reads what QEMU writes, where it is installed.
func TestQcow2OfQEMU(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("SKIPPED: qemu-img is missing: install qemu-utils")
	}
	disk := someDisk()
	raw, to := write(t, disk), filepath.Join(t.TempDir(), "disk.qcow2")
	for _, options := range []string{"-o compat=0.10", "-o compat=1.1", "-o extended_l2=on",
		"-o preallocation=metadata", "-o cluster_size=512",
		"-c -o compat=0.10", "-c -o cluster_size=512", "-c -o cluster_size=16k",
		"-c -o compression_type=zstd", "-c -o cluster_size=512,compression_type=zstd",
		"-c -o cluster_size=2M,compression_type=zstd", "-c -o extended_l2=on"} {
		args := slices.Concat([]string{"convert", "-f", "raw", "-O", "qcow2"}, strings.Fields(options),
			[]string{raw, to})
		if out, err := exec.Command("qemu-img", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		reads(t, options, to, disk)
	}
}

// TestDamagedQcow2: what is wrong is in the error, and is not that of somebody else.
func TestDamagedQcow2(t *testing.T) {
	disk := someDisk()
	good := func(packed string) []byte {
		return form{version: 3, bits: 16, packed: packed}.file(t, disk)
	}
	with := func(file []byte, at int, value byte) []byte {
		file[at] = value
		return file
	}
	cut := good("")
	packedCut := good("deflate")
	deflated, zipped := good("deflate"), good("zstd")
	for what, c := range map[string]struct {
		file []byte
		says string
	}{
		"cut short":              {cut[:len(cut)-40<<10], "it was not copied whole"},
		"cut short, compressed":  {packedCut[:len(packedCut)-5<<10], "compressed cluster"},
		"bytes of deflate":       {with(deflated, 3<<16, 0x07), "compressed cluster"},
		"bytes of zstd":          {zipped[:len(zipped)-20<<10], "compressed cluster"},
		"a head that ends":       {good("")[:80], "ends in the head"},
		"clusters of 2^30":       {with(good(""), bitsAt+3, 30), "clusters of 2^30"},
		"a disk of nothing":      {form{version: 3, bits: 16}.file(t, nil), "a disk of 0 bytes"},
		"a table behind the end": {with(good(""), tableAt+1, 1), "a table of 1 entries"},
		"a table that is short":  {with(good(""), sizeAt+3, 1), "and needs"},
		"a cluster within one":   {with(good(""), 2<<16+6, 2), "within another one"},
	} {
		d, err := Open(write(t, c.file))
		if err == nil {
			_, err = io.ReadAll(io.NewSectionReader(d, 0, d.Size))
			_ = d.Close()
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
