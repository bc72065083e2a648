package test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/snapshot"
)

// opsSeries and opsSlots are what the tests of operations store.
const (
	opsSeries = 50
	opsSlots  = 900
)

// sendOps stores opsSlots of every series from base on.
func sendOps(t *testing.T, n *node, base int64) {
	t.Helper()
	s := openAcked(t, n, "ops")
	for i := range uint64(opsSeries) {
		words := make([]uint64, opsSlots)
		for j := range words {
			words[j] = value(i, base+int64(j))
		}
		s.point(key(t, "ops", string(rune('a'+i))), base, words...)
	}
	if ack := s.flush(); ack.Refused != 0 {
		t.Fatalf("%+v", ack)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// missingOps counts the words that are not there; none may be wrong.
func missingOps(t *testing.T, n *node, base int64) (missing int) {
	t.Helper()
	c := n.dial()
	for i := range uint64(opsSeries) {
		for j, w := range get(t, c, "ops", key(t, "ops", string(rune('a'+i))), base, opsSlots) {
			switch want := value(i, base+int64(j)); w {
			case want:
			case 0:
				missing++
			default:
				t.Fatalf("series %d slot %d reads %x, sent was %x", i, base+int64(j), w, want)
			}
		}
	}
	return missing
}

// adminJSON runs an admin command with --json and decodes what it prints.
func adminJSON(t *testing.T, out any, code int, args ...string) {
	t.Helper()
	r := run(t, "ddb", append(append([]string{"admin"}, args...), "--json")...)
	if r.code != code {
		t.Fatalf("ddb admin %q ends with %d, want %d: %s%s", args, r.code, code, r.out, r.errOut)
	}
	if err := json.Unmarshal([]byte(r.out), out); err != nil {
		t.Fatalf("ddb admin %q: %v in %s", args, err, r.out)
	}
}

// A snapshot of a running node, restored into a new directory, reads back as
// it was, and the node goes on.
func TestSnapshotAndRestore(t *testing.T) {
	dir, base := t.TempDir(), past(20*time.Minute)
	n := startNode(t, dir)
	t.Setenv("DDB_ADDR", n.http)
	sendOps(t, n, base)
	if r := run(t, "ddb", "admin", "snapshot", "first"); r.code != 0 ||
		!strings.Contains(r.out, "Snapshot first:") {
		t.Fatalf("%d: %s%s", r.code, r.out, r.errOut)
	}
	if r := run(t, "ddb", "admin", "snapshot", "first"); r.code != 1 ||
		!strings.Contains(r.errOut, "the snapshot exists") {
		t.Errorf("again: %d: %s%s", r.code, r.out, r.errOut)
	}
	var list []snapshot.Info
	if adminJSON(t, &list, 0, "snapshot", "list"); len(list) != 1 || list[0].Name != "first" ||
		list[0].Files == 0 {
		t.Fatalf("%+v", list)
	}
	sendOps(t, n, base-opsSlots*10)
	before := n.account("ops").Received / 2

	to := filepath.Join(t.TempDir(), "restored")
	from := filepath.Join(dir, "snapshots", "first")
	var report fsck.Report
	if adminJSON(t, &report, 0, "check", "--data-dir", from); report.Points == 0 || report.Online {
		t.Errorf("%+v", report)
	}
	if r := run(t, "ddb", "restore", "--snapshot", from, "--data-dir", dir); r.code != 2 {
		t.Errorf("over a data directory: %d: %s%s", r.code, r.out, r.errOut)
	}
	if r := run(t, "ddb", "restore", "--snapshot", from, "--data-dir", to, "--link"); r.code != 0 {
		t.Fatalf("%d: %s%s", r.code, r.out, r.errOut)
	}
	restored := startNode(t, to)
	if missing := missingOps(t, restored, base); missing != 0 {
		t.Errorf("%d words are missing in the restored node", missing)
	}
	if got := restored.account("ops").Received; got != before {
		t.Errorf("the restored account has %d points, want %d", got, before)
	}
	restored.stop()
	if r := run(t, "ddb", "admin", "snapshot", "delete", "first"); r.code != 0 {
		t.Errorf("%d: %s%s", r.code, r.out, r.errOut)
	}
	if missing := missingOps(t, n, base) + missingOps(t, n, base-opsSlots*10); missing != 0 {
		t.Errorf("%d words are missing in the node", missing)
	}
	n.stop()
}

// The check finds damage in a running node and in a directory, says where, and
// tells by its exit code; the node serves the rest and counts it.
func TestCheckFindsDamage(t *testing.T) {
	dir, base := t.TempDir(), past(20*time.Minute)
	n := startNode(t, dir)
	t.Setenv("DDB_ADDR", n.http)
	sendOps(t, n, base)
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var report fsck.Report
	if adminJSON(t, &report, 0, "check"); !report.Online || report.Damaged != 0 ||
		report.Points < opsSeries*opsSlots || report.Series < opsSeries {
		t.Fatalf("%+v", report)
	}
	if r := run(t, "ddb", "admin", "check", "--data-dir", dir); r.code != 2 ||
		!strings.Contains(r.errOut, "in use") {
		t.Errorf("offline beside a node: %d: %s%s", r.code, r.out, r.errOut)
	}
	path := files(t, dir, "flush/*.seg")[0]
	flip(t, path, 100)
	adminJSON(t, &report, 1, "check", "--rate", "100MB")
	if len(report.Damages) != 1 || report.Damages[0].File != "flush/"+filepath.Base(path) ||
		report.Damages[0].Part != "data" {
		t.Errorf("%+v", report.Damages)
	}
	var st admin.Status
	if adminJSON(t, &st, 0, "status"); st.Damage == 0 || !st.Ready || st.Series < opsSeries ||
		st.RSSBytes == 0 || st.FreeDisk == 0 {
		t.Errorf("%+v", st)
	}
	if missing := missingOps(t, n, base); missing == 0 || missing == opsSeries*opsSlots {
		t.Errorf("%d words are missing behind one damaged block", missing)
	}
	n.stop()
	r := run(t, "ddb", "admin", "check", "--data-dir", dir)
	if r.code != 1 || !strings.Contains(r.out, "DAMAGED flush/"+filepath.Base(path)+": offset 0, ") ||
		!strings.Contains(r.errOut, "damaged places: 1") {
		t.Errorf("offline: %d: %s%s", r.code, r.out, r.errOut)
	}
	if r := run(t, "ddb", "restore", "--snapshot", dir, "--data-dir",
		filepath.Join(dir, "new")); r.code != 1 ||
		!strings.Contains(r.errOut, "the snapshot is damaged") {
		t.Errorf("restore of a damaged directory: %d: %s%s", r.code, r.out, r.errOut)
	}
}

func TestListsOfANode(t *testing.T) {
	n := startNode(t, t.TempDir())
	t.Setenv("DDB_ADDR", n.http)
	base := past(20 * time.Minute)
	sendOps(t, n, base)
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var segments []inventory.Segment
	adminJSON(t, &segments, 0, "segments", "list", "--bucket", "ops")
	if len(segments) == 0 {
		t.Fatal("no segment holds the bucket")
	}
	for _, s := range segments {
		if s.Damage != "" || s.FirstSlot > base || s.PastSlot < base+opsSlots ||
			s.From != s.FirstSlot*1000 || s.Chunks < 2*opsSeries {
			t.Errorf("%+v, sent from slot %d", s, base)
		}
	}
	missingOps(t, n, base)
	var caches []store.Cache
	adminJSON(t, &caches, 0, "cache", "stats")
	if !slices.ContainsFunc(caches, func(c store.Cache) bool {
		return c.Name == "segment-indexes" && c.Bytes > 0
	}) {
		t.Errorf("%+v", caches)
	}
	eventually(t, "points go out", func() bool {
		var st admin.Status
		run(t, "ddb", "query", "SELECT ops.* BUCKET ops LAST 30m")
		adminJSON(t, &st, 0, "status")
		return st.PointsOut > 0 && st.PointsIn > 0
	})
	if r := run(t, "ddb", "admin", "status"); r.code != 0 ||
		!strings.Contains(r.out, "damage        none") {
		t.Errorf("%d: %s%s", r.code, r.out, r.errOut)
	}
}

// A node that listens beyond its machine warns of what this means. Any other
// node does not warn.
func TestExposedListenersWarn(t *testing.T) {
	t.Parallel()
	const warning = "anyone who reaches this port"
	n := startNode(t, t.TempDir(), "--http-addr", "0.0.0.0:0")
	if text := n.log.String(); strings.Count(text, warning) != 1 ||
		!strings.Contains(text, "key=http.addr") {
		t.Errorf("the log is %s", text)
	}
	n = startNode(t, t.TempDir())
	if text := n.log.String(); strings.Contains(text, warning) {
		t.Errorf("the log is %s", text)
	}
}

// The unit's command line is one the program takes, and the unit is one
// systemd takes, where there is a systemd to ask.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../packaging/ddb.service")
	if err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name[0] != '#' {
			keys[name] = v
		}
	}
	args := strings.Fields(keys["ExecStart"])
	if len(args) < 4 || args[0] != "/usr/bin/ddb" || args[1] != "serve" {
		t.Fatalf("ExecStart is %q", keys["ExecStart"])
	}
	r := run(t, "ddb", append([]string{"config", "show"}, args[2:]...)...)
	if r.code != 0 || !strings.Contains(r.out, "data_dir = /var/lib/"+keys["StateDirectory"]+" ") {
		t.Errorf("%d: %s%s", r.code, r.out, r.errOut)
	}
	for name, want := range map[string]string{"KillSignal": "SIGTERM", "NoNewPrivileges": "yes",
		"ProtectSystem": "strict", "Restart": "on-failure"} {
		if keys[name] != want {
			t.Errorf("%s is %q, want %q", name, keys[name], want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze: the unit is not verified by systemd")
	}
	unit := filepath.Join(t.TempDir(), "ddb.service")
	write(t, unit, strings.ReplaceAll(string(text), "/usr/bin/ddb", program("ddb")))
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil ||
		strings.Contains(string(out), "ddb.service") {
		t.Errorf("%v: %s", err, out)
	}
}
