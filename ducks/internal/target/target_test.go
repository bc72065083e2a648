package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dalmatiner/ducks/internal/duckstest"
)

const portal = "127.0.0.1:3260"

func start(t *testing.T, dir string) *Targets {
	t.Helper()
	s, err := Start(t.Context(), Options{Dir: dir, Portal: netip.MustParseAddrPort(portal),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// device returns a target with a disk of so many MiB.
func device(t *testing.T, name string, mib int64) Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, mib<<20); err != nil {
		t.Fatal(err)
	}
	return Target{IQN: "iqn.2026-11.test:" + name, Disks: []Disk{{path, "serial" + name}},
		Initiators: []string{"iqn.2026-11.test:pc." + name},
		User:       name, Secret: "secret" + strings.Repeat("x", 8)}
}

// capacity logs in as an initiator, and returns what it is told of the first disk.
func capacity(as, login string, of Target) (string, error) {
	out, err := exec.Command("iscsi-readcapacity16", "-i", as,
		"iscsi://"+login+portal+"/"+of.IQN+"/1").CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return string(out), err
}

// pidOf returns the number of the process of tgtd.
func pidOf(s *Targets) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tgtd.pid
}

func sees(t *testing.T, of Target) {
	t.Helper()
	duckstest.Until(t, "the device sees its disk", func() bool {
		out, err := capacity(of.Initiators[0], of.User+"%"+of.Secret+"@", of)
		return err == nil && strings.Contains(out, "Total size:")
	})
}

// listen puts a program of a name before that of the machine, and returns the arguments that it
// had.
func listen(t *testing.T, name string) func() string {
	t.Helper()
	real, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$@\" >>" + log + "\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		all, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
}

