package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/testkit/golden"
)

// TestCommandLine runs the scripts that need no node: help, versions, wrong
// settings and their remedies.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/script/alone/*.txtar", nil))
}

// TestCommandsOfANode runs each of the other scripts with a node of its own, under
// both names of the commands of administration. In their environment are the
// node's addresses and a full minute of ten minutes ago.
func TestCommandsOfANode(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/node/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for name, admin := range map[string][]string{"ddb": {"ddb", "admin"}, "ddb-admin": {"ddb-admin"}} {
		for _, file := range files {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				n := startNode(t, t.TempDir(), "--set", "self_monitor=off")
				testscript.Run(t, scripts(file, n, admin...))
			})
		}
	}
}

// scripts are those that pattern names, with what they can use besides the
// commands of testscript: "exits N program…" demands an exit code, and takes
// "admin" for a program; "send bucket metric slot values…" sends and waits until
// the points are durable.
func scripts(pattern string, n *node, admin ...string) testscript.Params {
	files, _ := filepath.Glob(pattern) // the pattern is a constant
	return testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       golden.Update(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(program("ddb"))+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("COLUMNS", "80")
			if n == nil {
				return nil
			}
			env.Setenv("DDB_ADDR", n.http)
			env.Setenv("TCP", n.tcp)
			slot := past(10*time.Minute) / 60 * 60
			env.Setenv("SLOT", strconv.FormatInt(slot, 10))
			for i := range int64(4) {
				env.Setenv(fmt.Sprintf("TIME%d", i), time.Unix(slot+i, 0).UTC().Format("2006-01-02 15:04:05"))
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				scriptExits(ts, neg, args, admin)
			},
			"send": func(ts *testscript.TestScript, _ bool, args []string) { scriptSend(ts, n, args) },
		},
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args, admin []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	line := args[1:]
	if line[0] == "admin" {
		line = append(slices.Clone(admin), line[1:]...)
	}
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(line[0], line[1:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func scriptSend(ts *testscript.TestScript, n *node, args []string) {
	if n == nil || len(args) < 4 {
		ts.Fatalf("usage, with a node: send bucket metric slot values...")
	}
	key, err := metric.ParseText(args[1])
	ts.Check(err)
	slot, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	var words []uint64
	for _, text := range args[3:] {
		v, err := strconv.ParseFloat(text, 64)
		ts.Check(err)
		if v == float64(int64(v)) {
			words = append(words, point.FromInt(int64(v)))
		} else {
			words = append(words, point.FromFloat(v))
		}
	}
	c, err := client.Dial(context.Background(), n.tcp)
	ts.Check(err)
	defer c.Close()
	c.Timeout = patience
	s, err := c.OpenAckStream(args[0])
	ts.Check(err)
	ts.Check(s.Points(key, slot, words...))
	_, err = s.FlushAck()
	ts.Check(err)
	ack, err := s.ReadAck()
	ts.Check(err)
	if ack.Received != uint64(len(words)) || ack.Refused != 0 {
		ts.Fatalf("%d points were answered with %+v", len(words), ack)
	}
}
