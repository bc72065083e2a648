package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dalmatiner/ducks/internal/agent"
	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/emulate"
	"dalmatiner/ducks/internal/initiator"
)

// served has the arguments of a process of ducks serve.
const served = "DUCKS_SERVED"

// TestServe is no test but the process that TestKilledUnderLoad kills.
func TestServe(t *testing.T) {
	if line := os.Getenv(served); line != "" {
		t.Fatal((&shell{t: t}).run(line)) // it ends by a signal only
	}
}

// process is ducks serve as a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	line string
	sh   *shell
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0], "-test.run", "^TestServe$")
	p.cmd.Env = append(os.Environ(), served+"="+p.line)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	duckstest.Until(p.t, "ducks answers", func() bool {
		return strings.Contains(p.sh.run("pool status"), "are free")
	})
}

func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // it says that it was killed
}

// killBeside kills ducks and starts it again, several times, while a device writes without an end.
// It returns how many blocks the disk has for good.
func (p *process) killBeside(disk *initiator.Disk) (kept int64) {
	p.t.Helper()
	var wrote atomic.Int64
	var err error
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() { kept, err = write(p.t.Context(), disk, &wrote, stop) })
	for range 4 {
		p.kill()
		before := wrote.Load()
		duckstest.Until(p.t, "the device goes on without ducks", func() bool {
			return wrote.Load() > before+100
		})
		p.start()
		before = wrote.Load()
		duckstest.Until(p.t, "the device goes on beside ducks", func() bool {
			return wrote.Load() > before+100
		})
	}
	close(stop)
	load.Wait()
	if err != nil {
		p.t.Fatal(err)
	}
	return kept
}

// write writes blocks that follow each other, of which each has its number, until it is told to
// stop. It returns how many the disk has for good.
func write(ctx context.Context, disk *initiator.Disk, wrote *atomic.Int64,
	stop <-chan struct{}) (kept int64, err error) {
	const together = 16
	for n := int64(0); ; n++ {
		select {
		case <-stop:
			return kept, nil
		default:
		}
		at := n % (disk.Size() / numbered)
		if err := disk.WriteAt(ctx, number(n), at*numbered); err != nil {
			return kept, fmt.Errorf("block %d: %w", n, err)
		}
		wrote.Store(n + 1)
		if n%together == together-1 {
			if err := disk.Flush(ctx); err != nil {
				return kept, err
			}
			kept = n + 1
		}
	}
}

// numbered is the length of a block that has its number.
const numbered = 4096

func number(n int64) []byte { return bytes.Repeat(fmt.Appendf(nil, "%15d\n", n), numbered/16) }

// reads checks that a disk has the last of so many blocks that were kept, or what came behind
// these.
func reads(t *testing.T, disk *initiator.Disk, kept int64) {
	t.Helper()
	count := disk.Size() / numbered
	got := make([]byte, numbered)
	for n := max(0, kept-count); n < kept; n++ {
		if err := disk.ReadAt(t.Context(), got, n%count*numbered); err != nil {
			t.Fatal(err)
		}
		if later := number(n + count); !bytes.Equal(got, number(n)) && !bytes.Equal(got, later) {
			t.Fatalf("block %d of %d that were kept holds %.20q", n, kept, got)
		}
	}
}

// Devices go on while ducks is killed and comes back, again and again, and nothing that they have
// written is lost. Behind it all is as before: the device boots what it wrote, other ones boot, and
// both have their parts of the line.
func TestKilledUnderLoad(t *testing.T) {
	duckstest.Unchanged(t)
	if !duckstest.Alone(t, "mount", "mkfs.btrfs", "btrfs", "tgtd", "tgtadm", "tc") {
		return
	}
	newBridge(t)
	data, err := os.MkdirTemp("/run", "d")
	if err != nil {
		t.Fatal(err)
	}
	pool := "btrfs:" + duckstest.Mounted(t, "btrfs")
	const at = "127.0.0.1:8091"
	sh := &shell{t, []string{"--addr", "http://" + at, "--token-file",
		filepath.Join(data, agent.FirstToken)}}
	p := &process{t: t, sh: sh}
	p.line = fmt.Sprintf("serve --data-dir %s --pool %s --http-addr %s --dhcp %s --boot-files %s "+
		"--shape %s --line 1gbit", data, pool, at, bridge, loaders(t), bridge)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // where the test has failed
		endTargets(t, &agent.Options{DataDir: data, Portal: netip.MustParseAddrPort(server + ":3260"),
			Logger: slog.New(slog.DiscardHandler)})
	})
	p.start()
	sh.says("volume create linux --size 16M")
	sh.says("group create lab --volume linux")
	sh.says("device add " + firstMAC + " --name pc1 --group lab --mode persistent")
	sh.says("device add 02:00:00:00:00:03 --name pc2 --group lab")
	m := newMachine(t)
	disk, off := m.boots()
	kept := p.killBeside(disk)
	off()
	disk, off = m.boots()
	defer off()
	reads(t, disk, kept)
	other, err := emulate.Plug(bridge, net.HardwareAddr{2, 0, 0, 0, 0, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Unplug()
	r, err := other.Boot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Session.Close()
	duckstest.Until(t, "both have their parts", func() bool {
		out, err := exec.Command("tc", "class", "show", "dev", bridge).Output()
		return err == nil && strings.Count(string(out), "rate 323333Kbit ceil 970Mbit") == 2
	})
	if err := errors.Join(p.cmd.Process.Signal(os.Interrupt), p.cmd.Wait()); err == nil {
		t.Error("TestServe has ended well, and says that it failed")
	}
	if out, err := exec.Command("tc", "qdisc", "show", "dev", bridge).Output(); err != nil ||
		strings.Contains(string(out), "htb") {
		t.Errorf("behind its end the bridge has %s, %v", out, err)
	}
}
