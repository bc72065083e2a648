package diskfile

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrRefused is the error of a file that is no disk byte by byte, and of one that names others.
var ErrRefused = errors.New("it is not taken")

// ErrDamaged is the error of a file that is not whole, or contradicts itself.
var ErrDamaged = errors.New("the file is damaged")

// refusal says why a file is refused, and which command makes a disk of it. In that FILE stands for
// its name, and OUT for that of the disk.
type refusal struct{ why, command, file string }

func refuse(why, command string) error { return &refusal{why: why, command: command} }

func (r *refusal) Error() string {
	command := r.command
	if r.file != "" {
		to := strings.TrimSuffix(r.file, filepath.Ext(r.file)) + ".raw"
		command = strings.NewReplacer("FILE", quoted(r.file), "OUT", quoted(to)).Replace(command)
	}
	return fmt.Sprintf("%v: %s: %s", ErrRefused, r.why, command)
}

func (r *refusal) Unwrap() error { return ErrRefused }

var plainName = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)

// quoted returns a name as a shell takes it.
func quoted(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// FirstBytes and LastBytes are what Foreign looks at: the sector of a CD that says what it is lies
// in the first ones.
const (
	FirstBytes = 64 << 10
	LastBytes  = 512
)

// forms are those of files that are no disks, by bytes at a place. One below 0 is counted from the
// end.
var forms = []struct {
	at   int
	is   string
	what string
	by   string
}{
	{0, magic, "it is a qcow2 file",
		"ducks image import takes it; or qemu-img convert -O raw FILE OUT"},
	{0, "KDMV", "it is a VMDK file of VMware", "qemu-img convert -f vmdk -O raw FILE OUT"},
	{0, "COWD", "it is a VMDK file of VMware", "qemu-img convert -f vmdk -O raw FILE OUT"},
	{0, "# Disk DescriptorFile", "it is the descriptor of VMDK files of VMware",
		"qemu-img convert -f vmdk -O raw FILE OUT"},
	{64, "\x7f\x10\xda\xbe", "it is a VDI file of VirtualBox",
		"qemu-img convert -f vdi -O raw FILE OUT"},
	{0, "vhdxfile", "it is a VHDX file of Hyper-V", "qemu-img convert -f vhdx -O raw FILE OUT"},
	{0, "conectix", "it is a VHD file", "qemu-img convert -f vpc -O raw FILE OUT"},
	{-512, "conectix", "it is a VHD file, which ends with what it is",
		"qemu-img convert -f vpc -O raw FILE OUT"},
	{-511, "conectix", "it is a VHD file, which ends with what it is",
		"qemu-img convert -f vpc -O raw FILE OUT"},
	{0, "QED\x00", "it is a QED file", "qemu-img convert -f qed -O raw FILE OUT"},
	{0, "WithoutFreeSpace", "it is a file of Parallels",
		"qemu-img convert -f parallels -O raw FILE OUT"},
	{0, "WithouFreSpacExt", "it is a file of Parallels",
		"qemu-img convert -f parallels -O raw FILE OUT"},
	{0, "Bochs Virtual HD Image", "it is a file of Bochs",
		"qemu-img convert -f bochs -O raw FILE OUT"},
	{-512, "koly", "it is a DMG file of macOS", "qemu-img convert -f dmg -O raw FILE OUT"},
	{0, "\x3a\xff\x26\xed", "it is a sparse file of Android", "simg2img FILE OUT"},
	{0, "\x1f\x8b\x08", "it is compressed with gzip", "gunzip -c FILE > OUT"},
	{0, "\xfd7zXZ\x00", "it is compressed with xz", "xz -dc FILE > OUT"},
	{0, "\x28\xb5\x2f\xfd", "it is compressed with zstd", "zstd -dc FILE > OUT"},
	{0, "BZh", "it is compressed with bzip2", "bunzip2 -c FILE > OUT"},
	{0, "\x04\x22\x4d\x18", "it is compressed with lz4", "lz4 -dc FILE > OUT"},
	{0, "LZIP", "it is compressed with lzip", "lzip -dc FILE > OUT"},
	{0, "\x5d\x00\x00", "it is compressed with lzma", "xz -dc FILE > OUT"},
	{0, "\x1f\x9d", "it is compressed with compress", "gunzip -c FILE > OUT"},
	{0, "PK\x03\x04", "it is a ZIP archive", "unzip FILE, and import the disk that was in it"},
	{0, "7z\xbc\xaf\x27\x1c", "it is an archive of 7-Zip",
		"7z x FILE, and import the disk that was in it"},
	{0, "Rar!\x1a\x07", "it is a RAR archive", "unrar x FILE, and import the disk that was in it"},
	{257, "ustar", "it is a tar archive, as an OVA is",
		"tar -xf FILE, and import the disk that was in it"},
	{0, "MSWIM\x00\x00\x00", "it is a WIM archive of Windows",
		"install Windows through a device, as docs/ducks.md says of menus"},
	{0, "<!DOCTYPE", "it is a page of a web server", "look at it: its download failed"},
	{0, "<html", "it is a page of a web server", "look at it: its download failed"},
}

// The marks of a CD, and of what firmware boots.
const (
	cdAt   = 32769
	bootAt = 510
	bootIs = "\x55\xaa"
)

// Foreign returns ErrRefused, with a command, if the first and last bytes of a disk are those of
// something else. Either may be left out: nil.
func Foreign(first, last []byte) error {
	for _, f := range forms {
		of, at := first, f.at
		if at < 0 {
			of, at = last, len(last)+at
		}
		if at >= 0 && at < len(of) && bytes.HasPrefix(of[at:], []byte(f.is)) {
			return refuse(f.what, f.by)
		}
	}
	if len(first) < cdAt+5 || bytes.HasPrefix(first[bootAt:], []byte(bootIs)) {
		return nil
	}
	switch string(first[cdAt : cdAt+5]) {
	case "CD001", "BEA01":
		return refuse("it is a CD without a partition table, which no machine boots from a disk",
			"give its kernel to devices by a menu, as docs/ducks.md says")
	}
	return nil
}
