package test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/api/admin"
)

// patience is how long anything may take that takes milliseconds on an idle
// machine.
const patience = 60 * time.Second

// node is a running ddb serve.
type node struct {
	t         *testing.T
	cmd       *exec.Cmd
	tcp, http string // addresses
	log       *nodeLog
	done      chan struct{} // closed when the process has ended
}

// startNode starts a node on dir and waits until it is ready. args are further
// flags. The node is killed at the end of the test if it still runs.
func startNode(t *testing.T, dir string, args ...string) *node {
	t.Helper()
	n := launch(t, dir, args...)
	n.awaitReady()
	return n
}

// awaitReady waits until the node answers, and notes its addresses.
func (n *node) awaitReady() {
	t := n.t
	t.Helper()
	select {
	case addrs := <-n.log.ready:
		n.tcp, n.http = addrs[0], addrs[1]
	case <-n.done:
		t.Fatalf("the node ended before it was ready: %v\n%s", n.cmd.ProcessState, n.log)
	case <-time.After(patience):
		t.Fatalf("the node is not ready after %v:\n%s", patience, n.log)
	}
}

// launch starts a node and does not wait for it.
func launch(t *testing.T, dir string, args ...string) *node {
	t.Helper()
	return launchBy(t, nil, dir, args...)
}

// launchBy is launch by another program, which becomes the node.
func launchBy(t *testing.T, by []string, dir string, args ...string) *node {
	t.Helper()
	n := &node{t: t, log: newNodeLog(), done: make(chan struct{})}
	// Acknowledgements wait for the log's interval.
	args = append([]string{
		"serve", "--data-dir", dir, "--tcp-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--set",
		"wal.interval=20ms",
	}, args...)
	line := append(append(slices.Clone(by), program("ddb")), args...)
	n.cmd = exec.Command(line[0], line[1:]...)
	n.cmd.Stderr = n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(n.done)
		_ = n.cmd.Wait() // the state tells how it ended
	}()
	t.Cleanup(func() {
		_ = n.cmd.Process.Kill() // it has usually ended
		<-n.done
		if t.Failed() {
			t.Logf("log of process %d:\n%s", n.cmd.Process.Pid, n.log.tail())
		}
	})
	return n
}

// kill ends the node as a crash of the process does.
func (n *node) kill() {
	n.t.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		n.t.Fatalf("kill -9: %v", err)
	}
	n.wait()
}

// stop ends the node in the orderly way.
func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatalf("SIGTERM: %v", err)
	}
	if code := n.wait(); code != 0 {
		n.t.Fatalf("the exit code after SIGTERM is %d", code)
	}
	if text := n.log.String(); !strings.Contains(text, "everything is on disk") {
		n.t.Fatalf("the log does not end with everything on disk:\n%s", text)
	}
}

// wait returns the exit code of the node, −1 after a signal.
func (n *node) wait() int {
	n.t.Helper()
	select {
	case <-n.done:
		return n.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		n.t.Fatalf("the process runs on after %v", patience)
		return 0
	}
}

// admin returns a client of the node's HTTP address.
func (n *node) admin() *admin.Client { return &admin.Client{Addr: n.http} }

// dial returns a client of the node's TCP address that is closed at the end of
// the test.
func (n *node) dial() *client.Client {
	n.t.Helper()
	c, err := client.Dial(context.Background(), n.tcp)
	if err != nil {
		n.t.Fatal(err)
	}
	c.Timeout = patience
	n.t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	return c
}

// account returns the ledger of a bucket, by its escaped name. It holds
// everywhere that the parts make the sum.
func (n *node) account(bucket string) admin.AccountRow {
	n.t.Helper()
	a, err := n.admin().Account(context.Background(), "", 0)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, row := range a.Rows {
		if row.Received != row.Sum() {
			n.t.Fatalf("the parts do not make the sum: %+v", row)
		}
		if row.Bucket == bucket {
			return row
		}
	}
	return admin.AccountRow{Bucket: bucket, Refused: map[string]uint64{}}
}

// figure returns the value of one line of admin stats.
func (n *node) figure(name string) float64 {
	n.t.Helper()
	stats, err := n.admin().Stats(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, s := range stats {
		if s.Name == name {
			return s.Value
		}
	}
	return 0
}

// stored returns the number of points of a row that were written.
func stored(row admin.AccountRow) uint64 {
	return row.Accepted + row.Duplicate + row.Conflicting + row.Late
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
		<-tick.C
	}
}

// result is what a program that ran to its end left.
type result struct {
	out, errOut string
	code        int
}

// run runs one of the programs to its end.
func run(t *testing.T, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(name), args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errOut.String())
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// nodeLog collects what a node logs and finds the addresses in it.
type nodeLog struct {
	ready chan [2]string // gets the addresses once

	mu    sync.Mutex
	text  bytes.Buffer
	found bool
}

var readyLine = regexp.MustCompile(`msg=ready tcp_addr=(\S+) http_addr=(\S+)\n`)

func newNodeLog() *nodeLog { return &nodeLog{ready: make(chan [2]string, 1)} }

func (l *nodeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if !l.found {
		if m := readyLine.FindSubmatch(l.text.Bytes()); m != nil {
			l.found = true
			l.ready <- [2]string{string(m[1]), string(m[2])}
		}
	}
	return len(p), nil
}

func (l *nodeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail returns the end of the log.
func (l *nodeLog) tail() string {
	text := l.String()
	const most = 4000
	if len(text) <= most {
		return text
	}
	return "…" + text[len(text)-most:]
}
