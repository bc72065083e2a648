package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Instructions are counted by stepping through them one by one: counters of the
// processor are not to be had in most virtual machines. A step takes some
// microseconds, so operations are small, and the least of two runs counts:
// the Go runtime interrupts others.
const (
	tracedWarm  = 20
	tracedRuns  = 2
	tracedLimit = 2 * time.Minute // for all of them: 10 s on an idle machine
)

// errNotTraced is what the system says where it lets no process be stepped
// through.
var errNotTraced = errors.New("the system does not let a process be traced")

// refused tells whether an error is one of those by which systems do not let
// processes be traced; others are failures.
func refused(what string, err error) error {
	for _, e := range []error{fs.ErrPermission, fs.ErrNotExist, syscall.ENOSYS, syscall.EIO} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %s: %w", errNotTraced, what, err)
		}
	}
	return fmt.Errorf("trace a process: %s: %w", what, err)
}

// TracedRole is the subcommand of this program that calls RunTraced with its
// argument.
const TracedRole = "traced"

// RunTraced is the process that is stepped through: it runs the operations,
// each between two marks.
func RunTraced(dir string) (err error) {
	if unix.Gettid() != os.Getpid() {
		return errors.New("the main goroutine is not on the main thread, which is the one that is traced")
	}
	ops, err := newOperations(context.Background(), dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ops.store.Close()) }()
	for _, op := range ops.list {
		for range tracedWarm {
			if err := op.run(); err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
		}
		for range tracedRuns {
			start := mark()
			err := op.run()
			if err := errors.Join(start, err, mark()); err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
		}
	}
	return nil
}

// mark stops the process until its tracer lets it go on.
func mark() error { return unix.Tgkill(os.Getpid(), os.Getpid(), unix.SIGUSR1) }

// countInstructions runs the operations in a process of their own and returns
// how many instructions in user mode each takes. It must run on the thread that
// the calling goroutine is locked to.
func (g *guarded) countInstructions(ctx context.Context, n int) ([]int, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(g.Dir, "traced.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, TracedRole, filepath.Join(g.Dir, "traced"))
	// Nothing but the operation shall run on the thread that is counted.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, refused("start", err)
	}
	ctx, cancel := context.WithTimeout(ctx, tracedLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })() // it may have ended
	counts, err := follow(cmd.Process.Pid)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: %v were not enough for it", errNotTraced, tracedLimit)
	}
	if err == nil && len(counts) != n*tracedRuns {
		err = fmt.Errorf("the traced process ran %d operations of %d", len(counts), n*tracedRuns)
	}
	if err != nil {
		_ = cmd.Process.Kill() // likewise
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	var least []int
	for runs := range slices.Chunk(counts, tracedRuns) {
		least = append(least, slices.Min(runs)-slices.Min(counts[:tracedRuns]))
	}
	return least, nil
}

// follow lets a process run to its end, and counts the steps between every
// first and second mark.
func follow(pid int) (counts []int, err error) {
	stepping, steps, monitor := false, 0, 0
	for {
		st, err := waitFor(pid, pid)
		if err != nil {
			return nil, err
		}
		signal := 0
		switch {
		case st.Exited() && st.ExitStatus() == 0:
			return counts, nil
		case !st.Stopped():
			return nil, fmt.Errorf("the traced process ended with status %#x", uint32(st))
		case st.StopSignal() == syscall.SIGUSR1 && !stepping:
			if monitor, err = holdMonitor(pid); err != nil {
				return nil, err
			}
			stepping, steps = true, 0
		case st.StopSignal() == syscall.SIGUSR1:
			if err := syscall.PtraceDetach(monitor); err != nil {
				return nil, refused("detach", err)
			}
			counts, stepping = append(counts, steps), false
		case st.StopSignal() == syscall.SIGTRAP:
			steps++
		default:
			signal = int(st.StopSignal())
		}
		if stepping && signal == 0 {
			err = syscall.PtraceSingleStep(pid)
		} else {
			err = syscall.PtraceCont(pid, signal)
		}
		if err != nil {
			return nil, refused("step", err)
		}
	}
}

// waitFor waits until a thread of a process stops or the process ends. The end
// of another thread that is held must be waited for as well, else that of the
// process is never told.
func waitFor(tid, pid int) (st syscall.WaitStatus, err error) {
	for {
		got, err := syscall.Wait4(-1, &st, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return st, refused("wait", err)
		case got == tid || got == pid && !st.Stopped():
			return st, nil
		}
	}
}

// holdMonitor stops the thread of the Go runtime that asks for a preemption
// every 10 ms, and returns it: there are thousands of instructions in one, and
// a hundred steps in 10 ms. It is the first thread that a program starts. It
// must be asleep, else it may hold a lock that the main thread will wait for.
func holdMonitor(pid int) (int, error) {
	tids, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	monitor := 0
	for _, e := range tids {
		if tid, err := strconv.Atoi(e.Name()); err == nil && tid != pid &&
			(monitor == 0 || tid < monitor) {
			monitor = tid
		}
	}
	for {
		if err := syscall.PtraceAttach(monitor); err != nil {
			return 0, refused("attach", err)
		}
		if st, err := waitFor(monitor, pid); err != nil || !st.Stopped() {
			return 0, errors.Join(err, errors.New("the traced process ended"))
		}
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, monitor))
		if err != nil {
			return 0, refused("look", err)
		}
		number, _, _ := strings.Cut(string(call), " ")
		if number == strconv.Itoa(unix.SYS_NANOSLEEP) || number == strconv.Itoa(unix.SYS_FUTEX) {
			return monitor, nil
		}
		if err := syscall.PtraceDetach(monitor); err != nil {
			return 0, refused("detach", err)
		}
	}
}
