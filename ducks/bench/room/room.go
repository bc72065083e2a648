// Package room measures ducks: machines that are emulated at the ends of virtual cables, a switch
// and a server with a line of 1 Gbit, and the load of the published page. It runs in namespaces of
// its own, as root.
package room

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/ducks/internal/emulate"
	"dalmatiner/ducks/internal/pool"
)

// Space is what a run needs on the disk; the pool is in memory.
const Space = 64 << 20

// Role is what the program is called as in namespaces of its own.
const Role = "DUCKS_BENCH_ALONE"

// Alone runs this program again as it was called, in namespaces of its own, unless it is that
// already.
func Alone(ctx context.Context) (done bool, err error) {
	if os.Getenv(Role) != "" {
		return false, nil
	}
	if os.Getuid() != 0 {
		return true, errors.New("the bench of ducks makes networks and mounts: run it as root")
	}
	for tool, from := range map[string]string{"tgtd": "tgt", "mkfs.btrfs": "btrfs-progs",
		"ip": "iproute2", "unshare": "util-linux"} {
		if _, err := exec.LookPath(tool); err != nil {
			return true, fmt.Errorf("%s is missing: apt-get install %s", tool, from)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return true, err
	}
	cmd := exec.CommandContext(ctx, "unshare",
		append([]string{"--net", "--mount", "--pid", "--fork", "--mount-proc", self}, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), Role+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return true, cmd.Run()
}

// The room.
const (
	bridge = "switch" // with the cables of all machines
	port   = "port"   // its end of the server's cable
	card   = "srv"    // the server's
	self   = "10.77.0.1"
	line   = 1e9 // bits a second

	diskSize = 1 << 30
	used     = 256 << 20 // of it
	machines = 30
)

// room is a server and what it needs.
type room struct {
	*server.Env
	dir   string
	serve *exec.Cmd
	ended chan error
	quick bool
	t     *report.Table
}

// Run measures everything.
func Run(ctx context.Context, env *server.Env, quick bool, t *report.Table) (err error) {
	r := &room{Env: env, dir: env.Dir, quick: quick, t: t}
	if r.Bin, err = filepath.Abs(r.Bin); err != nil {
		return err
	}
	if err := r.build(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.takeDown()) }()
	if err := r.clones(ctx); err != nil {
		return fmt.Errorf("clones: %w", err)
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.fill(); err != nil {
		return err
	}
	if err := r.boots(ctx); err != nil {
		return fmt.Errorf("boots: %w", err)
	}
	if err := r.loads(ctx); err != nil {
		return fmt.Errorf("loads: %w", err)
	}
	return nil
}

func command(line string) error {
	args := strings.Fields(line)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return nil
}

// build makes networks and the pool.
func (r *room) build() error {
	for _, line := range []string{
		"mount -t tmpfs tmpfs /run", "mount -t sysfs sysfs /sys", "mount -t tmpfs -o size=6G tmpfs " +
			r.dir,
		"ip link set lo up",
		"ip link add " + bridge + " address 02:00:00:00:00:02 type bridge", "ip link set " + bridge +
			" up",
		"ip link add " + card + " address 02:00:00:00:00:01 type veth peer name " + port,
		"ip link set " + port + " master " + bridge + " up", "ip addr add " + self + "/24 dev " + card,
		"ip link set " + card + " up",
		// The bridge would answer for the address of the card, and nothing would cross its cable.
		"sysctl -q -w net.ipv4.conf." + bridge + ".arp_ignore=1",
		"truncate -s 5G " + r.dir + "/file", "mkfs.btrfs -q " + r.dir + "/file", "mkdir " + r.dir +
			"/pool /run/ducks",
		"mount -o loop,compress-force=zstd:1 " + r.dir + "/file " + r.dir + "/pool",
	} {
		if err := command(line); err != nil {
			return err
		}
	}
	return nil
}

func (r *room) pool() string { return "btrfs:" + r.dir + "/pool" }

// takeDown ends what runs, and takes the mounts away.
func (r *room) takeDown() error {
	err := r.stop()
	_ = exec.Command("pkill", "tgtd").Run() // it may have ended
	for range 100 {
		if command("umount "+r.dir+"/pool") == nil {
			break
		}
		time.Sleep(100 * time.Millisecond) // until tgtd has closed its files
	}
	return errors.Join(err, command("umount -l "+r.dir))
}

// start starts ducks, with further flags, and waits until it serves.
func (r *room) start(ctx context.Context, flags ...string) error {
	log, err := os.Create(filepath.Join(r.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	r.serve = exec.Command(filepath.Join(r.Bin, "ducks"),
		append([]string{"serve", "--data-dir", "/run/ducks", "--pool", r.pool(), "--dhcp", card},
			flags...)...)
	r.serve.Stdout, r.serve.Stderr = log, log
	if err := r.serve.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	r.ended = ended
	go func() { ended <- r.serve.Wait() }()
	for {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "ducks serves") {
			return nil
		}
		select {
		case err := <-ended:
			r.serve = nil
			return fmt.Errorf("ducks ended: %w\n%s", err, text)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends ducks. Devices go on.
func (r *room) stop() error {
	if r.serve == nil {
		return nil
	}
	err := r.serve.Process.Signal(syscall.SIGTERM)
	err = errors.Join(err, <-r.ended)
	r.serve = nil
	return err
}

// ducks runs a command.
func (r *room) ducks(args ...string) error {
	cmd := exec.Command(filepath.Join(r.Bin, "ducks"), args...)
	cmd.Env = append(os.Environ(), "DUCKS_TOKEN_FILE=/run/ducks/first-token")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ducks %q: %w\n%s", args, err, out)
	}
	return nil
}

func macs() []net.HardwareAddr {
	return emulate.MACs(net.HardwareAddr{2, 0x64, 0x75, 0x63, 0, 1}, machines)
}

// fill makes a volume, a group and devices.
func (r *room) fill() error {
	err := errors.Join(r.ducks("volume", "create", "linux", "--size", "1G"),
		r.ducks("group", "create", "lab", "--volume", "linux"))
	for i, mac := range macs() {
		err = errors.Join(err, r.ducks("device", "add", mac.String(), "--name", "pc"+strconv.Itoa(i+1),
			"--group", "lab"))
	}
	return err
}

// clones measures those of an image that was written to.
func (r *room) clones(ctx context.Context) error {
	p, err := pool.Open(r.pool(), pool.Reserve{})
	if err != nil {
		return err
	}
	of := pool.Snapshot{Image: "bench", Name: "1"}
	if err := p.Create(ctx, of.Image, diskSize); err != nil {
		return err
	}
	data := make([]byte, 64<<20)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	f, err := os.OpenFile(p.Path(of.Image), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close(), p.Freeze(ctx, of.Image, of)); err != nil {
		return err
	}
	var took []float64
	for i := range 40 {
		name := "clone-" + strconv.Itoa(i)
		began := time.Now()
		if err := p.Clone(ctx, of, name); err != nil {
			return err
		}
		took = append(took, time.Since(began).Seconds()*1000)
		if err := p.Delete(ctx, name); err != nil {
			return err
		}
	}
	mid, spread := measure.Median(took)
	r.t.Add(report.Figure{
		Area:   "ducks",
		What:   "clone of an image",
		Unit:   "ms",
		Value:  mid,
		Budget: 50,
	}.Because("btrfs in memory, 64 MiB written; median of 40, the longest %.1f ms", spread[1]))
	return errors.Join(p.Delete(ctx, of.Image), p.DeleteSnapshot(ctx, of))
}

// boots measures machines that boot at once.
func (r *room) boots(ctx context.Context) error {
	f := emulate.Fleet{Bridge: bridge, MACs: macs(), Bytes: 1 << 20}
	began := time.Now()
	first, last := time.Hour, time.Duration(0)
	for _, o := range f.Run(ctx) {
		if o.Err != nil {
			return fmt.Errorf("%s: %w", o.MAC, o.Err)
		}
		first, last = min(first, o.Times.Whole()), max(last, o.Times.Whole())
	}
	r.t.Add(report.Figure{
		Area:  "ducks",
		What:  strconv.Itoa(machines) + " devices boot at once: the last has its disk after",
		Unit:  "s",
		Value: last.Seconds(),
	}.
		Because("the first after %.1f s; each then writes 1 MiB and reads it back: %.1f s in all",
			first.Seconds(), time.Since(began).Seconds()))
	return nil
}
