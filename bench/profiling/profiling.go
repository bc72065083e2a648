// Package profiling takes profiles of a store under load.
package profiling

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

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
)

const (
	warm   = 3 * time.Second // the series are known then
	during = 10 * time.Second
	top    = 20 // functions that are printed

	// pastRows is how far in the past the loads begin: more rows than any
	// machine sends meanwhile.
	pastRows = 100_000
)

// Run loads a store as the rows ingest-200k and entries do, takes a
// profile of its processor time under each, and prints the functions that take
// most. The profiles stay in a directory.
func Run(ctx context.Context, env *server.Env, out io.Writer, dir string) error {
	batch := load.Uniform(load.Connections, 98*load.GroupWidth, pastRows)
	entries := load.Uniform(100, 2000, pastRows)
	entries.Batch, entries.CacheConnections = false, false
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, sent := range []struct {
		name string
		haggar.Config
	}{{"batch", batch}, {"entries", entries}} {
		file := filepath.Join(dir, sent.name+".pprof")
		env.Logf("%s …", sent.name)
		if err := profile(ctx, env, sent.Config, file); err != nil {
			return fmt.Errorf("%s: %w", sent.name, err)
		}
		fmt.Fprintf(out, "\n%s, %v under load: %s\n", sent.name, during, file)
		list := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", fmt.Sprintf("-nodecount=%d", top),
			filepath.Join(env.Bin, "ddb"), file)
		list.Stdout, list.Stderr = out, env.Log
		if err := list.Run(); err != nil {
			return fmt.Errorf("go tool pprof: %w", err)
		}
	}
	return nil
}

// profile writes a profile of a store under a load.
func profile(ctx context.Context, env *server.Env, c haggar.Config, file string) (err error) {
	s, err := env.Start(filepath.Join(env.Dir, "profile"), "http.pprof=loopback")
	if err != nil {
		return err
	}
	defer s.Remove()
	c.Steps, c.Duration = 0, warm+during+2*time.Second
	took := make(chan error, 1)
	go func() { took <- take(ctx, s, file) }()
	_, loadErr := load.Send(ctx, env, s, c)
	if err := errors.Join(loadErr, <-took); err != nil {
		return err
	}
	return s.Stop()
}

// take writes a profile of the processor to a file.
func take(ctx context.Context, s *server.Server, file string) error {
	if err := measure.Pause(ctx, warm); err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", s.HTTP, during.Seconds())
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
