// Package server runs the measured processes: the store, and the two servers it
// is compared with. One of these discards what it receives, and the other has
// the answer to every query ready. The package reads what the processes use and
// count.
package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/api/admin"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// Env is where servers run.
type Env struct {
	Bin string    // directory of the built programs
	Dir string    // temporary, for everything the servers write
	Log io.Writer // tells what is being done
}

// Logf tells what is being done.
func (e *Env) Logf(format string, args ...any) {
	fmt.Fprintf(e.Log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// Inside calls fn with Dir as a temporary directory below it, which is gone afterwards. It fails
// where less than need bytes are free. An interrupt ends the context.
func (e *Env) Inside(need int64, fn func(context.Context) error) (err error) {
	if err := measure.CheckSpace(e.Dir, need); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if e.Dir, err = os.MkdirTemp(e.Dir, "ddb-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(e.Dir)) }()
	return fn(ctx)
}

// Server is a process that is measured.
type Server struct {
	TCP, HTTP string // addresses
	Data      string // directory, of the store; "" of others

	cmd    *exec.Cmd
	ready  chan []string // gets the two addresses once
	exited chan struct{} // closed after the process ended and its log is whole
	mu     sync.Mutex
	log    []string // lines of standard error
}

// Roles of this program, each the name of its subcommand.
const (
	DiscardRole = "discard"
	AnswerRole  = "answer"
)

// StartDiscard starts this program as the server that discards.
func StartDiscard() (*Server, error) { return startSelf(DiscardRole, nil) }

// startSelf starts this program as one of the servers to compare with.
func startSelf(role string, in io.Reader) (*Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, role)
	cmd.Stdin = in
	return Start(cmd, "")
}

// Command returns what starts the store on its defaults, but for settings
// (key=value). Its listeners get free ports unless settings name them.
func (e *Env) Command(data string, settings ...string) *exec.Cmd {
	for _, listener := range []string{"tcp.addr=", "http.addr="} {
		if !slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, listener) }) {
			settings = append(settings, listener+"127.0.0.1:0")
		}
	}
	args := []string{"serve", "--data-dir", data}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	return exec.Command(filepath.Join(e.Bin, "ddb"), args...)
}

// Start starts the store as Command does, with the Go runtime's report of
// collections in its log.
func (e *Env) Start(data string, settings ...string) (*Server, error) {
	cmd := e.Command(data, settings...)
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	return Start(cmd, data)
}

// Start starts a server on a data directory, if it has one, and waits until it
// says that it is ready.
func Start(cmd *exec.Cmd, data string) (*Server, error) {
	s, err := Launch(cmd, data)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(readyTimeout)
	defer timeout.Stop()
	select {
	case addrs := <-s.ready:
		s.TCP, s.HTTP = addrs[0], addrs[1]
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("%s ended at its start: %s", filepath.Base(cmd.Path), s.LastLines())
	case <-timeout.C:
		s.Kill()
		return nil, fmt.Errorf("%s is not ready after %v: %s", filepath.Base(cmd.Path), readyTimeout,
			s.LastLines())
	}
}

// Launch starts a server and does not wait: its addresses are not known.
func Launch(cmd *exec.Cmd, data string) (*Server, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{Data: data, cmd: cmd, ready: make(chan []string, 1), exited: make(chan struct{})}
	go s.follow(out)
	return s, nil
}

var readyLine = regexp.MustCompile(`msg=ready tcp_addr=(\S+) http_addr=(\S+)`)

// follow reads what the process logs until it ends.
func (s *Server) follow(out io.Reader) {
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

// Lines returns what the process has logged.
func (s *Server) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// LastLines returns the end of the log without the runtime's lines.
func (s *Server) LastLines() string {
	var own []string
	for _, l := range s.Lines() {
		if !strings.HasPrefix(l, "gc ") {
			own = append(own, l)
		}
	}
	return strings.Join(own[max(0, len(own)-5):], " / ")
}

// Stop ends the process as an operator would.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; then the state tells
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-s.exited:
	case <-timeout.C:
		s.Kill()
		return fmt.Errorf("the server did not end within %v: %s", stopTimeout, s.LastLines())
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v: %s", s.cmd.ProcessState, s.LastLines())
	}
	return nil
}

// Kill ends the process at once. It may have ended before.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Remove ends the process if it runs, and removes its data.
func (s *Server) Remove() {
	s.Kill()
	_ = os.RemoveAll(s.Data) // the temporary directory is removed as a whole at the end
}

// Client returns a client of the store.
func (s *Server) Client() *admin.Client { return &admin.Client{Addr: s.HTTP} }

// Metric returns the value that /metrics has for a series, which is written as there.
func (s *Server) Metric(ctx context.Context, series string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTP+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("/metrics has no %s", series))
}
