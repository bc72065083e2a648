package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const btrfsMagic = 0x9123683E

// btrfs is a pool in which an image is a subvolume with one file, and a snapshot a read-only one.
type btrfs struct{ directory }

// diskFile is the file of a subvolume.
const diskFile = "disk"

func openBtrfs(dir string) (*btrfs, error) {
	d, err := openDirectory(dir, diskFile, btrfsMagic,
		"it is not on btrfs, which btrfs: needs: make one with mkfs.btrfs")
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("btrfs"); err != nil {
		return nil, fmt.Errorf("pool %s: %w: install btrfs-progs", dir, err)
	}
	p := &btrfs{d}
	left, err := entries(filepath.Join(dir, makingDir))
	for _, n := range left {
		err = errors.Join(err, p.discard(filepath.Join(dir, makingDir, n)))
	}
	return p, err
}

// run runs btrfs, and returns what it printed.
func run(ctx context.Context, args ...string) ([]byte, error) {
	return execute(ctx, nil, "btrfs", args...)
}

// discard removes a directory of what is in the making, with its subvolumes.
func (p *btrfs) discard(tmp string) error {
	list, err := entries(tmp)
	for _, n := range list {
		err = errors.Join(err, remove(context.Background(), filepath.Join(tmp, n)))
	}
	return errors.Join(err, os.Remove(tmp))
}

// remove deletes a subvolume.
func remove(ctx context.Context, path string) error {
	_, err := run(ctx, "subvolume", "delete", "--commit-after", path)
	return err
}

func (p *btrfs) Create(ctx context.Context, image string, size int64) (err error) {
	if err := errors.Join(p.fresh(p.image(image), image), checkSize(size)); err != nil {
		return err
	}
	tmp, err := p.making()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.discard(tmp)) }()
	made := filepath.Join(tmp, "made")
	if _, err := run(ctx, "subvolume", "create", made); err != nil {
		return err
	}
	if err := writeEmpty(filepath.Join(made, diskFile), size); err != nil {
		return err
	}
	return put(made, p.image(image))
}

func (p *btrfs) Freeze(ctx context.Context, image string, as Snapshot) error {
	if err := errors.Join(p.there(p.image(image), image),
		p.fresh(p.snapshot(as), as.Image, as.Name)); err != nil {
		return err
	}
	return subvolume(ctx, p.image(image), p.snapshot(as), "-r")
}

func (p *btrfs) Clone(ctx context.Context, of Snapshot, image string) error {
	if err := errors.Join(p.there(p.snapshot(of), of.Image, of.Name),
		p.fresh(p.image(image), image)); err != nil {
		return err
	}
	return subvolume(ctx, p.snapshot(of), p.image(image))
}

// subvolume makes a snapshot, as btrfs calls it, of a subvolume. That is one transaction.
func subvolume(ctx context.Context, of, path string, flags ...string) error {
	if _, err := run(ctx, append(append([]string{"subvolume", "snapshot"}, flags...), of,
		path)...); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func (p *btrfs) Rollback(ctx context.Context, image string, to Snapshot) (err error) {
	if err := errors.Join(p.there(p.image(image), image),
		p.there(p.snapshot(to), to.Image, to.Name)); err != nil {
		return err
	}
	tmp, err := p.making()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.discard(tmp)) }()
	made := filepath.Join(tmp, "made")
	if err := subvolume(ctx, p.snapshot(to), made); err != nil {
		return err
	}
	return exchange(made, p.image(image))
}

func (p *btrfs) Delete(ctx context.Context, image string) error {
	if err := p.there(p.image(image), image); err != nil {
		return err
	}
	return remove(ctx, p.image(image))
}

func (p *btrfs) DeleteSnapshot(ctx context.Context, s Snapshot) error {
	if err := p.there(p.snapshot(s), s.Image, s.Name); err != nil {
		return err
	}
	return remove(ctx, p.snapshot(s))
}

func (p *btrfs) Limits() bool { return true }

