// Package figures sends what ducks sees into a store: each second the traffic of each device,
// group, volume and version, and the state of the server, as points; the stages of boots as events.
package figures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"dalmatiner/client"
	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
	"dalmatiner/ducks/internal/traffic"
)

// The buckets of the store.
const (
	Points = "ducks"       // one point a second
	Boots  = "ducks-boots" // events
)

// Options say what is looked at.
type Options struct {
	Address string // of the store's TCP port; empty: nothing is sent
	Server  string // the name of this machine in metrics
	Room    interface {
		Devices() ([]room.Device, error)
		Groups() ([]room.Group, error)
		IQN(device string) string
	}
	Pool interface {
		Space(ctx context.Context) (pool.Space, error)
	}
	Targets interface {
		Traffic(ctx context.Context) ([]target.Traffic, error)
	}
	// Line may be nil: then devices have no classes.
	Line interface {
		Used() ([]traffic.Used, error)
	}
	Now    func() time.Time
	Logger *slog.Logger
}

// stage is one that a machine has reached.
type stage struct {
	at    time.Time
	mac   string
	stage boot.Stage
	since time.Duration
}

// mostWaiting is how many stages wait while the store does not answer. Of more, those that come are
// lost, and counted.
const mostWaiting = 4096

// Figures sends until its context ends.
type Figures struct {
	o      Options
	stages chan stage
	last   map[target.Login]target.Traffic
	used   map[string]traffic.Used // by device

	lost    int          // seconds whose points did not reach the store
	dropped atomic.Int64 // stages that did not
	failing bool         // it was said
}

// New returns one that has sent nothing yet.
func New(o Options) *Figures {
	return &Figures{
		o:      o,
		stages: make(chan stage, mostWaiting),
		last:   make(map[target.Login]target.Traffic),
	}
}

// Stage notes that a machine has reached a stage. It returns at once.
func (f *Figures) Stage(mac string, s boot.Stage, since time.Duration) {
	if f.o.Address == "" {
		return
	}
	select {
	case f.stages <- stage{f.o.Now(), mac, s, since}:
	default:
		f.dropped.Add(1)
	}
}

// every is the time between two points of a series.
const every = time.Second

// Run sends until the context ends. While the store does not answer, points are lost: it says so
// once, and how many when it answers again.
func (f *Figures) Run(ctx context.Context) {
	if f.o.Address == "" {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var s *sink
	defer func() { s.close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		points, err := f.look(ctx)
		if err == nil && s == nil {
			s, err = dial(ctx, f.o.Address)
		}
		if err == nil {
			err = f.send(ctx, s, points)
		}
		if err != nil && ctx.Err() == nil {
			s.close()
			s = nil
		}
		f.say(ctx, err)
	}
}

// say says once that nothing reaches the store, and that it does again.
func (f *Figures) say(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if f.lost++; !f.failing {
			f.o.Logger.Warn("figures do not reach the store, and are lost", "store", f.o.Address, "err", err)
		}
		f.failing = true
	case f.failing:
		f.o.Logger.Info("figures reach the store again", "store", f.o.Address, "seconds_lost", f.lost,
			"stages_lost", f.dropped.Swap(0))
		f.failing, f.lost = false, 0
	}
}

// one is a value of this second.
type one struct {
	key   []string
	value int64
}

// look returns the points of this second.
func (f *Figures) look(ctx context.Context) ([]one, error) {
	devices, err := f.o.Room.Devices()
	if err != nil {
		return nil, err
	}
	groups, err := f.o.Room.Groups()
	if err != nil {
		return nil, err
	}
	traffic, err := f.o.Targets.Traffic(ctx)
	if err != nil {
		return nil, err
	}
	space, err := f.o.Pool.Space(ctx)
	if err != nil {
		return nil, err
	}
	moved, on := f.since(traffic)
	sums := f.sums(devices, groups, moved)
	list := []one{
		{[]string{"servers", f.o.Server, "pool_free_bytes"}, space.Free},
		{[]string{"servers", f.o.Server, "pool_total_bytes"}, space.Total},
		{[]string{"servers", f.o.Server, "devices"}, int64(len(devices))},
		{[]string{"servers", f.o.Server, "devices_on"}, int64(on)},
	}
	for of, t := range sums {
		path := strings.Split(of, "/")
		for name, v := range map[string]int64{"read_bytes": t.ReadBytes, "reads": t.Reads,
			"write_bytes": t.WriteBytes, "writes": t.Writes, "errors": t.Errors} {
			list = append(list, one{slices.Concat(path, []string{name}), v})
		}
	}
	line, err := f.line()
	return append(list, line...), err
}

// sums returns what has moved by device, and of all devices of a group, a volume, a network and the
// server, and of those that have begun with a version of a group. Parts of a name are separated by
// '/', which no name has.
func (f *Figures) sums(devices []room.Device, groups []room.Group,
	moved map[string]target.Traffic) map[string]*target.Traffic {
	of := make(map[string]*room.Group, len(groups))
	for i := range groups {
		of[groups[i].Name] = &groups[i]
	}
	sums := map[string]*target.Traffic{}
	for _, d := range devices {
		t := moved[f.o.Room.IQN(d.Name)]
		names := []string{"devices/" + d.Name, "groups/" + d.Group, "servers/" + f.o.Server}
		if g := of[d.Group]; g != nil { // else it was deleted just now
			names = append(names, "volumes/"+g.Volume, "networks/"+g.Network)
		}
		if d.Version > 0 {
			names = append(names, fmt.Sprintf("snapshots/%s/%d", d.ImageOf, d.Version))
		}
		for _, name := range names {
			s := sums[name]
			if s == nil {
				s = &target.Traffic{}
				sums[name] = s
			}
			s.ReadBytes, s.Reads, s.WriteBytes, s.Writes, s.Errors = s.ReadBytes+t.ReadBytes,
				s.Reads+t.Reads, s.WriteBytes+t.WriteBytes, s.Writes+t.Writes, s.Errors+t.Errors
		}
	}
	return sums
}

