package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"dalmatiner/internal/admin"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// server is a process that is measured.
type server struct {
	tcp, http string // addresses
	data      string // directory, of ddb

	cmd    *exec.Cmd
	ready  chan []string // gets the two addresses once
	exited chan struct{} // closed after the process ended and its log is whole
	mu     sync.Mutex
	log    []string // lines of standard error
}

// startDiscard starts this program as the server that discards.
func startDiscard() (*server, error) { return startSelf("-discard", nil) }

// startSelf starts this program as one of the servers to compare with.
func startSelf(as string, in io.Reader) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, as)
	cmd.Stdin = in
	return start(cmd)
}

// startDDB starts the store on its defaults, but for settings (key=value), and
// with the Go runtime's report of collections in its log.
func (b *bench) startDDB(data string, settings ...string) (*server, error) {
	args := []string{"serve", "--data-dir", data}
	if !slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, "tcp.addr=") }) {
		settings = append(settings, "tcp.addr=127.0.0.1:0", "http.addr=127.0.0.1:0")
	}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	cmd := exec.Command(filepath.Join(b.bin, "ddb"), args...)
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	s, err := start(cmd)
	if err != nil {
		return nil, err
	}
	s.data = data
	return s, nil
}

// start starts a server and waits until it says that it is ready.
func start(cmd *exec.Cmd) (*server, error) {
	s, err := launch(cmd)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(readyTimeout)
	defer timeout.Stop()
	select {
	case addrs := <-s.ready:
		s.tcp, s.http = addrs[0], addrs[1]
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("%s ended at its start: %s", filepath.Base(cmd.Path), s.lastLines())
	case <-timeout.C:
		s.kill()
		return nil, fmt.Errorf("%s is not ready after %v: %s", filepath.Base(cmd.Path), readyTimeout, s.lastLines())
	}
}

// launch starts a server and does not wait.
func launch(cmd *exec.Cmd) (*server, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, ready: make(chan []string, 1), exited: make(chan struct{})}
	go s.follow(out)
	return s, nil
}

var readyLine = regexp.MustCompile(`msg=ready tcp_addr=(\S+) http_addr=(\S+)`)

// follow reads what the process logs until it ends.
func (s *server) follow(out io.Reader) {
	defer close(s.exited)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.mu.Lock()
		s.log = append(s.log, lines.Text())
		s.mu.Unlock()
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			s.ready <- m[1:]
		}
	}
	_ = s.cmd.Wait() // a killed process has no other end; stop looks at the state
}

func (s *server) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// lastLines returns the end of the log without the runtime's lines.
func (s *server) lastLines() string {
	var own []string
	for _, l := range s.lines() {
		if !strings.HasPrefix(l, "gc ") {
			own = append(own, l)
		}
	}
	return strings.Join(own[max(0, len(own)-5):], " / ")
}

// stop ends the process as an operator would.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; then the state tells
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-s.exited:
	case <-timeout.C:
		s.kill()
		return fmt.Errorf("the server did not end within %v: %s", stopTimeout, s.lastLines())
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v: %s", s.cmd.ProcessState, s.lastLines())
	}
	return nil
}

// kill ends the process at once. It may have ended before.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

func (s *server) client() *admin.Client { return &admin.Client{Addr: s.http} }
