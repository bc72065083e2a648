package command

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dalmatiner/access"
	"dalmatiner/access/state"
	"dalmatiner/access/trust"
	"dalmatiner/ducks/internal/agent"
	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/authority"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/emulate"
	"dalmatiner/ducks/internal/initiator"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/traffic"
)

// TestDucks is a day of an operator: commands against a running ducks, and a machine at the other
// end of a cable.
func TestDucks(t *testing.T) {
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "mount", "mkfs.btrfs", "btrfs", "tgtd", "tgtadm", "mke2fs") {
		return
	}
	newBridge(t)
	dir := t.TempDir()
	data, err := os.MkdirTemp("/run", "d") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var said logged
	listened, ended := make(chan string, 1), make(chan error, 1)
	o := agent.Options{DataDir: data, Pool: "btrfs:" + duckstest.Mounted(t, "btrfs"), HTTP: server +
		":0", TLS: agent.TLS{Own: true}, Devices: server + ":0",
		Portal: netip.MustParseAddrPort(server + ":3260"), Base: "iqn.2026-11.test.room",
		Network:  agent.Network{Interface: bridge, Loaders: loaders(t)},
		Shape:    traffic.Options{Interface: bridge, Line: 1e9},
		Logger:   slog.New(slog.NewTextHandler(&said, nil)),
		Listened: func(people, _ net.Addr) { listened <- people.String() }}
	t.Cleanup(func() { endTargets(t, &o) })
	go func() { ended <- agent.Run(ctx, o) }()
	var at string
	select {
	case at = <-listened:
	case err := <-ended:
		t.Fatal(err)
	}
	sh := &shell{t, []string{"--addr", "https://" + at, "--token-file",
		filepath.Join(data, agent.FirstToken)}}
	sh.says("pool status", "unknown authority")
	t.Setenv("DUCKS_CA", filepath.Join(data, agent.CAFile))
	m := newMachine(t)
	testBegin(sh, m)
	testVersions(sh, m)
	testCrash(sh, m)
	testInUse(sh, m)
	testAttach(sh)
	testLimit(sh, m)
	testSpace(sh, m)
	testMenu(sh, m)
	testScopes(sh, dir)
	testNetworks(sh, dir)
	testTimeouts(sh)
	testImages(sh, dir)
	testFull(sh, m, strings.TrimPrefix(o.Pool, "btrfs:"))
	testFiles(sh, dir)
	testDisks(sh, m)
	testRemoval(sh, m)
	testCanary(sh, m)
	testUsers(sh, dir)
	testAccess(sh, dir)
	(&shell{t, nil}).says("restore --data-dir "+data+" --pool "+o.Pool,
		"another process has this pool")
	(&shell{t, nil}).says("stop --targets --data-dir "+data, "stop ducks serve first")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(),
		"tgtd goes on: devices keep their disks; ducks stop --targets ends it") {
		t.Errorf("it says as it stops: %s", said.String())
	}
	testStop(t, data)
	testRestore(sh, data, o.Pool)
}

// testRestore: who has the pool has all volumes, groups, devices and tokens.
func testRestore(sh *shell, data, pool string) {
	sh.t.Helper()
	sh = &shell{sh.t, nil} // no server runs
	sh.says("restore --data-dir "+data+" --pool "+pool, "is there already")
	sh.says("restore --data-dir " + data + "/again --pool " + pool)
	file, err := state.Open(filepath.Join(data, "again", "state"),
		append(room.Migrations(), access.Migration, dhcp.Migration, authority.Migration))
	if err != nil {
		sh.t.Fatal(err)
	}
	defer file.Close()
	r := room.New(room.Options{State: file})
	d, err := r.Device("pc1")
	if g, gerr := r.Group("lab"); errors.Join(err, gerr) != nil || d.MAC != firstMAC ||
		len(g.Versions) != 1 {
		sh.t.Errorf("%+v, %+v, %v, %v", d, g, err, gerr)
	}
	if secret, err := access.New(file, time.Now).First(); secret != "" || err != nil {
		sh.t.Errorf("nobody is let in: %v", err)
	}
	was, err := os.ReadFile(filepath.Join(data, agent.CAFile))
	ca, caErr := authority.Open(file, time.Now)
	if errors.Join(err, caErr) != nil || !bytes.Equal(ca.PEM(), was) {
		sh.t.Errorf("the CA is another one: %v, %v", err, caErr)
	}
}

// endTargets ends tgtd, which goes on behind ducks and would keep the pool from being unmounted.
func endTargets(t *testing.T, o *agent.Options) {
	t.Helper()
	left, err := target.Start(context.Background(),
		target.Options{Dir: filepath.Join(o.DataDir, "tgt"), Portal: o.Portal, Logger: o.Logger})
	if err == nil {
		err = left.End()
	}
	if err != nil {
		t.Error(err)
	}
}