// line returns what the classes of devices have let through since the last look, and what waits in
// them.
func (f *Figures) line() (list []one, err error) {
	if f.o.Line == nil {
		return nil, nil
	}
	all, err := f.o.Line.Used()
	if err != nil {
		return nil, err
	}
	used := make(map[string]traffic.Used, len(all))
	for _, u := range all {
		before := f.used[u.Device]
		used[u.Device] = u
		if before.Sent.Bytes > u.Sent.Bytes || before.Received.Bytes > u.Received.Bytes {
			before = traffic.Used{} // another class
		}
		for name, v := range map[string]int64{
			"line_sent_bytes":     u.Sent.Bytes - before.Sent.Bytes,
			"line_received_bytes": u.Received.Bytes - before.Received.Bytes,
			"line_dropped": u.Sent.Dropped +
				u.Received.Dropped - before.Sent.Dropped - before.Received.Dropped,
			"line_waiting_bytes": u.Sent.Waiting + u.Received.Waiting,
		} {
			list = append(list, one{[]string{"devices", u.Device, name}, v})
		}
	}
	f.used = used
	return list, nil
}

// since returns what has moved since the last look, by target, and how many targets have a session.
func (f *Figures) since(now []target.Traffic) (moved map[string]target.Traffic, on int) {
	moved = make(map[string]target.Traffic)
	last := make(map[target.Login]target.Traffic, len(now))
	for _, t := range now {
		before := f.last[t.Login]
		last[t.Login] = t
		if before.ReadBytes > t.ReadBytes || before.WriteBytes > t.WriteBytes {
			before = target.Traffic{} // another session, of another tgtd
		}
		m := moved[t.IQN]
		moved[t.IQN] = target.Traffic{ReadBytes: m.ReadBytes + t.ReadBytes - before.ReadBytes,
			Reads:      m.Reads + t.Reads - before.Reads,
			WriteBytes: m.WriteBytes + t.WriteBytes - before.WriteBytes, Writes: m.Writes +
				t.Writes - before.Writes, Errors: m.Errors + t.Errors - before.Errors}
	}
	f.last = last
	return moved, len(moved)
}

// sink is a store.
type sink struct {
	points *client.Client
	stream *client.Stream
	events *client.Client
}

// perFile is how many points of a series the store keeps in a file of the original's: a week.
const perFile = 7 * 24 * 3600

// dial connects to the store, and makes the bucket of points if it is not there.
func dial(ctx context.Context, address string) (s *sink, err error) {
	s = &sink{}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	if s.events, err = client.Dial(ctx, address); err != nil {
		return s, err
	}
	_, err = s.events.AddBucket(ctx, Points, uint64(every.Milliseconds()), perFile, 0)
	// it is there: the server has ended the connection
	if said := (*client.ServerError)(nil); errors.As(err, &said) {
		_ = s.events.Close() // it is of no more use
		s.events, err = client.Dial(ctx, address)
	}
	if err != nil {
		return s, err
	}
	if s.points, err = client.Dial(ctx, address); err != nil {
		return s, err
	}
	s.stream, err = s.points.OpenAckStream(Points)
	return s, err
}

func (s *sink) close() {
	if s == nil {
		return
	}
	for _, c := range []*client.Client{s.points, s.events} {
		if c != nil {
			_ = c.Close() // what was not acknowledged is counted as lost
		}
	}
}

// send sends the points of a second, and the stages since the last one. It returns when the store
// has both.
func (f *Figures) send(ctx context.Context, s *sink, points []one) error {
	slot := f.o.Now().Unix()
	if err := s.stream.SetDeadline(f.o.Now().Add(client.DialTimeout)); err != nil {
		return err
	}
	for _, p := range points {
		key, err := client.Key(p.key...)
		if err == nil {
			err = s.stream.Point(key, slot, client.Int(p.value))
		}
		if err != nil {
			return err
		}
	}
	if _, err := s.stream.FlushAck(); err != nil {
		return err
	}
	if _, err := s.stream.ReadAck(); err != nil {
		return err
	}
	return f.sendStages(ctx, s)
}

// atOnce is how many stages are sent at once.
const atOnce = 256

func (f *Figures) sendStages(ctx context.Context, s *sink) error {
	waiting := min(len(f.stages), atOnce)
	if waiting == 0 {
		return nil
	}
	devices, err := f.o.Room.Devices()
	if err != nil {
		return err
	}
	names := make(map[string]room.Device, len(devices))
	for _, d := range devices {
		names[d.MAC] = d
	}
	var list []client.Event
	for range waiting {
		of := <-f.stages
		d := names[of.mac]
		text, err := json.Marshal(map[string]any{"name": "boot", "mac": of.mac, "device": d.Name,
			"group": d.Group, "server": f.o.Server,
			"stage": of.stage.String(), "seconds": of.since.Seconds()})
		if err != nil {
			return err
		}
		body, err := client.Term(text)
		if err != nil {
			return err
		}
		list = append(list, client.Event{Time: uint64(of.at.UnixNano()), Term: body})
	}
	if err := s.events.WriteEvents(ctx, Boots, list); err != nil {
		f.dropped.Add(int64(len(list)))
		return err
	}
	return nil
}
