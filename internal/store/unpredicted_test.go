package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/intake"
)

const (
	unpredictedSlots  = 30   // of the test: behind them lies the future
	unpredictedPoints = 2048 // more than these are not looked up together
)

// unpredictedModel sends points of few series in any order, and knows what must be there.
type unpredictedModel struct {
	x       *intake.Session
	want    map[[2]int64]uint64 // by series and slot
	sent    uint64
	refused uint64
	word    int64
}

func (m *unpredictedModel) put(series, slot int64) uint64 {
	m.word++
	m.sent++
	if slot >= unpredictedSlots {
		m.refused++
	} else {
		m.want[[2]int64{series, slot}] = point.FromInt(m.word)
	}
	return point.FromInt(m.word)
}

func (m *unpredictedModel) point(series, slot int64) {
	m.x.Point(key(int(series)), uint64(epoch+slot), m.put(series, slot))
}

func (m *unpredictedModel) step(t *rapid.T) {
	series := rapid.Int64Range(0, 600).Draw(t, "series")
	slot := rapid.Int64Range(0, unpredictedSlots).Draw(t, "slot")
	switch rapid.SampledFrom([]string{"row", "row", "mixed", "mixed", "one", "points", "commit"}).Draw(
		t, "step") {
	case "row":
		for i := range rapid.Int64Range(1, 300).Draw(t, "length") {
			m.point(series+i, slot)
		}
	case "mixed":
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		spread := rapid.Int64Range(1, unpredictedSlots+1).Draw(t, "slots")
		for range rapid.IntRange(1, 2*unpredictedPoints).Draw(t, "points") {
			m.point(r.Int64N(900), (slot+r.Int64N(spread))%(unpredictedSlots+1))
		}
	case "one":
		m.point(series, slot)
	case "points":
		var data []byte
		for i := range rapid.Int64Range(1, 5).Draw(t, "length") {
			data = point.Append(data, m.put(series, slot+i))
		}
		m.x.Points(key(int(series)), uint64(epoch+slot), data)
	case "commit":
		if _, err := m.x.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *unpredictedModel) check(t *rapid.T, s *Store) {
	t.Helper()
	total := s.Account().Total(mustBucket(t, s, "b"))
	if total.ReceivedPoints() != m.sent || total.Refused[account.Future] != m.refused {
		t.Fatalf("the account has %d points, %d of the future; %d were sent, %d of the future",
			total.ReceivedPoints(), total.Refused[account.Future], m.sent, m.refused)
	}
	for series := range 900 {
		for slot, w := range readAll(t, s, "b", series, epoch, unpredictedSlots) {
			if want := m.want[[2]int64{int64(series), int64(slot)}]; w != want {
				t.Fatalf("series %d slot %d holds %x, want %x", series, slot, w, want)
			}
		}
	}
}

// takeUnpredictedMemory makes sessions that have all memory for unpredicted points: the
// third of three points of new series is one.
func takeUnpredictedMemory(t *rapid.T, s *Store) {
	for n := 0; s.intake.Bytes() < intake.MaxBytes; n++ {
		x := mustSession(t, s, "others")
		for i := range 3 {
			x.Point(key(3*n+i), epoch, point.FromInt(1))
		}
		if n > 1000 {
			t.Fatalf("%d sessions have %d bytes for unpredicted points", n, s.intake.Bytes())
		}
	}
}

// In whatever order names and slots come, the last point sent for a slot of a series is
// the one that stays, and every point is in the account. The same holds after a start
// that reads them from the log.
func TestPointsInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mem, clock := vfs.NewMem(), newTestClock()
		o := testOptions(mem, clock)
		o.MaxFuture = (unpredictedSlots - 1) * time.Second
		s := mustOpen(t, o)
		defer func() { s.Crash() }()
		if rapid.Bool().Draw(t, "no memory for unpredicted points") {
			takeUnpredictedMemory(t, s)
		}
		m := &unpredictedModel{x: mustSession(t, s, "b"), want: map[[2]int64]uint64{}}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			m.step(t)
		}
		if err := m.x.Close(); err != nil {
			t.Fatal(err)
		}
		m.check(t, s)
		if err := s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
		s.Crash()
		s = mustOpen(t, o)
		m.check(t, s)
	})
}

// Rows in the order of time are on time, whatever the order of the names in them,
// whichever are left out, and wherever the sender's bytes end.
func TestRowsInTimeAreNotLate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
		defer func() { s.Crash() }()
		x := mustSession(t, s, "b")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		series, rows := rapid.IntRange(1, 12).Draw(t, "series"), 2000
		shuffled := rapid.IntRange(1, 200).Draw(t, "a row is shuffled in")
		omitted := rapid.IntRange(2, 200).Draw(t, "a point is left out in")
		commit := rapid.IntRange(1, 3000).Draw(t, "a commit in")
		order := make([]int, series)
		for i := range order {
			order[i] = i
		}
		sent := uint64(0)
		for row := range rows {
			if r.IntN(shuffled) == 0 {
				r.Shuffle(series, func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
			for _, i := range order {
				if r.IntN(omitted) > 0 {
					x.Point(key(i), uint64(epoch-rows+row), point.FromInt(int64(row)))
					sent++
				}
				if r.IntN(commit) == 0 {
					if _, err := x.Commit(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if total := s.Account().Total(mustBucket(t, s, "b")); total.Accepted != sent {
			t.Fatalf("%d points were sent: %+v", sent, total)
		}
	})
}