func testBegin(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("pool status", "are free")
	sh.says("volume create linux --size 64M")
	sh.says("volume create linux --size 64M", "error: volume linux: it exists already")
	sh.says("volume create odd --size 1000",
		"error: volume odd: 1000 bytes: the size of a disk is a multiple of 512 bytes above 0")
	sh.says("volume create Big --size 1M", "a name has 1 to 40")
	sh.says("volume list", "linux 64.0M 1 empty first")
	sh.says("group create lab --volume linux")
	sh.says("group create lab --volume linux", "error: group lab: it exists already")
	sh.says("device unknown", "MAC ADDRESS FIRST SEEN LAST SEEN")
	if _, err := m.Boot(sh.t.Context(), false); !errors.Is(err, emulate.ErrWaits) {
		sh.t.Errorf("a machine that is not known: %v", err)
	}
	sh.says("device unknown", firstMAC+" 10.77.0.128")
	sh.says("alerts", "machine "+firstMAC+": it waits to be added, at 10.77.0.128",
		"ducks device add "+firstMAC)
	sh.says("device leases", firstMAC+" 10.77.0.128")
	sh.says("device add " + firstMAC + " --name pc1 --group lab")
	sh.says("device add 02:00 --name pc2 --group lab", "is no MAC address")
	sh.says("device add 02:00:00:00:00:03 --name pc2 --group lab --mode until=2030-02-31",
		"want until=YYYY-MM-DD")
	sh.says("device add 02:00:00:00:00:03 --name pc2 --group lab --mode until=2030-02-28")
	sh.says("device list", "pc1 "+firstMAC+" lab volatile - -",
		"pc2 02:00:00:00:00:03 lab until 2030-02-28 - -")
	sh.says("device wake pc1")
	sh.says("device wake pc9", "device pc9: it is not known")
	sh.says("group update lab --from pc2", "boot it first")
	sh.says("group update lab --from pc9", "error: device pc9: it is not known")
}

// testVersions: what a machine writes becomes a version, and it boots that, an older one, or one
// that it is pinned to.
func testVersions(sh *shell, m *machine) {
	sh.t.Helper()
	reads := func() byte {
		disk, off := m.boots()
		defer off()
		b := make([]byte, 512)
		if err := disk.ReadAt(sh.t.Context(), b, 0); err != nil {
			sh.t.Fatal(err)
		}
		return b[0]
	}
	disk, off := m.boots()
	if err := errors.Join(disk.WriteAt(sh.t.Context(), bytes.Repeat([]byte{7}, 512), 0),
		disk.Flush(sh.t.Context())); err != nil {
		sh.t.Fatal(err)
	}
	sh.says("group update lab --from pc1", "it is on: shut it down")
	off()
	duckstest.Until(sh.t, "the session is gone", func() bool {
		return !strings.Contains(sh.run("group update lab --from pc1 --note \"first one\""), "is on")
	})
	sh.says("group versions lab", "1 2", "volume linux, version 1", "device pc1", "first one")
	sh.says("plan", "pc1 lab 2", "the version of its group", "pc2 lab 2 nothing it boots first")
	if reads() != 7 {
		sh.t.Error("it does not boot what it has written")
	}
	sh.says("group rollback lab --to 1")
	sh.says("group list", "lab default linux 2 version 1")
	if reads() != 0 {
		sh.t.Error("it does not boot the first version")
	}
	sh.says("device pin pc1 --to 2")
	if reads() != 7 {
		sh.t.Error("it does not boot the version that it is pinned to")
	}
	sh.says("device pin pc1 --to 3", "there are 1 to 2")
	sh.says("device change pc1", "nothing is to change")
	sh.says("device change pc1 --mode persistent")
	sh.says("device pin pc1 --to 0")
	sh.says("device list", "pc1 "+firstMAC+" lab persistent - version 2")
	if reads() != 7 {
		sh.t.Error("it does not keep what it has")
	}
	sh.says("device rollback pc1 --not --to 1", "it goes without --to")
	sh.says("device rollback pc1 --to 1")
	sh.says("plan", "pc1 lab 1", "it begins anew: it is pinned")
	sh.says("device rollback pc1 --not")
	sh.says("plan", "pc1 lab 2 nothing it keeps what it wrote, and misses version 1")
	sh.says("device rollback pc1")
	if reads() != 0 {
		sh.t.Error("it does not begin anew")
	}
	sh.says("plan", "pc1 lab 1 nothing it keeps what it wrote")
	sh.says("device rollback pc1 --to 2")
	if reads() != 7 {
		sh.t.Error("it does not begin anew with another version")
	}
	sh.says("device pin pc1 --to 0")
	sh.says("device list", "pc1 "+firstMAC+" lab persistent - version 2")
	sh.says("group rollback lab --to 0")
	sh.says("group promote lab --note \"for all\"", "version 2, from group lab, version 2")
	sh.says("volume list", "linux 64.0M 2 group lab, version 2 first for all")
}