// TestTargets: only the device of a target logs in to it, with its secret; nobody takes it away
// beneath a session; an end of tgtd or of this process takes nothing away.
func TestTargets(t *testing.T) {
	if !duckstest.Alone(t, "tgtd", "tgtadm", "iscsi-readcapacity16", "iscsi-perf") {
		return
	}
	dir, err := os.MkdirTemp("", "tgt") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	said := listen(t, "tgtadm")
	s, a, b := start(t, dir), device(t, "a", 64), device(t, "b", 32)
	for _, of := range []Target{a, b} {
		if err := errors.Join(s.Put(t.Context(), of), s.Put(t.Context(), of)); err != nil {
			t.Fatal(err)
		}
		sees(t, of)
	}
	for who, as := range map[string][2]string{
		"another initiator": {b.Initiators[0], a.User + "%" + a.Secret + "@"},
		"no secret":         {a.Initiators[0], ""},
		"another secret":    {a.Initiators[0], a.User + "%" + strings.Repeat("y", 14) + "@"},
		"another user":      {a.Initiators[0], b.User + "%" + b.Secret + "x@"},
	} {
		if out, err := capacity(as[0], as[1], a); err == nil {
			t.Errorf("%s logs in: %s", who, out)
		}
	}
	if all := said(); strings.Count(all, "--password") != 2 || strings.Contains(all, a.Secret) {
		t.Errorf("the arguments of tgtadm are\n%s", all)
	}
	pid := pidOf(s)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	sees(t, a)
	sees(t, b)
	testSessions(t, s, a)
	sees(t, b)
	second := pidOf(s)
	s.Close()
	next := start(t, dir)
	if now := pidOf(next); second == pid || now != second {
		t.Errorf("tgtd was process %d, then %d, and is %d", pid, second, now)
	}
	sees(t, b)
	testRests(t, next, b)
	if err := next.Remove(t.Context(), a.IQN, false); !errors.Is(err, ErrUnknown) {
		t.Errorf("removed again: %v", err)
	}
	if err := next.End(); err != nil {
		t.Error(err)
	}
	if _, err := capacity(b.Initiators[0], "", b); err == nil {
		t.Error("tgtd goes on")
	}
	busy, err := Start(t.Context(),
		Options{Dir: dir, Portal: netip.MustParseAddrPort("192.0.2.1:3260"),
			Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = busy.End()
		t.Error("it listens on an address of another machine")
	}
}

// testRests: who looks for tgtd while it works, or gives a question up, does not leave it reading
// that without a pause.
func testRests(t *testing.T, s *Targets, of Target) {
	t.Helper()
	load := exec.Command("iscsi-perf", "-i", of.Initiators[0], "-m", "64", "-b", "256", "-t", "60",
		"iscsi://"+of.User+"%"+of.Secret+"@"+portal+"/"+of.IQN+"/1")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	duckstest.Until(t, "there is a session", func() bool {
		list, err := s.Sessions(t.Context(), of.IQN)
		return err == nil && len(list) == 1
	})
	for i := range 200 {
		found, err := s.options.find()
		if err != nil || found.pid != pidOf(s) {
			t.Fatalf("tgtd is not found: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		_, _ = s.Traffic(ctx) // it may be in time
		cancel()
	}
	_ = load.Process.Kill()
	_ = load.Wait() // it was killed
	stat := fmt.Sprintf("/proc/%d/stat", pidOf(s))
	spent, before := "", ""
	duckstest.Until(t, "tgtd rests for half a second", func() bool {
		<-time.After(500 * time.Millisecond)
		text, err := os.ReadFile(stat)
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(text))
		before, spent = spent, f[13]+" "+f[14] // user and system time, proc(5)
		return before == spent
	})
}

// testSessions: a target with a session is neither changed nor removed, unless sessions are to be
// closed.
func testSessions(t *testing.T, s *Targets, a Target) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	load := exec.CommandContext(ctx, "iscsi-perf", "-i", a.Initiators[0], "-m", "1", "-b", "8", "-t",
		"60", "iscsi://"+a.User+"%"+a.Secret+"@"+portal+"/"+a.IQN+"/1")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	duckstest.Until(t, "there is a session", func() bool {
		list, err := s.Sessions(ctx, a.IQN)
		return err == nil && len(list) == 1 && list[0].Initiator == a.Initiators[0] &&
			list[0].Address == netip.MustParseAddr("127.0.0.1")
	})
	changed := a
	changed.User = "other"
	if err := s.Put(ctx, changed); !errors.Is(err, ErrBusy) {
		t.Errorf("changed beneath a session: %v", err)
	}
	if err := s.Remove(ctx, a.IQN, false); !errors.Is(err, ErrBusy) {
		t.Errorf("removed beneath a session: %v", err)
	}
	if err := s.Remove(ctx, a.IQN, true); err != nil {
		t.Errorf("removed with its session: %v", err)
	}
	cancel()
	_ = load.Wait() // it was killed
}

func TestWhatIsNoTarget(t *testing.T) {
	good := Target{IQN: "iqn.2026-11.test:a", Disks: []Disk{{"/disk", "s1"}},
		Initiators: []string{"iqn.2026-11.test:pc", "192.0.2.1", "2001:db8::1"}, User: "a",
		Secret: "abcdefghijkl"}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*Target){
		"name":       func(o *Target) { o.IQN = "iqn.test:a" },
		"no disk":    func(o *Target) { o.Disks = nil },
		"path":       func(o *Target) { o.Disks = []Disk{{"disk", "s1"}} },
		"serial":     func(o *Target) { o.Disks = []Disk{{"/disk", "s1,readonly=1"}} },
		"initiator":  func(o *Target) { o.Initiators = []string{"ALL"} },
		"user":       func(o *Target) { o.User = "a b" },
		"short":      func(o *Target) { o.Secret = "short" },
		"characters": func(o *Target) { o.Secret = "abcdefghijkl " },
	} {
		bad := good
		spoil(&bad)
		if bad.check() == nil {
			t.Errorf("%s: %+v is a target", what, bad)
		}
	}
}

func TestParseSessions(t *testing.T) {
	const out = "Session: 2\n    Connection: 0\n        Initiator: iqn.2026-11.test:pc.a alias: " +
		"pc\n        IP Address: 192.0.2.7\nSession: 1\n    Connection: 0\n        Initiator: " +
		"iqn.x\n        IP Address: 2001:db8::1\n"
	want := []Session{{2, "iqn.2026-11.test:pc.a", netip.MustParseAddr("192.0.2.7")},
		{1, "iqn.x", netip.MustParseAddr("2001:db8::1")}}
	if got, err := parseSessions([]byte(out)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseSessions(nil); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"Session: x\n", "Session: 1\nIP Address: here\n"} {
		if _, err := parseSessions([]byte(bad)); err == nil {
			t.Errorf("%q is a session", bad)
		}
	}
}
