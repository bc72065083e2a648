package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/initiator"
)

// testAttach: an initiator that asks for no script gets a disk as a device that boots does, and
// keeps it while it is on.
func testAttach(sh *shell) {
	sh.t.Helper()
	ctx := sh.t.Context()
	sh.says("device attach pc9", "error: device pc9: it is not known")
	duckstest.Until(sh.t, "the session before is gone", func() bool {
		return sh.shows("device detach pc1", "") && sh.shows("device detach pc1", "it is not attached")
	})
	sh.says("device attach pc1", "iqn iqn.2026-11.test.room:pc1", "portal 10.77.0.1:3260",
		"initiator iqn.2026-11.test.room.initiator:pc1", "chap_secret")
	var d api.Device
	if err := json.Unmarshal([]byte(sh.run("device attach pc1 --json")), &d); err != nil {
		sh.t.Fatal(err)
	}
	as := initiator.Options{Address: d.Portal, Target: d.IQN, Initiator: d.Initiator, User: d.User,
		Secret: d.Secret}
	other := as
	other.Initiator = "iqn.2026-11.test.room.initiator:pc2"
	if _, err := initiator.Login(ctx, other); err == nil {
		sh.t.Error("the initiator of another device logs in")
	}
	s, err := initiator.Login(ctx, as)
	if err != nil {
		sh.t.Fatal(err)
	}
	defer s.Close()
	disk, err := s.Disk(ctx, 1)
	if err != nil {
		sh.t.Fatal(err)
	}
	sh.says("device attach pc1", "a device has a session on it",
		"log it out first, or detach it with force")
	sh.says("device detach pc1", "a device has a session on it",
		"log it out first, or detach it with force")
	if err := errors.Join(disk.WriteAt(ctx, bytes.Repeat([]byte{4}, 512), 0),
		disk.Flush(ctx)); err != nil {
		sh.t.Errorf("what is attached cannot be written to: %v", err)
	}
	duckstest.Until(sh.t, "its login and its reads are seen", func() bool {
		return strings.Contains(sh.run("device boots pc1"), "login")
	})
	sh.says("device detach pc1 --force")
	sh.says("device detach pc1", "error: device pc1: it cannot be done: it is not attached")
	if disk.Flush(ctx) == nil {
		sh.t.Error("a device that was detached has its disk")
	}
}

// testStop: what serve leaves when it stops is ended by a command, while no serve runs.
func testStop(t *testing.T, data string) {
	t.Helper()
	sh := &shell{t, nil}
	sh.says("stop --targets --data-dir "+data, "tgtd has ended, and with it 0 sessions")
	sh.says("stop --targets --data-dir "+data, "no tgtd of "+data+" runs")
	sh.says("stop --data-dir "+data, "missing flags: --targets")
	sh.says("stop --targets --data-dir "+filepath.Join(data, "none"), "is no data directory of ducks")
}

// logged is what a server says while it is asked.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