// testCrash: a machine whose cable is cut boots again, with a new disk, and what it has reached is
// shown.
func testCrash(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("device change pc1 --mode volatile")
	disk, _ := m.boots()
	if err := disk.WriteAt(sh.t.Context(), bytes.Repeat([]byte{9}, 512), 0); err != nil {
		sh.t.Fatal(err)
	}
	if err := m.Unplug(); err != nil {
		sh.t.Fatal(err)
	}
	m.plug()
	r, err := m.Boot(sh.t.Context(), true)
	if err != nil {
		sh.t.Fatal(err)
	}
	defer r.Session.Close()
	b := make([]byte, 512)
	if err := errors.Join(r.Disk.ReadAt(sh.t.Context(), b, 0),
		r.Work(sh.t.Context(), 1<<20, 1)); err != nil || b[0] != 7 {
		sh.t.Errorf("it boots %d, not its version: %v", b[0], err)
	}
	lastBoot := func() string { return strings.Split(sh.run("device boots pc1"), "\n")[1] }
	duckstest.Until(sh.t, "the login is seen", func() bool {
		return strings.Contains(lastBoot(), "read")
	})
	if err := r.SayUp(sh.t.Context()); err != nil {
		sh.t.Fatal(err)
	}
	for _, stage := range []string{"dhcp 0.0", "tftp ", "ipxe ", "script ", "login ", "read ", "up "} {
		if got := lastBoot(); !strings.Contains(got, stage) {
			sh.t.Errorf("its last boot is shown as %s", got)
		}
	}
}

// testImages: files become volumes and volumes files, byte for byte; what is not whole becomes
// nothing. testDisks: a further disk is that of one device, keeps what is written, and goes when no
// device has it.
func testDisks(sh *shell, m *machine) {
	sh.t.Helper()
	sh.says("disk create data --size 4M")
	sh.says("disk create data --size 4M", "disk data: it exists already")
	sh.says("disk attach data --to pc9", "device pc9: it is not known")
	sh.says("disk attach data --to pc1")
	sh.says("disk list", "data 4.0M pc1")
	sh.says("disk delete data", "device pc1 has it: take it away first")
	second := func() (*initiator.Disk, func()) {
		r, err := m.Boot(sh.t.Context(), false)
		if err != nil {
			sh.t.Fatal(err)
		}
		disk, err := r.Session.Disk(sh.t.Context(), 2)
		if err != nil {
			sh.t.Fatal(err)
		}
		return disk, r.Session.Close
	}
	disk, off := second()
	if err := errors.Join(disk.WriteAt(sh.t.Context(), bytes.Repeat([]byte{5}, 512), 512),
		disk.Flush(sh.t.Context())); err != nil {
		sh.t.Fatal(err)
	}
	sh.says("disk detach data", "device pc1 has it, and is on: shut it down first")
	off()
	disk, off = second()
	b := make([]byte, 512)
	if err := disk.ReadAt(sh.t.Context(), b, 512); err != nil || b[0] != 5 || disk.Size() != 4<<20 {
		sh.t.Errorf("%d of %d bytes, %v", b[0], disk.Size(), err)
	}
	off()
	sh.says("pool orphans")
	duckstest.Until(sh.t, "the session is gone", func() bool {
		return sh.run("disk detach data") == ""
	})
	sh.says("disk delete data")
	sh.says("disk list", "DISK SIZE DEVICE")
}

// testRemoval: what somebody needs stays, all else goes, and its space with it.
func testRemoval(sh *shell, m *machine) {
	sh.t.Helper()
	_, off := m.boots()
	sh.says("device delete pc1", "it is on: shut it down first")
	off()
	sh.says("volume delete linux", "group lab is of it")
	sh.says("group delete lab", "device pc1 is in it")
	sh.says("group delete lab --version 2", "is the one that devices get, or the newest")
	sh.says("group delete lab --version 7", "version 7: it is not known")
	sh.says("device pin pc2 --to 1")
	sh.says("group delete lab --version 1", "device pc2 is pinned to version 1")
	sh.says("device pin pc2 --to 0")
	sh.says("group delete lab --version 1")
	if got := sh.run("group versions lab"); strings.Contains(got, "volume linux, version 1") {
		sh.t.Errorf("it has the version still\n%s", got)
	}
	m.boots()
	sh.says("volume delete golden")
	sh.says("device delete pc2")
	if got := sh.run("device list"); strings.Contains(got, "pc2") {
		sh.t.Errorf("%s", got)
	}
	sh.says("pool orphans --delete d.pc1.1", "it is not known, or a device has it")
}

