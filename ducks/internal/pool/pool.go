// Package pool keeps disk images: files of a fixed size, thin, that are cloned copy-on-write. An
// image is what a device writes to; a snapshot is an image as it was, and never changes. DESIGN.md
// beside it says what each file system gives.
package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// Errors of all pools. They are wrapped with what they are about.
var (
	ErrExists  = errors.New("it exists already")
	ErrUnknown = errors.New("there is no such image or snapshot")
	ErrName    = errors.New("a name has 1 to 64 of a-z, 0-9, '.', '_' and '-', and begins with " +
		"a letter or digit")
	ErrSize        = errors.New("the size of a disk is a multiple of 512 bytes above 0")
	ErrUnsupported = errors.New("this kind of pool cannot do that")
	ErrLocked      = errors.New("another process has this pool")
	ErrStream      = errors.New("the stream is damaged, or of something else")
)

// Snapshot names an image as it was.
type Snapshot struct {
	Image string `json:"image"`
	Name  string `json:"name"`
}

// String returns the name as commands print it.
func (s Snapshot) String() string { return s.Image + "@" + s.Name }

// Usage is what an image or snapshot takes, in bytes before compression.
type Usage struct {
	Size   int64 // of the disk that a device sees
	Mapped int64 // of it that were ever written
	Own    int64 // of these that no other image or snapshot shares
}

// Space is that of the file system below a pool, in bytes.
type Space struct {
	Total   int64 `json:"total_bytes"`
	Free    int64 `json:"free_bytes"`
	Reserve int64 `json:"reserve_bytes"` // of what is free: only running devices take it
}

// Pool is a place for images. Its methods may be called concurrently. Each of them is done or not
// done when it returns: a crash in the middle leaves nothing that is listed.
type Pool interface {
	// Create makes an empty image. The size is a multiple of 512.
	Create(ctx context.Context, image string, size int64) error
	// Freeze keeps an image as it is now, with all that was written to its file. The snapshot may be
	// named after another image, of which it becomes a version.
	Freeze(ctx context.Context, image string, as Snapshot) error
	// Clone makes an image that begins as a snapshot and takes no space until it is written to.
	Clone(ctx context.Context, of Snapshot, image string) error
	// Rollback makes an image what it was at a snapshot of it or of another one. Nobody has it open.
	Rollback(ctx context.Context, image string, to Snapshot) error
	// Delete removes an image; its snapshots stay.
	Delete(ctx context.Context, image string) error
	// DeleteSnapshot removes a snapshot; clones of it stay.
	DeleteSnapshot(ctx context.Context, s Snapshot) error

	// Path returns the file of an image, for a target to export.
	Path(image string) string
	// Images returns the names of all images, ascending; Snapshots those of all snapshots.
	Images(ctx context.Context) ([]string, error)
	Snapshots(ctx context.Context) ([]Snapshot, error)
	// Usage says what an image takes, SnapshotUsage what a snapshot does.
	Usage(ctx context.Context, image string) (Usage, error)
	SnapshotUsage(ctx context.Context, s Snapshot) (Usage, error)
	// Limit bounds what an image may take of its own, after compression. 0 takes the bound away.
	// ErrUnsupported where nothing enforces it, which Limits says before.
	Limit(ctx context.Context, image string, own int64) error
	Limits() bool
	Space(ctx context.Context) (Space, error)
	// Settle lets Space count all that was written before.
	Settle(ctx context.Context) error
	// Trim tells the disk below which blocks are free, and returns how many bytes these are.
	Trim(ctx context.Context) (int64, error)

	// Delta returns about how many bytes Send would send. The zero Snapshot as from means all of it.
	Delta(ctx context.Context, from, to Snapshot) (int64, error)
	// Send writes what makes the snapshot from into to. Receive takes it in another pool of the same
	// kind that has from.
	Send(ctx context.Context, from, to Snapshot, w io.Writer) error
	// Receive makes a snapshot of what Send wrote. A stream that ends early or is damaged makes none.
	Receive(ctx context.Context, as Snapshot, r io.Reader) error
}

// Dir returns the directory of a pool, in which callers may have files of other names than images,
// snapshots, making, and d with a number.
func Dir(spec string) (string, error) {
	kind, of, _ := strings.Cut(spec, ":")
	if kind != "zfs" || of == "" {
		return of, nil
	}
	dir, err := mountpoint(context.Background(), of)
	if err != nil {
		return "", fmt.Errorf("pool %s: %w", spec, err)
	}
	return dir, nil
}

// Lock keeps a pool for one process, until what it returns is closed: opening a pool removes what
// another process has in the making there. ErrLocked if another one has it.
func Lock(spec string) (io.Closer, error) {
	dir, err := Dir(spec)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("pool %q: %w", spec, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("pool %q: %w", spec, err), f.Close())
	}
	return f, nil
}

// Open opens a pool, of which a part is kept for what devices write: btrfs:DIR or reflink:DIR, a
// directory on a file system of that kind, or zfs:DATASET.
func Open(spec string, keep Reserve) (Pool, error) {
	p, err := openKind(spec)
	if err != nil {
		return nil, err
	}
	return &reserved{p, keep}, nil
}

func openKind(spec string) (Pool, error) {
	kind, dir, ok := strings.Cut(spec, ":")
	switch {
	case ok && dir != "" && kind == "btrfs":
		return openBtrfs(dir)
	case ok && dir != "" && kind == "reflink":
		return openReflink(dir)
	case ok && dir != "" && kind == "zfs":
		return openZFS(dir)
	}
	return nil, fmt.Errorf("pool %q: want btrfs:DIR, zfs:DATASET, or reflink:DIR for xfs", spec)
}

// execute runs a program, and returns what it printed. An error has what it says of it.
func execute(ctx context.Context, in io.Reader, program string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := pipe(ctx, in, &out, program, args...)
	return out.Bytes(), err
}

// pipe runs a program with its input and output.
func pipe(ctx context.Context, in io.Reader, out io.Writer, program string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err,
		strings.TrimSpace(said.String()))
}

var name = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func checkNames(names ...string) error {
	for _, n := range names {
		if !name.MatchString(n) {
			return fmt.Errorf("%q: %w", n, ErrName)
		}
	}
	return nil
}

// sector is what disks are multiples of.
const sector = 512

func checkSize(size int64) error {
	if size <= 0 || size%sector != 0 {
		return fmt.Errorf("%d bytes: %w", size, ErrSize)
	}
	return nil
}
