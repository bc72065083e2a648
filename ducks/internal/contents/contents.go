// Package contents says which files of a disk image differ from those of another one. Nothing is
// mounted: the kernel never looks at what a device wrote. A library reads the file systems, in a
// process of its own that has no rights, no network and little memory, since who wrote them may
// have meant harm. It is the one package that imports diskfs/go-diskfs.
package contents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// What became of a file.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed" // its size, time or kind is another one
)

// Changes is how an image differs from an earlier one.
type Changes struct {
	Partitions []Partition `json:"partitions"` // of both, by number
	Added      int         `json:"added"`
	Removed    int         `json:"removed"`
	Changed    int         `json:"changed"`
	Files      []File      `json:"files"` // the first MostShown, by partition and path
}

// Partition is one of an image, or the whole disk as number 0, where it is not parted.
type Partition struct {
	Number int    `json:"number"`
	Kind   string `json:"kind,omitempty"` // of its file system
	Files  int    `json:"files"`          // and directories, in the later image
	Error  string `json:"error,omitempty"`
}

// File is one that is not what it was.
type File struct {
	Partition int    `json:"partition"`
	Path      string `json:"path"`
	What      string `json:"what"`
	Before    int64  `json:"bytes_before"`
	After     int64  `json:"bytes_after"`
}

// Bounds of what is read and said.
const (
	MostShown  = 5000
	mostFiles  = 1_000_000 // of a partition
	mostAnswer = 64 << 20  // bytes
	mostMemory = 2 << 30   // bytes of addresses of the process that reads
	mostTime   = 2 * time.Minute
	nobody     = 65534
)

// ErrImage is wrapped where an image cannot be read.
var ErrImage = errors.New("its files cannot be read")

// readerName is how the process that reads is called.
const readerName = "ducks-reads-images"

// Turns let one pair of images be read at a time, which may take much memory. Take may be called
// concurrently.
type Turns struct{ taken chan struct{} }

// NewTurns returns turns that nobody has.
func NewTurns() *Turns { return &Turns{make(chan struct{}, 1)} }

// Take waits until nobody else reads, and keeps others out until done is called.
func (t *Turns) Take(ctx context.Context) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: others are read: %w", ErrImage, ctx.Err())
	}
}

// Between returns how the files of after differ from those of before. Both are read and stay open.
// It needs root, and a program that has called Main.
func Between(ctx context.Context, before, after *os.File) (c Changes, err error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	var out, said limited
	out.left, said.left = mostAnswer, 4096
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args, cmd.Env = []string{readerName}, []string{}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", &out, &said, []*os.File{before, after}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		line, _, _ := strings.Cut(strings.TrimSpace(said.b.String()), "\n")
		return c, fmt.Errorf("%w: %w: %s", ErrImage, err, line)
	}
	if err := json.Unmarshal(out.b.Bytes(), &c); err != nil {
		return c, fmt.Errorf("%w: what reads them said no JSON: %w", ErrImage, err)
	}
	return c, nil
}

// limited keeps so many bytes of what is written, and lets the rest go.
type limited struct {
	b    bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, _ = l.b.Write(p[:n]) // it never fails
	return len(p), nil
}

// Main ends the process if it is one that Between has started. Programs that use this package call
// it first.
func Main() {
	if len(os.Args) == 0 || os.Args[0] != readerName {
		return
	}
	if err := answer(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// answer reads the images that the process was given.
func answer(w io.Writer) error {
	if err := errors.Join(syscall.Setrlimit(syscall.RLIMIT_AS,
		&syscall.Rlimit{Cur: mostMemory, Max: mostMemory}),
		syscall.Setrlimit(syscall.RLIMIT_CPU,
			&syscall.Rlimit{Cur: uint64(mostTime.Seconds()), Max: uint64(mostTime.Seconds())})); err != nil {
		return err
	}
	const firstExtra = 3
	before, err := read(os.NewFile(firstExtra, "before"))
	if err != nil {
		return err
	}
	after, err := read(os.NewFile(firstExtra+1, "after"))
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(compare(before, after))
}
