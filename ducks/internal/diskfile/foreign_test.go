package diskfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignFiles: what is no disk is refused, with the command that makes one of it.
func TestForeignFiles(t *testing.T) {
	begins := func(with string) []byte {
		return append([]byte(with), make([]byte, 100<<10-len(with))...)
	}
	at := func(place int, with string) []byte {
		b := make([]byte, 100<<10)
		copy(b[place:], with)
		return b
	}
	backed, encrypted := form{version: 3, bits: 16, backingAt: 1536},
		form{version: 2, bits: 16, crypt: 1}
	disk := []byte("a disk of some sectors")
	for name, c := range map[string]struct {
		file []byte
		by   string
	}{
		"a.vmdk":   {begins("KDMV"), "qemu-img convert -f vmdk -O raw a.vmdk a.raw"},
		"esx.vmdk": {begins("COWD"), "qemu-img convert -f vmdk -O raw esx.vmdk esx.raw"},
		"text.vmdk": {[]byte("# Disk DescriptorFile\nversion=1\n"),
			"qemu-img convert -f vmdk -O raw text.vmdk text.raw"},
		"a.vdi":       {at(64, "\x7f\x10\xda\xbe"), "qemu-img convert -f vdi -O raw a.vdi a.raw"},
		"a.vhdx":      {begins("vhdxfile"), "qemu-img convert -f vhdx -O raw a.vhdx a.raw"},
		"dynamic.vhd": {begins("conectix"), "qemu-img convert -f vpc -O raw dynamic.vhd dynamic.raw"},
		"fixed.vhd": {at(100<<10-512, "conectix"),
			"qemu-img convert -f vpc -O raw fixed.vhd fixed.raw"},
		"old.vhd": {at(100<<10-511, "conectix"), "qemu-img convert -f vpc -O raw old.vhd old.raw"},
		"a.qed":   {begins("QED\x00"), "qemu-img convert -f qed -O raw a.qed a.raw"},
		"a.hdd":   {begins("WithouFreSpacExt"), "qemu-img convert -f parallels -O raw a.hdd a.raw"},
		"a.dmg":   {at(100<<10-512, "koly"), "qemu-img convert -f dmg -O raw a.dmg a.raw"},
		"a.qcow": {begins("QFI\xfb\x00\x00\x00\x01"),
			"qemu-img convert -f qcow -O raw a.qcow a.raw"},
		"a.img.gz": {begins("\x1f\x8b\x08"), "gunzip -c a.img.gz > a.img.raw"},
		"a.xz":     {begins("\xfd7zXZ\x00"), "xz -dc a.xz > a.raw"},
		"a.zst":    {begins("\x28\xb5\x2f\xfd"), "zstd -dc a.zst > a.raw"},
		"a.bz2":    {begins("BZh91AY&SY"), "bunzip2 -c a.bz2 > a.raw"},
		"a.lz4":    {begins("\x04\x22\x4d\x18"), "lz4 -dc a.lz4 > a.raw"},
		"a.lzma":   {begins("\x5d\x00\x00\x80\x00"), "xz -dc a.lzma > a.raw"},
		"a.zip":    {begins("PK\x03\x04"), "unzip a.zip"},
		"a.7z":     {begins("7z\xbc\xaf\x27\x1c"), "7z x a.7z"},
		"a.rar":    {begins("Rar!\x1a\x07\x01"), "unrar x a.rar"},
		"a.ova":    {at(257, "ustar"), "tar -xf a.ova"},
		"a.wim":    {begins("MSWIM\x00\x00\x00"), "install Windows through a device"},
		"a.iso":    {at(cdAt, "CD001"), "without a partition table"},
		"udf.iso":  {at(cdAt, "BEA01"), "without a partition table"},
		"page.img": {[]byte("<!DOCTYPE html>"), "its download failed"},

		"it's mine.vmdk": {
			begins("KDMV"), `qemu-img convert -f vmdk -O raw 'it'\''s mine.vmdk' 'it'\''s mine.raw'`},

		"backed.qcow2": {backed.file(t, disk),
			"it has a backing file: qemu-img convert -O raw backed.qcow2 backed.raw"},
		"apart.qcow2": {form{version: 3, bits: 16, features: externalData}.file(t, disk),
			"its data is in another file: qemu-img convert -O raw apart.qcow2 apart.raw"},
		"encrypted.qcow2": {encrypted.file(t, disk), "it is encrypted"},
		"corrupt.qcow2": {form{version: 3, bits: 16, features: corrupt}.file(t, disk),
			"qemu-img check -r all corrupt.qcow2"},
		"later.qcow2": {form{version: 3, bits: 16, features: 1 << 40}.file(t, disk),
			"features that are not known"},
		"within.qcow2": {form{version: 3, bits: 16}.file(t, begins("vhdxfile")), "it is a VHDX file"},
	} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile(name, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := Open(name); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.by) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

// TestDisks: what machines boot is taken, whatever else it is.
func TestDisks(t *testing.T) {
	disk := func(marks map[int]string) []byte {
		b := make([]byte, 100<<10)
		for at, is := range marks {
			copy(b[at:], is)
		}
		return b
	}
	for what, file := range map[string][]byte{
		"a disk with GPT": disk(map[int]string{bootAt: bootIs, 512: "EFI PART",
			100<<10 - 512: "EFI PART"}),
		"a CD with partitions":       disk(map[int]string{bootAt: bootIs, cdAt: "CD001"}),
		"a file system of its own":   disk(map[int]string{1080: "\x53\xef"}),
		"zeros":                      disk(nil),
		"a small one":                bytes.Repeat([]byte{1}, 512),
		"one that ends as something": disk(map[int]string{50 << 10: "conectix"}),
	} {
		d, err := Open(write(t, file))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err := d.Close(); err != nil || d.Size != int64(len(file)) {
			t.Errorf("%s: %d bytes, %v", what, d.Size, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
