package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dalmatiner/bench/measure"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 3 * time.Minute
	// settleTimeout bounds the wait for a server to finish what it does behind
	// its answers.
	settleTimeout = 5 * time.Minute
	// A server is idle that takes less than this of a core in every of
	// idleSeconds in a row.
	idleShare   = 0.04
	idleSeconds = 2
)

// instance is a running process that is measured.
type instance struct {
	competitor *competitor
	dir        string         // everything it writes
	ports      map[string]int // by the names the competitor gave
	cmd        *exec.Cmd
	http       http.Client
	exited     chan struct{}
}

func (s *instance) addr(port string) string { return "127.0.0.1:" + strconv.Itoa(s.ports[port]) }

func (s *instance) url(port, path string) string { return "http://" + s.addr(port) + path }

func (s *instance) logPath() string { return filepath.Join(s.dir, "log") }

// freePorts finds a port for every name. They are all held until the last is
// found, so that no two are the same.
func freePorts(names []string) (map[string]int, error) {
	ports := map[string]int{}
	for _, name := range names {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		ports[name] = ln.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// startServer starts a competitor on a directory and waits until it answers.
func startServer(ctx context.Context, p *competitor, dir string) (*instance, error) {
	return launch(ctx, p, dir, p.command)
}

// startAsked starts what answers questions over the directory of a competitor.
func startAsked(ctx context.Context, p *competitor, dir string) (*instance, error) {
	if p.asked != nil {
		return launch(ctx, p, dir, p.asked)
	}
	return launch(ctx, p, dir, p.command)
}

func launch(ctx context.Context, p *competitor, dir string,
	command func(*instance) (*exec.Cmd, error)) (*instance, error) {
	ports, err := freePorts(p.ports)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &instance{competitor: p, dir: dir, ports: ports, exited: make(chan struct{})}
	s.http = http.Client{Transport: &http.Transport{}, Timeout: settleTimeout}
	if s.cmd, err = command(s); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Dir = dir
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = s.cmd.Start()
	if err = errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // the state tells
		close(s.exited)
	}()
	if err := s.awaitReady(ctx); err != nil {
		s.kill()
		return nil, err
	}
	return s, nil
}

func (s *instance) awaitReady(ctx context.Context) error {
	deadline := time.Now().Add(readyTimeout)
	for {
		err := s.competitor.ready(ctx, s)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended at its start: %s", s.lastLog())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it is not ready after %v (%w): %s", readyTimeout, err, s.lastLog())
		}
	}
}

// lastLog returns the end of what the process printed.
func (s *instance) lastLog() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], " / ")
}

// get asks a server and returns the body of a success.
func (s *instance) get(ctx context.Context, port, path string) ([]byte, error) {
	return s.request(ctx, http.MethodGet, port, path)
}

func (s *instance) request(ctx context.Context, method, port, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url(port, path), nil)
	if err != nil {
		return nil, err
	}
	return exchange(&s.http, req)
}

// stop ends the process as an operator would, and waits.
func (s *instance) stop() error {
	s.http.CloseIdleConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; then there is nothing to stop
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopTimeout):
		s.kill()
		return fmt.Errorf("it did not end within %v: %s", stopTimeout, s.lastLog())
	}
}

// kill ends the process at once. It may have ended before.
func (s *instance) kill() {
	s.http.CloseIdleConnections()
	_ = s.cmd.Process.Kill()
	<-s.exited
}

func (s *instance) cpuTime() (time.Duration, error) {
	c, err := measure.TreeTime(s.cmd.Process.Pid)
	return c.Sum(), err
}

func (s *instance) memory() (now, peak int64, err error) {
	return measure.TreeMemory(s.cmd.Process.Pid)
}

// settle makes the server write and merge what it has, as far as it can be
// told to, and waits until it is idle. It tells whether it became so.
func (s *instance) settle(ctx context.Context) (idle bool, err error) {
	if s.competitor.flush != nil {
		if err := s.competitor.flush(ctx, s); err != nil {
			return false, fmt.Errorf("flush and merge: %w", err)
		}
	}
	return s.awaitIdle(ctx)
}

// until asks again and again whether something has been done.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	for deadline := time.Now().Add(settleTimeout); time.Now().Before(deadline); {
		if err := measure.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return fmt.Errorf("after %v it is not so that %s", settleTimeout, what)
}

func (s *instance) awaitIdle(ctx context.Context) (idle bool, err error) {
	last, err := s.cpuTime()
	if err != nil {
		return false, err
	}
	begun, at, quiet := time.Now(), time.Now(), 0
	need := max(idleSeconds, int(s.competitor.quiet/time.Second))
	for quiet < need {
		if time.Since(begun) > settleTimeout {
			return false, nil
		}
		if err := measure.Pause(ctx, time.Second); err != nil {
			return false, err
		}
		used, err := s.cpuTime()
		if err != nil {
			return false, err
		}
		quiet++
		if (used-last).Seconds()/time.Since(at).Seconds() > idleShare {
			quiet = 0
		}
		last, at = used, time.Now()
	}
	return true, nil
}

// usage returns the bytes on the disk of everything a server keeps, neither holes in files nor the
// rest of their last blocks, but for directories that are named in skip: logs that are written
// again from their start.
func usage(dir string, skip []string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a server that runs removes files
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for _, pattern := range skip {
			hit, err := filepath.Match(pattern, rel)
			if err != nil {
				return err
			}
			if hit && d.IsDir() {
				return fs.SkipDir
			}
			if hit {
				return nil
			}
		}
		var st syscall.Stat_t
		if d.IsDir() || syscall.Lstat(path, &st) != nil {
			return nil
		}
		bytes += min(st.Size, st.Blocks*512)
		return nil
	})
	return bytes, err
}
