package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const epoch = 1_600_000_000 // the time of the tests

// fataler is a test, or a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// replay is what is left of a start.
type replay struct {
	behind bool
	err    error
	groups map[uint32]int // that were asked for
}

func (r *replay) HasPending() bool { return r.behind }

func (r *replay) Group(_ context.Context, group uint32) error {
	r.groups[group]++
	return r.err
}

func (r *replay) All(context.Context) error { return r.err }

// node is an intake with what stands behind it, but for flushes: a bucket with slots of a
// second and a lifetime of an hour.
type node struct {
	*Intake
	log     *wal.Log
	account *account.Account
	replay  *replay
	info    buckets.Info
	close   func()
}

func open(t fataler) *node {
	t.Helper()
	mem, c, acc, stop := vfs.NewMem(), clock.New(func() time.Time {
		return time.Unix(epoch, 0)
	}), account.New(), make(chan struct{})
	log, err := wal.Open(wal.Options{FS: mem, Dir: "wal", Logger: slog.New(slog.DiscardHandler),
		OnFailure: func(error) {}})
	if err == nil {
		_, err = log.Replay(0, func(wal.LSN, []byte) error { return nil })
	}
	if err != nil {
		t.Fatalf("the log: %v", err)
	}
	registry, budget, arenas := buckets.NewRegistry[*columns.Bucket](), memory.New(0, time.Now, nil),
		new(head.Arenas)
	pressure := backpressure.New(backpressure.Options{
		FS: mem, Logger: slog.New(slog.DiscardHandler), FlushBytes: 1 << 30, LateMemory: 1 << 30,
		Memory: budget,
		HeadBytes: func() int64 {
			return 0
		}, NewSeries: func() int64 { return 0 }, Stop: stop, OnFatal: func(error) {},
	})
	led := ledger.New(ledger.Options{
		Account: acc, Clock: c, Exists: func(id uint64) bool { return registry.ID(id) != nil },
		DiskFull: pressure.DiskFull, FreeSpace: pressure.Free,
	})
	led.Use(log)
	table := columns.New(columns.Options{
		Buckets: registry, Log: led, Clock: c, Versions: version.New(func(*version.Segment) {}),
		Names: budget.NewStock(memory.StockOptions{Name: "names"}), MaxFuture: time.Minute,
		NewSeries: func() {},
	})
	b := columns.NewBucket(buckets.Info{ID: 7, Name: "b", Resolution: 1000, PPF: 604800, TTL: 3600},
		60, arenas.ArenaFor(60))
	registry.Add(b)
	sealers := backpressure.NewSealers(pressure)
	sealers.Start()
	n := &node{log: log, account: acc, replay: &replay{groups: make(map[uint32]int)}, info: b.Info(),
		close: func() {
			sealers.Close()
			if err := log.Close(); err != nil {
				t.Fatalf("closing the log: %v", err)
			}
			for _, g := range table.Groups.All() {
				g.Kill()
			}
			arenas.Release()
		}}
	n.Intake = New(Options{
		Buckets: registry, Columns: table, Ledger: led, Pressure: pressure, Sealers: sealers,
		Replay: n.replay, Durable: true,
		EnsureBucket: func(string, buckets.Form) (buckets.Info, error) { return n.info, nil },
		NoteLate:     func(*columns.Bucket, int64) error { return nil },
	})
	return n
}

func (n *node) session(t fataler, how write.Options) *Session {
	t.Helper()
	x, err := n.NewSession(n.info, how)
	if err != nil {
		t.Fatalf("session: %v", err)
	}
	return x
}

func key(n int) []byte { return metric.AppendPart(nil, fmt.Sprintf("m%d", n)) }