func (p *btrfs) Limit(ctx context.Context, image string, own int64) error {
	if err := p.there(p.image(image), image); err != nil {
		return err
	}
	limit := "none"
	if own > 0 {
		limit = strconv.FormatInt(own, 10)
		if _, err := run(ctx, "quota", "enable", p.dir); err != nil {
			return err
		}
	}
	_, err := run(ctx, "qgroup", "limit", "-e", limit, p.image(image))
	return err
}

// btrfsKind begins a stream. In it is what btrfs send writes.
const btrfsKind = "ducks-b1"

// sends checks two snapshots, and returns the arguments of btrfs send.
func (p *btrfs) sends(from, to Snapshot, flags ...string) ([]string, error) {
	args := append([]string{"send", "--quiet"}, flags...)
	if from != (Snapshot{}) {
		if err := p.there(p.snapshot(from), from.Image, from.Name); err != nil {
			return nil, err
		}
		args = append(args, "-p", p.snapshot(from))
	}
	return append(args, p.snapshot(to)), p.there(p.snapshot(to), to.Image, to.Name)
}

// Delta asks for a stream without data, which says what it would have.
func (p *btrfs) Delta(ctx context.Context, from, to Snapshot) (n int64, err error) {
	args, err := p.sends(from, to, "--no-data")
	if err != nil {
		return 0, err
	}
	pipe, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := command(ctx, nil, out, args...)
		_ = out.CloseWithError(err)
		done <- err
	}()
	text, dumped := io.Pipe()
	go func() { _ = dumped.CloseWithError(command(ctx, pipe, dumped, "receive", "--dump")) }()
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		_, length, ok := strings.Cut(rest, "len=")
		if kind != "update_extent" || !ok {
			continue
		}
		bytes, err := strconv.ParseInt(strings.TrimSpace(length), 10, 64)
		if err != nil {
			return 0, errors.Join(fmt.Errorf("btrfs receive --dump: %q", lines.Text()),
				text.CloseWithError(err), pipe.CloseWithError(err), <-done)
		}
		n += bytes
	}
	_ = pipe.Close()
	return n, errors.Join(lines.Err(), <-done)
}

// command runs btrfs with its input and output.
func command(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	return pipe(ctx, in, out, "btrfs", args...)
}

func (p *btrfs) Send(ctx context.Context, from, to Snapshot, w io.Writer) error {
	args, err := p.sends(from, to)
	if err != nil {
		return err
	}
	out, err := newFrames(w, btrfsKind)
	if err != nil {
		return err
	}
	if err := command(ctx, nil, out, args...); err != nil {
		return err
	}
	return out.end()
}

// Receive lets btrfs make a subvolume, and takes it when the whole stream was right: btrfs alone
// takes one that ends between two of its commands.
func (p *btrfs) Receive(ctx context.Context, as Snapshot, r io.Reader) (err error) {
	if err := p.fresh(p.snapshot(as), as.Image, as.Name); err != nil {
		return err
	}
	in, err := newUnframed(contextReader{ctx, r}, btrfsKind)
	if err != nil {
		return err
	}
	tmp, err := p.making()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.discard(tmp)) }()
	if err := command(ctx, in, io.Discard, "receive", "--quiet", "--chroot", tmp); in.err != nil &&
		!errors.Is(in.err, io.EOF) {
		return in.err
	} else if err != nil {
		return err
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return errors.Join(err, ErrStream)
	}
	list, err := entries(tmp)
	if err != nil || len(list) != 1 {
		return errors.Join(err, fmt.Errorf("%d subvolumes were received: %w", len(list), ErrStream))
	}
	made := filepath.Join(tmp, list[0])
	if info, err := os.Lstat(filepath.Join(made, diskFile)); err != nil || !info.Mode().IsRegular() ||
		info.Size()%sector != 0 {
		return errors.Join(err, fmt.Errorf("it has no disk: %w", ErrStream))
	}
	// What is read-only cannot be moved. A snapshot of it is known by the same id to the streams that
	// follow.
	return subvolume(ctx, made, p.snapshot(as), "-r")
}
