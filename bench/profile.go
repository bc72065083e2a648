package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/haggar"
)

const (
	profileWarm = 3 * time.Second // the series are known then
	profileTime = 10 * time.Second
	profileTop  = 20 // functions that are printed

	// profileRows is how far in the past the loads begin: more rows than any
	// machine sends meanwhile.
	profileRows = 100_000
)

// profiles loads a store as the rows ingest-200k and entries do, takes a
// profile of its processor time under each, and prints the functions that take
// most. The profiles stay in a directory.
func (b *bench) profiles(ctx context.Context, out io.Writer, dir string) error {
	batch := uniform(connections, 98*groupWidth, profileRows)
	entries := uniform(100, 2000, profileRows)
	entries.Batch, entries.CacheConnections = false, false
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, load := range []struct {
		name string
		haggar.Config
	}{{"batch", batch}, {"entries", entries}} {
		file := filepath.Join(dir, load.name+".pprof")
		b.logf("%s …", load.name)
		if err := b.profile(ctx, load.Config, file); err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
		fmt.Fprintf(out, "\n%s, %v under load: %s\n", load.name, profileTime, file)
		top := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", profileTop), filepath.Join(b.bin, "ddb"), file)
		top.Stdout, top.Stderr = out, b.log
		if err := top.Run(); err != nil {
			return fmt.Errorf("go tool pprof: %w", err)
		}
	}
	return nil
}

// profile writes a profile of a store under a load.
func (b *bench) profile(ctx context.Context, c haggar.Config, file string) (err error) {
	s, err := b.startDDB(filepath.Join(b.dir, "profile"), "tcp.addr=127.0.0.1:0", "http.addr=127.0.0.1:0", "http.pprof=loopback")
	if err != nil {
		return err
	}
	defer s.remove()
	c.Steps, c.Duration = 0, profileWarm+profileTime+2*time.Second
	took := make(chan error, 1)
	go func() { took <- s.takeProfile(ctx, file) }()
	_, loadErr := b.send(ctx, s, c)
	if err := errors.Join(loadErr, <-took); err != nil {
		return err
	}
	return s.stop()
}

// takeProfile writes a profile of the processor to a file.
func (s *server) takeProfile(ctx context.Context, file string) error {
	if err := measure.Pause(ctx, profileWarm); err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", s.http, profileTime.Seconds())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return os.WriteFile(file, body, 0o644)
}
