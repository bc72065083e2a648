package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Make makes the file system of a pool on devices, as Open takes it afterwards, and mounts it; two
// devices or more are mirrors. It refuses devices that have something, and a directory that is not
// empty. What it runs is told. The line for fstab is returned, empty for ZFS, which mounts by
// itself.
func Make(ctx context.Context, spec string, devices []string,
	tell io.Writer) (fstab string, err error) {
	kind, at, _ := strings.Cut(spec, ":")
	if len(devices) == 0 || at == "" {
		return "", fmt.Errorf("pool %q: name it, and the devices that it is made on", spec)
	}
	run := func(program string, args ...string) error {
		if _, err := fmt.Fprintln(tell, "#", program, strings.Join(args, " ")); err != nil {
			return err
		}
		_, err := execute(ctx, nil, program, args...)
		return err
	}
	if kind == "zfs" {
		return "", makeZFS(at, devices, run)
	}
	var mkfs, options []string
	switch {
	case kind == "btrfs":
		mkfs, options = []string{"mkfs.btrfs", "-q"}, []string{"compress-force=zstd:1"}
		if len(devices) > 1 {
			mkfs = append(mkfs, "-d", "raid1", "-m", "raid1")
		}
	case kind == "reflink" && len(devices) == 1:
		mkfs, options = []string{"mkfs.xfs", "-q", "-m", "reflink=1"}, []string{"defaults"}
	case kind == "reflink":
		return "", errors.New("xfs is on one device: make a mirror of several with mdadm, and name that")
	default:
		return "", fmt.Errorf("pool %q: want btrfs:DIR, zfs:DATASET, or reflink:DIR for xfs", spec)
	}
	if !filepath.IsAbs(at) {
		return "", fmt.Errorf("pool %q: the directory is a path from /", spec)
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	if list, err := entries(at); err != nil || len(list) > 0 {
		return "", errors.Join(err, fmt.Errorf("%s has %d entries: a pool is made in an empty directory",
			at, len(list)))
	}
	if err := run(mkfs[0], append(mkfs[1:], devices...)...); err != nil {
		return "", err
	}
	if err := run("mount", "-o", strings.Join(options, ","), devices[0], at); err != nil {
		return "", err
	}
	system := strings.TrimPrefix(mkfs[0], "mkfs.")
	disk := devices[0]
	if id, err := execute(ctx, nil, "blkid", "-s", "UUID", "-o", "value", disk); err == nil {
		disk = "UUID=" + strings.TrimSpace(string(id)) // names of devices change
	}
	return fmt.Sprintf("%s %s %s %s 0 0", disk, at, system, strings.Join(options, ",")), nil
}

// makeZFS makes a pool of ZFS, and the dataset below it.
func makeZFS(dataset string, devices []string,
	run func(program string, args ...string) error) error {
	name, below, _ := strings.Cut(dataset, "/")
	args := []string{"create", name}
	if len(devices) > 1 {
		args = append(args, "mirror")
	}
	if err := run("zpool", append(args, devices...)...); err != nil {
		return err
	}
	if below == "" {
		return nil
	}
	return run("zfs", "create", "-p", dataset)
}
