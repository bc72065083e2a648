// Package test runs the programs as their users do: real processes, real
// sockets, real files, SIGTERM and kill -9. Every test has a data directory and
// ports of its own.
//
// DDB_BIN names a directory with ready binaries; without it they are built
// once. DDB_SEED repeats a run of the tests that choose at random.
package test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// binaries is the directory of the programs under test. TestMain sets it
// before any test runs.
var binaries string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	binaries = os.Getenv("DDB_BIN")
	if binaries == "" {
		dir, err := os.MkdirTemp("", "ddb-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/...")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", build, err, out)
			return 1
		}
		binaries = dir
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// program returns the path of one of the programs.
func program(name string) string {
	path, err := filepath.Abs(filepath.Join(binaries, name))
	if err != nil {
		panic(err) // there is no working directory
	}
	return path
}

// seeded returns a random source and logs how to get the same one again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("DDB_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("DDB_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("DDB_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
