package figures

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/traffic"
)

// fake is a room of two devices in a group, with traffic, and a line.
type fake struct {
	traffic []target.Traffic
	used    []traffic.Used
}

func (f *fake) Devices() ([]room.Device, error) {
	return []room.Device{{Name: "pc1", MAC: "m1", Group: "lab", ImageOf: "lab", Version: 2},
		{Name: "pc2", MAC: "m2", Group: "lab"}}, nil
}
func (f *fake) Groups() ([]room.Group, error) {
	return []room.Group{{Name: "lab", Volume: "linux", Network: "north"}}, nil
}
func (f *fake) IQN(device string) string { return "iqn:" + device }
func (f *fake) Space(context.Context) (pool.Space, error) {
	return pool.Space{Total: 100, Free: 40}, nil
}
func (f *fake) Used() ([]traffic.Used, error)                     { return f.used, nil }
func (f *fake) Traffic(context.Context) ([]target.Traffic, error) { return f.traffic, nil }

// Each second has what moved in it: of each device, and summed up. Sessions that begin anew begin
// at 0.
func TestWhatMoves(t *testing.T) {
	room := &fake{}
	f := New(Options{Address: "none", Server: "s1", Room: room, Pool: room, Targets: room, Line: room,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	looks := func() (shown []string) {
		t.Helper()
		list, err := f.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if o.value != 0 {
				shown = append(shown, fmt.Sprint(strings.Join(o.key, "."), " ", o.value))
			}
		}
		slices.Sort(shown)
		return shown
	}
	always := []string{"servers.s1.devices 2", "servers.s1.pool_free_bytes 40",
		"servers.s1.pool_total_bytes 100"}
	check := func(what string, want ...string) {
		t.Helper()
		want = append(want, always...)
		slices.Sort(want)
		if got := looks(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("nobody is on")
	room.traffic = []target.Traffic{
		{Login: target.Login{IQN: "iqn:pc1", Session: 1}, ReadBytes: 10, Reads: 2},
		{Login: target.Login{IQN: "iqn:pc2", Session: 2}, ReadBytes: 5, Reads: 1}}
	check("two begin", "devices.pc1.read_bytes 10", "devices.pc1.reads 2", "devices.pc2.read_bytes 5",
		"devices.pc2.reads 1", "groups.lab.read_bytes 15", "groups.lab.reads 3",
		"servers.s1.devices_on 2", "servers.s1.read_bytes 15", "servers.s1.reads 3",
		"volumes.linux.read_bytes 15", "volumes.linux.reads 3", "networks.north.read_bytes 15",
		"networks.north.reads 3", "snapshots.lab.2.read_bytes 10", "snapshots.lab.2.reads 2")
	check("nothing moves", "servers.s1.devices_on 2")
	room.used = []traffic.Used{
		{Device: "pc1", Sent: traffic.Flow{Bytes: 9, Dropped: 1},
			Received: traffic.Flow{Bytes: 8, Waiting: 7}}}
	check("a class begins", "servers.s1.devices_on 2", "devices.pc1.line_sent_bytes 9",
		"devices.pc1.line_received_bytes 8", "devices.pc1.line_dropped 1",
		"devices.pc1.line_waiting_bytes 7")
	room.used = []traffic.Used{
		{Device: "pc1", Sent: traffic.Flow{Bytes: 10, Dropped: 1}, Received: traffic.Flow{Bytes: 8}}}
	check("a class goes on", "servers.s1.devices_on 2", "devices.pc1.line_sent_bytes 1")
	room.used = nil
	room.traffic = []target.Traffic{
		{Login: target.Login{IQN: "iqn:pc1", Session: 3}, ReadBytes: 4, Reads: 2}}
	check("one has booted again", "devices.pc1.read_bytes 4", "devices.pc1.reads 2",
		"groups.lab.read_bytes 4", "groups.lab.reads 2",
		"servers.s1.devices_on 1", "servers.s1.read_bytes 4", "servers.s1.reads 2",
		"volumes.linux.read_bytes 4", "volumes.linux.reads 2", "networks.north.read_bytes 4",
		"networks.north.reads 2", "snapshots.lab.2.read_bytes 4", "snapshots.lab.2.reads 2")
}

// Stages wait for nobody: where the store does not answer they are dropped.
func TestStagesDoNotWait(t *testing.T) {
	f := New(Options{Address: "none", Now: time.Now})
	for range mostWaiting + 10 {
		f.Stage("m1", boot.Scripted, time.Second)
	}
	if n := len(f.stages); n != mostWaiting || f.dropped.Load() != 10 {
		t.Errorf("%d wait, %d are counted as lost", n, f.dropped.Load())
	}
}
