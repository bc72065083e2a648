package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
)

// members are the nodes of a cluster on this machine, each with an address of its own in
// 127.0.0.0/8.
type members struct {
	o     options
	dir   string
	out   io.Writer
	nodes []*node
}

// at returns the options of a node.
func (m *members) at(i int) options {
	host := fmt.Sprintf("127.0.7.%d", i+1)
	o := m.o
	o.tcpAddr, o.httpAddr = host+":5555", host+":8080"
	o.set = []string{"nodename=" + m.name(i), "cluster.listen=" + host + ":8599",
		"distributed_cookie_file=" + filepath.Join(m.dir, "cookie")}
	if i > 0 {
		o.set = append(o.set, "cluster.join=127.0.7.1")
	}
	return o
}

func (m *members) name(i int) string { return fmt.Sprintf("ddb%d@127.0.7.%d", i+1, i+1) }

// start starts a node, or starts it again.
func (m *members) start(ctx context.Context, i int) error {
	dir := filepath.Join(m.dir, fmt.Sprint(i+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	n, err := startNode(ctx, m.at(i), dir)
	if err != nil {
		return err
	}
	m.nodes[i] = n
	return nil
}

// kill ends a node as a crash does.
func (m *members) kill(i int) error {
	err := m.nodes[i].cmd.Process.Kill()
	<-m.nodes[i].done
	m.nodes[i] = nil
	return err
}

func (m *members) stop() (err error) {
	for _, n := range m.nodes {
		if n != nil {
			err = errors.Join(err, n.stop())
		}
	}
	return err
}

// run runs a command of ddb-admin at the first node.
func (m *members) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(m.o.bin, "ddb-admin"),
		append(args, "--addr", m.at(0).httpAddr)...)
	cmd.Stderr = m.out
	text, err := cmd.Output()
	return string(text), err
}

// await waits until a command prints a text.
func (m *members) await(ctx context.Context, text string, args ...string) error {
	return waitFor(ctx, "ddb-admin "+strings.Join(args, " ")+" says "+text, func() (bool, error) {
		out, err := m.run(ctx, args...)
		return strings.Contains(out, text), err
	})
}

// show prints a command and what it says.
func (m *members) show(ctx context.Context, args ...string) error {
	out, err := m.run(ctx, args...)
	fmt.Fprintf(m.out, "\nddb-admin %s\n\n%s", strings.Join(args, " "), out)
	return err
}

// clusterDemo is the demo on several nodes: one of them is killed under load and brought back, then
// every node answers the published queries.
func clusterDemo(ctx context.Context, o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "dalmatiner-demo-")
	if err != nil {
		return err
	}
	m := &members{o: o, dir: dir, out: out, nodes: make([]*node, o.nodes)}
	defer func() { err = errors.Join(err, m.stop(), os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "cookie"),
		[]byte("the cookie of a demo, known to all\n"), 0o600); err != nil {
		return err
	}
	for i := range m.nodes {
		if err := m.start(ctx, i); err != nil {
			return err
		}
	}
	all := fmt.Sprintf("Valid:%d / Leaving:0 / Exiting:0 / Joining:0 / Down:0", o.nodes)
	if err := m.await(ctx, all, "member-status"); err != nil {
		return err
	}
	if err := m.show(ctx, "member-status"); err != nil {
		return err
	}
	fmt.Fprintln(out)

	s := session{
		out:      out,
		dir:      dir,
		tcpAddr:  m.at(0).tcpAddr,
		loadAddr: m.at(1).tcpAddr,
		client:   &admin.Client{Addr: m.at(0).httpAddr},
	}
	if err := m.loadAndKill(ctx, &s); err != nil {
		return err
	}
	if err := m.await(ctx, all, "member-status"); err != nil {
		return err
	}
	if err := m.await(ctx, "No transfers active", "transfers"); err != nil {
		return err
	}
	for i := range m.nodes {
		fmt.Fprintf(out, "\n%s answers:\n", m.name(i))
		s.tcpAddr, s.client = m.at(i).tcpAddr, &admin.Client{Addr: m.at(i).httpAddr}
		if err := s.askWait(ctx); err != nil {
			return err
		}
		if err := s.askUsage(ctx); err != nil {
			return err
		}
	}
	if err := m.compareAccounts(ctx, &s); err != nil {
		return err
	}
	return s.verdict()
}

// loadAndKill sends everything, and kills the last node in the middle of it.
func (m *members) loadAndKill(ctx context.Context, s *session) error {
	sent := make(chan error, 1)
	go func() { sent <- s.sendEverything(ctx, m.o) }()
	last := len(m.nodes) - 1
	var failed error
	select {
	case err := <-sent:
		return errors.Join(err,
			errors.New("the load ended before a node was killed: give it more time with -load"))
	case <-time.After(m.o.load / 3):
		fmt.Fprintf(m.out, "kill -9: %s\n", m.name(last))
		failed = m.kill(last)
	}
	select {
	case err := <-sent:
		return errors.Join(err,
			errors.New("the load ended before the node came back: give it more time with -load"))
	case <-time.After(m.o.load / 3):
		failed = errors.Join(failed, m.start(ctx, last))
		fmt.Fprintf(m.out, "%s is back\n", m.name(last))
	}
	return errors.Join(<-sent, failed)
}

// compareAccounts compares the sum of the accounts of all nodes with what haggar sent.
func (m *members) compareAccounts(ctx context.Context, s *session) error {
	sums := map[string]admin.AccountRow{}
	for i := range m.nodes {
		a, err := (&admin.Client{Addr: m.at(i).httpAddr}).Account(ctx, "", 0)
		if err != nil {
			return err
		}
		for _, row := range a.Rows {
			s.compare(row.Received == row.Sum(), "%s, bucket %s: the parts do not make the sum: %+v",
				m.name(i), row.Bucket, row)
			sum := sums[row.Bucket]
			sums[row.Bucket] = add(sum, row)
		}
	}
	fmt.Fprintln(m.out)
	for bucket, sent := range map[string]haggar.Summary{haggar.PublishedBucket: s.published,
		loadBucket: s.load} {
		row := sums[bucket]
		s.compare(row.Received == uint64(sent.Points) && row.Accepted+row.Late == row.Received,
			"bucket %s: haggar sent %d points, the accounts of all nodes say %+v", bucket, sent.Points, row)
		fmt.Fprintf(m.out, "haggar sent %d points to %s at %.0f a second: received %d, accepted %d\n",
			sent.Points, bucket, sent.PointsPerSec, row.Received, row.Accepted)
	}
	return nil
}

// add returns the sum of two rows.
func add(a, b admin.AccountRow) admin.AccountRow {
	refused := maps.Clone(a.Refused)
	if refused == nil {
		refused = make(map[string]uint64)
	}
	for reason, n := range b.Refused {
		refused[reason] += n
	}
	return admin.AccountRow{Received: a.Received + b.Received, Accepted: a.Accepted + b.Accepted,
		Duplicate:   a.Duplicate + b.Duplicate,
		Conflicting: a.Conflicting + b.Conflicting, Late: a.Late + b.Late, Unset: a.Unset + b.Unset,
		Refused: refused}
}
