package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// patience is how long the node may take to start and to stop.
const patience = 30 * time.Second

// node is the running ddb serve.
type node struct {
	cmd  *exec.Cmd
	dir  string
	log  string // file
	http string
	done chan struct{} // closed when the process has ended
}

// startNode starts a node on its defaults and waits until it answers.
func startNode(ctx context.Context, o options, dir string) (*node, error) {
	for flag, addr := range map[string]string{"tcp-addr": o.tcpAddr, "http-addr": o.httpAddr} {
		if err := free(flag, addr); err != nil {
			return nil, err
		}
	}
	n := &node{
		dir:  dir,
		log:  filepath.Join(dir, "ddb.log"),
		http: o.httpAddr,
		done: make(chan struct{}),
	}
	log, err := os.Create(n.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own descriptor
	args := []string{"serve", "--data-dir", filepath.Join(dir, "data"), "--tcp-addr", o.tcpAddr,
		"--http-addr", o.httpAddr}
	for _, s := range o.set {
		args = append(args, "--set", s)
	}
	n.cmd = exec.Command(filepath.Join(o.bin, "ddb"), args...)
	n.cmd.Stderr = log
	// A group of its own: Ctrl-C reaches the demo, which stops the node itself.
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: make build first, or name the directory of the programs with -bin",
			err)
	}
	go func() {
		defer close(n.done)
		_ = n.cmd.Wait() // its state tells how it ended
	}()
	if err := n.ready(ctx); err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

// free says what to do when an address is in use.
func free(flag, addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w: end what listens there, or choose another address: go run ./test/demo "+
			"-%s HOST:PORT", err, flag)
	}
	return ln.Close()
}

// ready waits until the node takes points and queries.
func (n *node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.http+"/ready", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close() // only the status matters
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-n.done:
			return fmt.Errorf("the node ended with %v:\n%s", n.cmd.ProcessState, n.logText())
		case <-ctx.Done():
			return fmt.Errorf("the node is not ready: %w\n%s", ctx.Err(), n.logText())
		}
	}
}

// stop makes everything durable and ends the node.
func (n *node) stop() error {
	select {
	case <-n.done:
		return fmt.Errorf("the node has ended with %v:\n%s", n.cmd.ProcessState, n.logText())
	default:
	}
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the node: %w", err)
	}
	select {
	case <-n.done:
	case <-time.After(patience):
		_ = n.cmd.Process.Kill() // it has ended if this fails
		<-n.done
		return fmt.Errorf("the node did not stop in %v and was killed:\n%s", patience, n.logText())
	}
	if !n.cmd.ProcessState.Success() {
		return fmt.Errorf("the node ended with %v:\n%s", n.cmd.ProcessState, n.logText())
	}
	return nil
}

// leave says how to find the node that runs on.
func (n *node) leave(out io.Writer) {
	fmt.Fprintf(out, "\nKEEP=1: the node runs on.\n  page and queries  http://%s/\n  data and "+
		"log      %s\n  end it            kill %d\n",
		n.http, n.dir, n.cmd.Process.Pid)
}

// logText returns what the node logged.
func (n *node) logText() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