// Points in random order share log records, and give back what they were kept in.
func TestPointsInRandomOrderShareRecords(t *testing.T) {
	n := open(t)
	defer n.close()
	x := n.session(t, write.Options{})
	order := rand.New(rand.NewPCG(1, 2)).Perm(4 * head.Width)
	for i := range order {
		x.Point(key(i), epoch, point.FromInt(1))
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	before := n.log.Stats().Records
	for _, i := range order {
		x.Point(key(i), epoch+1, point.FromInt(2))
	}
	if !x.HasPending() {
		t.Error("nothing is pending")
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := n.log.Stats().Records - before; n > 8 {
		t.Errorf("%d points of 4 groups made %d records", len(order), n)
	}
	if free := len(n.sets.free); x.HasPending() || free != 1 || n.Bytes() != setCost {
		t.Errorf("pending %t; %d sets of %d bytes are free, want one", x.HasPending(), free, n.Bytes())
	}
}

// Sessions beyond the number of sets look up point by point, and store what they are sent
// at once.
func TestSessionsWithoutASet(t *testing.T) {
	n := open(t)
	defer n.close()
	var held []*unpredictedPoints
	for l := n.sets.take(); l != nil; l = n.sets.take() {
		held = append(held, l)
	}
	if len(held) != maxSets || n.Bytes() != MaxBytes {
		t.Errorf("%d sets of %d bytes, want %d of %d", len(held), n.Bytes(), maxSets, MaxBytes)
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(100)
	x := n.session(t, write.Options{})
	for _, i := range order {
		x.Point(key(i), epoch, point.FromInt(1))
	}
	if x.unpredicted != nil {
		t.Error("the session has a set")
	}
	n.sets.giveBack(held[0])
	for _, i := range order {
		x.Point(key(i), epoch+1, point.FromInt(1))
	}
	if x.unpredicted != held[0] {
		t.Error("the session has not the set that was given back")
	}
	if err := x.Close(); err != nil || n.account.Total(n.info.ID).Accepted != uint64(2*len(order)) ||
		len(n.sets.free) != 1 {
		t.Errorf("%+v, %d sets are free: %v", n.account.Total(n.info.ID), len(n.sets.free), err)
	}
}

// A point counts the same whichever way it comes: under the first reason for which it is
// refused, or as stored. The reports of all commits come to the account.
func TestEveryWayCountsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := open(t)
		defer n.close()
		var reported, want account.Counts
		x := n.session(t, write.Options{Report: func(_ write.Token, c account.Counts) {
			reported.Add(&c)
		}})
		have := make(map[[2]uint64]bool)
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			series := rapid.IntRange(-1, 5).Draw(t, "series")
			var name []byte
			if series >= 0 {
				name = key(series)
			}
			near := rapid.SampledFrom([]uint64{0, epoch - 3600, epoch, epoch + 60, math.MaxUint64 - 3}).Draw(
				t, "near")
			slot := near + uint64(max(-int64(min(near, 5)), rapid.Int64Range(-5, 3).Draw(t, "off")))
			words := make([]uint64, rapid.IntRange(1, 12).Draw(t, "points"))
			for i := range words {
				words[i] = point.FromInt(1)
				if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
					words[i] = 3 << 56 // of no type
				}
			}
			way := rapid.SampledFrom([]string{"points", "one by one", "append", "commit"}).Draw(t, "way")
			if way != "points" && slot > math.MaxUint64-uint64(len(words)) {
				way = "points" // others have no slot to send
			}
			over := slot > math.MaxUint64-uint64(len(words))
			for i, w := range words {
				at := slot + uint64(i)
				reason := refusal(way, series >= 0, over, at, w)
				place := [2]uint64{uint64(series), at}
				switch {
				case reason < account.NumReasons:
					want.Refused[reason]++
				case have[place]:
					want.Duplicate++
				default:
					want.Accepted++
					have[place] = true
				}
			}
			send(x, way, name, slot, words)
		}
		if err := x.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		got := n.account.Total(n.info.ID)
		got.Accepted, got.Late = got.Accepted+got.Late, 0
		reported.Accepted, reported.Late = reported.Accepted+reported.Late, 0
		if got != want || reported != want {
			t.Fatalf("the account has %+v, reports said %+v, want %+v", got, reported, want)
		}
		if total := x.Totals(); total.Received != want.ReceivedPoints() ||
			total.Refused != want.RefusedTotal() {
			t.Fatalf("the session says %+v, want %+v", total, want)
		}
	})
}

// refusal is the first reason for which a point is refused, NumReasons where none is. Words
// that come one by one are looked at before the name.
func refusal(way string, named, over bool, slot, word uint64) account.Reason {
	bad := word != point.FromInt(1)
	switch {
	case bad && way != "points":
		return account.BadType
	case !named:
		return account.EmptyName
	case over:
		return account.Future
	case bad:
		return account.BadType
	case slot > epoch+60:
		return account.Future
	case slot < epoch-3600:
		return account.Expired
	}
	return account.NumReasons
}

func send(x *Session, way string, name []byte, slot uint64, words []uint64) {
	var data []byte
	var points []write.Point
	for i, w := range words {
		data = point.Append(data, w)
		points = append(points, write.Point{Key: name, Slot: slot + uint64(i), Word: w})
	}
	switch way {
	case "points":
		x.Points(name, slot, data)
	case "append":
		x.Append(points)
	default:
		for _, p := range points {
			x.Point(p.Key, p.Slot, p.Word)
		}
		if way == "commit" {
			_, _ = x.Commit() // Close says what went wrong
		}
	}
}

// While a start is behind with its log, a write first has the points of its group
// brought into memory. A new series waits for all, and a sender that cannot wait is refused.
func TestWritesWaitForTheReplay(t *testing.T) {
	n := open(t)
	defer n.close()
	x := n.session(t, write.Options{})
	x.Point(key(1), epoch, point.FromInt(1))
	commit(t, x)
	n.replay.behind = true
	clear(n.replay.groups)
	y := n.session(t, write.Options{NeverWait: true})
	y.Point(key(1), epoch+1, point.FromInt(1))
	y.Point(key(2), epoch+1, point.FromInt(1))
	commit(t, y)
	if c := n.account.Total(n.info.ID); len(n.replay.groups) != 1 || c.Accepted != 2 ||
		c.Refused[account.Overload] != 1 {
		t.Errorf("%d groups were replayed, the account has %+v", len(n.replay.groups), c)
	}
	n.replay.err = errors.New("the log cannot be read")
	for name, send := range map[string]func(x *Session){
		"a known series": func(x *Session) { x.Point(key(1), epoch+2, point.FromInt(1)) },
		"a new series":   func(x *Session) { x.Point(key(3), epoch+2, point.FromInt(1)) },
	} {
		z := n.session(t, write.Options{})
		send(z)
		if _, err := z.Commit(); !errors.Is(err, n.replay.err) {
			t.Errorf("a commit behind a replay that failed, of %s: %v", name, err)
		}
	}
}

func commit(t *testing.T, x *Session) {
	t.Helper()
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
}
