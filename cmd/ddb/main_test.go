package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/host/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output collects what a command prints. Logs and the test use it at once.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// nodeFunc stands for node.Run.
type nodeFunc func(ctx context.Context, cfg config.Config,
	ready func(tcpAddr, httpAddr string)) error

func testProcess(signals chan os.Signal, run nodeFunc) process {
	return process{
		run: func(ctx context.Context, cfg config.Config, _ *slog.Logger,
			ready func(string, string)) error {
			return run(ctx, cfg, ready)
		},
		signals: signals,
		exit:    func(int) {},
	}
}

// untilCancelled is a node that runs until it is told to stop.
func untilCancelled(ctx context.Context, _ config.Config, ready func(string, string)) error {
	ready("127.0.0.1:1", "127.0.0.1:2")
	<-ctx.Done()
	return nil
}

func TestSignalStopsCleanly(t *testing.T) {
	signals := make(chan os.Signal, 2)
	var out, errOut output
	p := testProcess(signals,
		func(ctx context.Context, cfg config.Config, ready func(string, string)) error {
			signals <- syscall.SIGTERM
			return untilCancelled(ctx, cfg, ready)
		})
	if code := execute([]string{"serve"}, &out, &errOut, p); code != admin.ExitOK {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
	lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "everything is on disk") {
		t.Errorf("the last line is %s", last)
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	signals := make(chan os.Signal, 2)
	release := make(chan struct{})
	defer close(release)
	p := testProcess(signals,
		func(ctx context.Context, _ config.Config, _ func(string, string)) error {
			<-ctx.Done()
			signals <- os.Interrupt
			<-release // a node that does not come to its end
			return nil
		})
	exited := -1
	p.exit = func(code int) { exited = code }
	signals <- os.Interrupt
	var out, errOut output
	code := execute([]string{"serve"}, &out, &errOut, p)
	if code != admin.ExitFailed || exited != admin.ExitFailed {
		t.Errorf("returned %d, exited %d: %s", code, exited, errOut.String())
	}
}

func TestFailureOfTheNode(t *testing.T) {
	var out, errOut output
	p := testProcess(nil, func(context.Context, config.Config, func(string, string)) error {
		return errors.New("fsync of wal/000001.log: no space left")
	})
	if code := execute([]string{"serve"}, &out, &errOut, p); code != admin.ExitFailed ||
		!strings.Contains(errOut.String(), "fsync of wal") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
	if strings.Contains(errOut.String(), "everything is on disk") {
		t.Errorf("claims success: %s", errOut.String())
	}
}

// serveWith runs serve with flags and returns the configuration the node saw.
func serveWith(t *testing.T, args ...string) (cfg config.Config, log string) {
	t.Helper()
	var out, errOut output
	p := testProcess(nil, func(_ context.Context, c config.Config, _ func(string, string)) error {
		cfg = c
		return nil
	})
	if code := execute(append([]string{"serve"}, args...), &out, &errOut, p); code != admin.ExitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	return cfg, errOut.String()
}

func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ddb.conf")
	text := "cache_points = 100\nlate.memory = 100MB\ntcp.addr = 0.0.0.0:1\nbkt_dict = dict\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, log := serveWith(t, "--config", file, "--set", "late.memory=200MB", "--set",
		"tcp.addr=0.0.0.0:2", "--tcp-addr", "0.0.0.0:3")
	if cfg.CachePoints != 100 || cfg.LateMemory != 200<<20 || cfg.TCPAddr != "0.0.0.0:3" ||
		cfg.HTTPAddr != "127.0.0.1:8080" {
		t.Errorf("got %+v", cfg)
	}
	if !strings.Contains(log, "bkt_dict") {
		t.Errorf("no warning in %s", log)
	}
	cfg, log = serveWith(t, "--log-level", "error", "--data-dir", "/x")
	if log != "" || cfg.DataDir != "/x" || cfg.Version == "" {
		t.Errorf("got %+v, %s", cfg, log)
	}
}

// TestConfigShowIsAFile: what config show prints can be given back.
func TestConfigShowIsAFile(t *testing.T) {
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "--all"}} {
		showIsAFile(t, append(args, "--set", "wal.sync=always", "--set", "lifetime=100", "--data-dir",
			"/x"))
	}
}

func showIsAFile(t *testing.T, args []string) {
	t.Helper()
	var out, errOut output
	if code := execute(args, &out, &errOut, testProcess(nil, untilCancelled)); code != admin.ExitOK {
		t.Fatal(errOut.String())
	}
	file := filepath.Join(t.TempDir(), "ddb.conf")
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, log := serveWith(t, "--config", file)
	if cfg.WALSync != "always" || cfg.Lifetime != 100 || cfg.DataDir != "/x" ||
		strings.Contains(log, "WARN") {
		t.Errorf("got %+v, %s", cfg, log)
	}
}
