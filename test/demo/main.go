// Command demo shows the main job of the store on a fresh one, and checks it
// number by number: a node on its defaults takes a day of the published series
// and a load from haggar, answers the three published queries over HTTP, and
// every number is compared with what haggar computes for (series, slot).
//
//	go run ./test/demo -bin bin
//
// The exit status is 1 on any difference, on a coverage below 0.95, and when
// something did not work. Nothing is left behind; with KEEP=1 in the
// environment the node runs on and keeps its directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
)

// options are what the command line and the environment say.
type options struct {
	bin      string // directory of the programs
	tcpAddr  string
	httpAddr string
	load     time.Duration
	keep     bool
	nodes    int
	set      []string // settings of a node, as key=value
}

func main() {
	o := options{keep: os.Getenv("KEEP") == "1"}
	flag.StringVar(&o.bin, "bin", "bin", "`directory` with ddb and haggar")
	flag.StringVar(&o.tcpAddr, "tcp-addr", "127.0.0.1:5555", "`address` of the binary protocol")
	flag.StringVar(&o.httpAddr, "http-addr", "127.0.0.1:8080", "`address` of queries")
	flag.DurationVar(&o.load, "load", 15*time.Second, "how long the load lasts")
	flag.IntVar(&o.nodes, "nodes", 1,
		"nodes of a cluster, one of which is killed and brought back; 1 is a node on its own")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := demo
	if o.nodes > 1 {
		run = clusterDemo
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// demo runs everything from the empty directory to the last comparison.
func demo(ctx context.Context, o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "dalmatiner-demo-")
	if err != nil {
		return err
	}
	n, err := startNode(ctx, o, dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() {
		if o.keep {
			n.leave(out)
			return
		}
		err = errors.Join(err, n.stop(), os.RemoveAll(dir))
	}()
	fmt.Fprintf(out, "ddb serve: process %d, data in %s, points on %s, queries on %s\n\n",
		n.cmd.Process.Pid, filepath.Join(dir, "data"), o.tcpAddr, o.httpAddr)

	s := session{
		out:      out,
		dir:      dir,
		tcpAddr:  o.tcpAddr,
		loadAddr: o.tcpAddr,
		client:   &admin.Client{Addr: o.httpAddr},
	}
	if err := s.waitForRate(ctx); err != nil {
		return err
	}
	if err := s.sendEverything(ctx, o); err != nil {
		return err
	}
	for _, ask := range []func(context.Context) error{s.askWait, s.askUsage, s.askRate,
		s.showAccount} {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	return s.verdict()
}

// verdict says how the comparisons ended.
func (s *session) verdict() error {
	if len(s.differences) > 0 {
		for _, d := range s.differences {
			fmt.Fprintln(s.out, "DIFFERENCE:", d)
		}
		return fmt.Errorf("%d differences from what haggar sent", len(s.differences))
	}
	fmt.Fprintf(s.out, "\nAll %d numbers are what haggar computes for them.\n", s.compared)
	return nil
}

// session is what the demo knows while it goes on.
type session struct {
	out      io.Writer
	dir      string // of the demo's files
	tcpAddr  string
	loadAddr string // where the load goes
	client   *admin.Client

	published haggar.Summary // the published series, in bucket tachyon
	load      haggar.Summary // the load, in bucket haggar

	slots map[int]map[int64]bool // of the published series, as haggar's journal has them

	compared    int // numbers that were compared
	differences []string
}

// maxDifferences bounds how many differences are kept for printing.
const maxDifferences = 50

// compare counts a comparison and notes the difference where there is one.
func (s *session) compare(equal bool, format string, args ...any) {
	s.compared++
	if !equal && len(s.differences) < maxDifferences {
		s.differences = append(s.differences, fmt.Sprintf(format, args...))
	}
}
