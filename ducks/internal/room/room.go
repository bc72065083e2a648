// Package room is the machines without disks of one storage server, and the images that they boot.
// A volume is a disk with its versions; a group is what a set of devices boots, with versions of
// its own; a device has an image that is cloned from a version of its group. DESIGN.md beside it
// says what happens to each at which moment.
package room

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/target"
)

// Errors that callers look for.
var (
	ErrExists  = errors.New("it exists already")
	ErrBusy    = errors.New("it is in use")
	ErrRefused = errors.New("it cannot be done")
	ErrName    = errors.New(
		"a name has 1 to 40 of a-z, 0-9 and '-', and begins with a letter or digit")
)

// Version is a disk as it was.
type Version struct {
	Number   int           `json:"number"`
	Snapshot pool.Snapshot `json:"snapshot"`
	From     string        `json:"from"` // what it was taken from
	Author   string        `json:"author"`
	Note     string        `json:"note"`
	At       time.Time     `json:"at"`
	// bytes that differ from the version before, about
	Changed int64    `json:"changed_bytes"`
	Tested  []string `json:"tested,omitempty"` // devices that were up with it
}

// Volume is a disk of a size, with its versions: the first is empty.
type Volume struct {
	Name     string    `json:"name"`
	Network  string    `json:"network"`
	Size     int64     `json:"size"`
	Versions []Version `json:"versions"`
}

// Group is what its devices boot.
type Group struct {
	Name     string    `json:"name"`
	Network  string    `json:"network"` // that of its volume
	Volume   string    `json:"volume"`
	Versions []Version `json:"versions"`
	Use      int       `json:"use"` // the number of the version that devices get; 0: the newest

	Menu     string   `json:"menu,omitempty"` // that its devices see; empty: none
	Timeouts Timeouts `json:"timeouts,omitzero"`

	Canary    *Canary    `json:"canary,omitempty"`    // a version that some devices get
	Withdrawn *Withdrawn `json:"withdrawn,omitempty"` // the last one that was taken back by itself
}

// Timeouts are how long devices wait for a disk that does not answer, in seconds; 0: as long as
// their image says.
type Timeouts struct {
	// for its session to come back, before writes fail
	Recovery int `json:"recovery_seconds,omitempty"`
	Command  int `json:"command_seconds,omitempty"` // for an answer, before the session is made anew
}

// Mode says what becomes of what a device writes.
type Mode string

// The modes. Until is Persistent before a date and Volatile from then on.
const (
	Volatile   Mode = "volatile"
	Persistent Mode = "persistent"
	Until      Mode = "until"
)

// Device is a machine.
type Device struct {
	Name   string
	MAC    string // as aa:bb:cc:dd:ee:ff
	Number uint64 // for good
	Group  string
	Mode   Mode
	Until  time.Time
	Pin    int // the number of the version that it gets, whatever its group does; 0: that of its group
	Secret string
	Limit  int64 // of its part of the line, in bits a second each way; 0: none
	Space  int64 // bytes of the pool that its image may take of its own; 0: no limit

	Afresh bool // it begins anew when it boots next, whatever its mode

	Image   string // that it has written to; empty before it boots first
	ImageOf string // the group that this was cloned from
	Version int    // and the version
}

// Targets exports disks: a *target.Targets.
type Targets interface {
	Put(ctx context.Context, t target.Target) error
	Remove(ctx context.Context, iqn string, closing bool) error
}

// Options are what a room stands on.
type Options struct {
	State   *state.File // opened with Migrations
	Pool    pool.Pool
	Targets Targets
	Base    string // of iSCSI names, as iqn.2026-11.org.example
	Now     func() time.Time
	Logger  *slog.Logger
}

// Room has the devices. Its methods may be called concurrently; those that change something come
// one after the other.
type Room struct {
	o  Options
	mu sync.Mutex // held while something changes
}

// New returns the room of a state.
func New(o Options) *Room { return &Room{o: o} }

const (
	volumes state.Table = "volume"
	groups  state.Table = "group"
	devices state.Table = "device"
	unknown state.Table = "unknown"
)

// Migrations are the layouts of the state.
func Migrations() []state.Migration {
	return []state.Migration{
		func(tx *state.Tx) error {
			err := errors.Join(tx.MakeTable(volumes), tx.MakeTable(groups), tx.MakeTable(devices),
				tx.MakeTable(disks), tx.MakeTable(menus), tx.MakeTable(unknown),
				tx.MakeTable(clients), tx.MakeTable(networks))
			if err != nil {
				return err
			}
			return errors.Join(tx.Put(clients, Default, Client{Name: Default}),
				tx.Put(networks, Default, Network{Name: Default, Client: Default}))
		},
	}
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// fresh refuses names of another form, and those that a table has.
func (r *Room) fresh(t state.Table, name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%s %q: %w", t, name, ErrName)
	}
	return r.o.State.View(func(tx *state.Tx) error {
		if tx.Has(t, name) {
			return fmt.Errorf("%s %s: %w", t, name, ErrExists)
		}
		return nil
	})
}

func (r *Room) get(t state.Table, name string, v any) error {
	return r.o.State.View(func(tx *state.Tx) error { return tx.Get(t, name, v) })
}

func (r *Room) put(t state.Table, name string, v any) error {
	return r.o.State.Update(func(tx *state.Tx) error { return tx.Put(t, name, v) })
}

// list returns all of a table, by name.
func list[V any](r *Room, t state.Table) (all []V, err error) {
	all = []V{}
	err = r.o.State.View(func(tx *state.Tx) error {
		return state.Each(tx, t, func(_ string, v V) error {
			all = append(all, v)
			return nil
		})
	})
	return all, err
}

// Volumes, Groups and Devices return all, by name.
func (r *Room) Volumes() ([]Volume, error) { return list[Volume](r, volumes) }
func (r *Room) Groups() ([]Group, error)   { return list[Group](r, groups) }
func (r *Room) Devices() ([]Device, error) { return list[Device](r, devices) }

// Device returns one of them.
func (r *Room) Device(name string) (d Device, err error) { return d, r.get(devices, name, &d) }

// Group returns one of them.
func (r *Room) Group(name string) (g Group, err error) { return g, r.get(groups, name, &g) }

// version returns one by its number, 0 is the newest.
func version(list []Version, number int) (Version, error) {
	if number == 0 {
		return list[len(list)-1], nil
	}
	for _, v := range list {
		if v.Number == number {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("version %d: %w: there are %d to %d", number, state.ErrUnknown,
		list[0].Number, list[len(list)-1].Number)
}