// typed runs a command with a line of standard input.
func (s *shell) typed(line, text string) string {
	s.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	before := os.Stdin
	defer func() { os.Stdin = before }()
	os.Stdin = r
	if _, err := w.WriteString(text + "\n"); err != nil {
		s.t.Fatal(err)
	}
	got := s.run(line)
	if err := errors.Join(w.Close(), r.Close()); err != nil {
		s.t.Fatal(err)
	}
	return got
}

// testUsers: a user is let in by a password, for as long as the session and the password are.
func testUsers(sh *shell, dir string) {
	sh.t.Helper()
	const first, second = "correct horse", "battery staple"
	if got := sh.typed("user create ann --role operator", "short"); !strings.Contains(got,
		"a password has 10 to 256 bytes") {
		sh.t.Errorf("%s", got)
	}
	if got := sh.typed("user create ann --role operator", first); got != "" {
		sh.t.Errorf("%s", got)
	}
	sh.says("user list", "ann operator")
	if got := sh.typed("login ann", second); !strings.Contains(got, "wrong user or password") {
		sh.t.Errorf("%s", got)
	}
	begins := func(password string) *shell {
		file := filepath.Join(dir, "session")
		if err := os.WriteFile(file, []byte(sh.typed("login ann", password)), 0o600); err != nil {
			sh.t.Fatal(err)
		}
		return &shell{sh.t, []string{sh.flags[0], sh.flags[1], "--token-file", file}}
	}
	ann := begins(first)
	ann.says("device list", "pc1")
	ann.says("user list", "it needs role admin")
	if got := ann.typed("user password first", second); !strings.Contains(got, "it needs role admin") {
		sh.t.Errorf("%s", got)
	}
	if got := ann.typed("user password ann", second); got != "" {
		sh.t.Errorf("%s", got)
	}
	ann.says("device list", "access denied")
	ann = begins(second)
	ann.says("logout")
	ann.says("device list", "access denied")
	sh.says("user delete ann")
	if got := sh.typed("login ann", second); !strings.Contains(got, "wrong user or password") {
		sh.t.Errorf("%s", got)
	}
	if got := sh.run("trail --json"); strings.Contains(got, first) || strings.Contains(got, second) ||
		!strings.Contains(got, "log in") {
		sh.t.Errorf("the trail is %s", got)
	}
}

// testAccess: who may not is told so, and it is in the trail; secrets are shown to admins only.
func testAccess(sh *shell, dir string) {
	sh.t.Helper()
	bob := strings.TrimSpace(sh.run("token create bob --role viewer"))
	file := filepath.Join(dir, "bob")
	if err := os.WriteFile(file, []byte(bob), 0o600); err != nil {
		sh.t.Fatal(err)
	}
	viewer := &shell{sh.t, []string{sh.flags[0], sh.flags[1], "--token-file", file}}
	viewer.says("device list", "pc1")
	viewer.says("device show pc1", "chap_user pc1", "(for an admin only)")
	viewer.says("volume create more --size 1M", "it needs role operator, and bob has viewer")
	viewer.says("trail", "it needs role admin")
	if got := sh.says("device show pc1 --json", `"iqn": "iqn.2026-11.test.room:pc1"`,
		`"portal": "10.77.0.1:3260"`); !regexp.MustCompile(`"chap_secret": "[A-Z2-7]{16}"`).MatchString(
		got) {
		sh.t.Errorf("an admin is shown %s", got)
	}
	sh.says("token list", "bob viewer", "first admin")
	sh.says("token delete bob")
	viewer.says("device list", "access denied")
	if r, err := trusting(sh.t).Get(sh.flags[1] + api.Description); err != nil ||
		r.StatusCode != http.StatusOK || r.Body.Close() != nil {
		sh.t.Errorf("the description of the API: %v", err)
	}
	sh.says("trail", "bob create volume", "it needs role operator", "first update group lab done",
		"first delete token bob done")
	if got := sh.run("trail --json"); strings.Contains(got, bob) {
		sh.t.Error("the trail has a secret")
	}
}

// trusting returns a client that trusts the CA of the server.
func trusting(t *testing.T) *http.Client {
	t.Helper()
	trusted, err := trust.CA(os.Getenv("DUCKS_CA"))
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}}
}

// Commands speak to a server whose certificate is of a CA that they are told, and to no other.
func TestTheServerIsTrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"total_bytes": 4096, "free_bytes": 1024}`) // who asked may have gone
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	sh := &shell{t, []string{"--addr", s.URL, "--token", "x"}}
	sh.says("pool status", "unknown authority")
	sh.says("pool status --ca "+ca, "1.0K of 4.0K are free")
	sh.says("pool status --ca "+ca+".none", "no such file")
}
