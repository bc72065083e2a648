package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a tgtd. It goes on when this process ends: devices do not notice.
type process struct {
	pid   int
	ended chan struct{} // closed when it has
}

// The files in Options.Dir. tgtd adds ".0" to the name of its socket.
const (
	socketName = "tgt"
	saidName   = "tgtd.log"
)

// environment gives tgtd and tgtadm a control socket.
func environment(socket string) []string { return append(os.Environ(), "TGT_IPC_SOCKET="+socket) }

// find returns the tgtd that runs with the control socket; nil if there is none. It is the one that
// holds the lock beside the socket. find does not connect: a client that asks nothing leaves tgtd
// 1.0.85 reading its connection without a pause, for ever.
func (o *Options) find() (*process, error) {
	f, err := os.OpenFile(filepath.Join(o.Dir, socketName+".0.lock"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return nil, err
	}
	return watch(int(lock.Pid))
}

// start starts a tgtd.
func (o *Options) start() (*process, error) {
	said, err := os.OpenFile(filepath.Join(o.Dir, saidName),
		os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd := exec.Command("tgtd", "-f", "--iscsi", "portal="+o.Portal.String())
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(filepath.Join(o.Dir, socketName)), said, said
	// a terminal that interrupts this process does not end it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("tgtd: %w", err)
	}
	p, err := watch(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill() // nobody would notice its end
	}
	go func() { _ = cmd.Wait() }() // its end is seen by watch
	return p, err
}

// said returns the end of what the tgtd that was started last has said.
func (o *Options) said() string {
	f, err := os.Open(filepath.Join(o.Dir, saidName))
	if err != nil {
		return ""
	}
	defer f.Close()
	const end = 1024
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-end), io.SeekStart) // else all is read
	}
	b, _ := io.ReadAll(io.LimitReader(f, end)) // what can be read is shown
	return string(bytes.TrimSpace(b))
}

// watch notices the end of a process.
func watch(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("tgtd, process %d: %w", pid, err)
	}
	p := &process{pid, make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer unix.Close(fd)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return p, nil
}

// kill ends a process, and waits until it has ended.
func (p *process) kill() error {
	err := syscall.Kill(p.pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		err = nil
	}
	if err == nil {
		<-p.ended
	}
	return err
}

// listens waits until tgtd answers and has its portal.
func (o *Options) listens(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	for {
		out, err := o.tgtadm(ctx, "--mode", "portal", "--op", "show")
		if err == nil && bytes.Contains(out, []byte("Portal: "+o.Portal.String()+",")) {
			return nil
		}
		if err == nil { // it opens its portals before it answers
			return fmt.Errorf("tgtd cannot listen on %s: is the address one of this machine, and free? "+
				"tgtd says: %s", o.Portal, o.said())
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-p.ended:
			again.Stop()
			return fmt.Errorf("tgtd has ended: %s", o.said())
		case <-ctx.Done():
			again.Stop()
			return fmt.Errorf("tgtd does not answer: %w; it says: %s", errors.Join(err, ctx.Err()), o.said())
		case <-again.C:
		}
	}
}

// tgtadm tells tgtd something. Once begun it is not cut short by the context, nor by a signal to
// the group of this process: a tgtadm that ends between its connection and its question leaves tgtd
// 1.0.85 asking for it without a pause, for ever.
func (o *Options) tgtadm(ctx context.Context, args ...string) ([]byte, error) {
	return o.tgtadmAt(ctx, filepath.Join(o.Dir, socketName), args...)
}

// tgtadmAt says it to another socket.
func (o *Options) tgtadmAt(ctx context.Context, socket string, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*answersWithin)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "tgtadm", append([]string{"--lld", "iscsi"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env, cmd.Stderr = environment(socket), &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("tgtadm %s: %w: %s", strings.Join(args, " "), err,
			bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
