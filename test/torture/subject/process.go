// Package subject runs the node under attack: the released binary, its log, and
// what its HTTP address says.
package subject

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience is how long anything may take that takes milliseconds on an idle
// machine.
const Patience = 90 * time.Second

// Node is a running ddb serve.
type Node struct {
	TCP, HTTP        string // addresses
	Graphite, Pickle string // where they were asked for
	UDP              string
	Log              *Log
	cmd              *exec.Cmd
	done             chan struct{}
}

// ErrEnded is returned by Start when the node ended before it was ready.
var ErrEnded = errors.New("the node ended before it was ready")

// Start starts the binary of bin on a directory and waits until it is ready.
// Arguments are further flags. When it ends first, Start returns the node, for
// its log, and ErrEnded.
func Start(bin, dir string, args ...string) (*Node, error) {
	n, err := Launch(bin, dir, args...)
	if err != nil {
		return nil, err
	}
	select {
	case <-n.Log.ready:
		n.TCP, n.HTTP = n.Log.find(`tcp_addr=(\S+)`), n.Log.find(`http_addr=(\S+)`)
		n.Graphite, n.Pickle = n.Log.find(`msg="graphite lines" addr=(\S+)`),
			n.Log.find(`msg="graphite pickled lists" addr=(\S+)`)
		n.UDP = n.Log.find(`msg="udp put" addr=(\S+)`)
		return n, nil
	case <-n.done:
		return n, ErrEnded
	case <-time.After(Patience):
		return n, fmt.Errorf("the node is not ready after %v\n%s", Patience, n.Stacks())
	}
}

// Launch starts the node and does not wait for it.
func Launch(bin, dir string, args ...string) (*Node, error) {
	n := &Node{Log: &Log{ready: make(chan struct{})}, done: make(chan struct{})}
	args = append([]string{
		"serve", "--data-dir", dir, "--tcp-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--set",
		"bucket.auto_create=off",
	}, args...)
	n.cmd = exec.Command(filepath.Join(bin, "ddb"), args...)
	n.cmd.Stderr = n.Log
	// it does not outlive this program
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(n.done)
		_ = n.cmd.Wait() // the state tells how it ended
	}()
	return n, nil
}

// Kill ends the node with SIGKILL and returns when it is gone.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may have ended by itself
	<-n.done
}

// Stop ends the node with SIGTERM and returns its exit code, -1 after a signal.
func (n *Node) Stop() (int, error) {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	return n.Wait(Patience)
}

// Wait returns the exit code, -1 after a signal. A node that runs on after d is
// ended, and the error says what it was doing.
func (n *Node) Wait(d time.Duration) (int, error) {
	select {
	case <-n.done:
		return n.cmd.ProcessState.ExitCode(), nil
	case <-time.After(d):
		return 0, fmt.Errorf("the process runs on after %v\n%s", d, n.Stacks())
	}
}

// dumpTime is how long a process may take to print its goroutines.
const dumpTime = 10 * time.Second

// Stacks ends a node that hangs, and returns the last lines of its log and the
// stacks of all its goroutines.
func (n *Node) Stacks() string {
	logged := len(n.Log.String())
	tail := n.Log.Tail(20)
	_ = n.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended by itself
	select {
	case <-n.done:
	case <-time.After(dumpTime):
	}
	n.Kill()
	return tail + "\n" + n.Log.String()[logged:]
}

// Done is closed when the process has ended.
func (n *Node) Done() <-chan struct{} { return n.done }

// Anonymous is the anonymous memory of the process, RssAnon, in bytes.
func (n *Node) Anonymous() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64) // 0 when it is no number
			return kb << 10
		}
	}
	return 0
}

// Log is what a node prints, up to 8 MiB.
type Log struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
	isUp  bool
}

// Write is for the process.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() < 8<<20 {
		l.text.Write(b)
	}
	if !l.isUp && bytes.Contains(l.text.Bytes(), []byte("msg=ready ")) {
		l.isUp = true
		close(l.ready)
	}
	return len(b), nil
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *Log) find(pattern string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(l.String()); m != nil {
		return m[1]
	}
	return ""
}

// Lines returns the lines that contain text.
func (l *Log) Lines(text string) []string {
	var out []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// Tail returns the last n lines.
func (l *Log) Tail(n int) string {
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
