package reader

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/series"
)

// room is a reader of one series without points, which has no column.
type room struct {
	*Reader
	of      Series
	replays int
	steps   []Step
}

func newRoom() *room {
	var names series.InactiveNames
	m := &room{of: Series{Bucket: 1, ID: metric.Series(1, []byte("\x01a"))}}
	m.Reader = New(Options{
		Versions: version.New(func(*version.Segment) {}), Index: &series.Index{},
		Groups: &series.Groups{},
		Damage: &damage.Notes{Logger: slog.New(slog.DiscardHandler)},
		Replay: func(context.Context, metric.SeriesID) error { m.replays++; return nil },
	})
	m.o.Index.Define(m.of.ID, names.Add([]byte("\x01a"), series.None))
	m.OnStep = func(done Step) { m.steps = append(m.steps, done) }
	return m
}

// calls are all that read a series.
func (m *room) calls(t *testing.T) map[string]func() error {
	words := make([]uint64, 2)
	return map[string]func() error{
		"read":  func() error { return m.Read(t.Context(), m.of, 0, words, nil) },
		"pairs": func() error { return m.ReadPairs(t.Context(), m.of, 0, words[:1], words[1:]) },
		"older": func() error { return m.ReadOlder(t.Context(), m.of, 0, words, nil) },
		"extent": func() error {
			_, _, err := m.Extent(t.Context(), m.of, 0, 2)
			return err
		},
		"aggregate": func() error {
			_, err := m.Aggregate(t.Context(), m.of, 0, 2, make([]chunk.Header, 1))
			return err
		},
	}
}

// A deletion that is published between the copy of the head and the pin makes a look begin
// again, once; each read replays first, and gives its version back.
func TestALookBeginsAgainBehindADeletion(t *testing.T) {
	for name := range newRoom().calls(t) {
		m := newRoom()
		note, deleted := m.OnStep, false
		m.OnStep = func(done Step) {
			if note(done); !deleted {
				deleted = true
				m.o.Versions.Publish(func(v *version.Version) { v.Delete(2, nil) })
			}
		}
		if err := m.calls(t)[name](); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := []Step{Copied, Pinned, Copied, Pinned}; !slices.Equal(m.steps, want) ||
			m.replays != 1 {
			t.Errorf("%s: steps %v with %d replays, want %v with 1", name, m.steps, m.replays, want)
		}
		m.o.Versions.Close() // waits for readers that have not left
	}
}

// A series that is deleted while it is looked at is unknown.
func TestASeriesThatGoesMeanwhile(t *testing.T) {
	m := newRoom()
	m.OnStep = func(Step) {
		m.o.Index.Delete(m.of.ID)
		m.o.Versions.Publish(func(v *version.Version) { v.Delete(1, nil) })
	}
	words := []uint64{7, 7}
	if err := m.Read(t.Context(), m.of, 0, words, nil); err != nil || words[0]|words[1] != 0 {
		t.Errorf("%x, %v", words, err)
	}
}

// Nothing is read when the store is closed, too much at once, or given up.
func TestRefusedReads(t *testing.T) {
	m := newRoom()
	if err := m.Read(t.Context(), m.of, 0, make([]uint64, MaxRead+1), nil); err == nil {
		t.Error("more slots than MaxRead were read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Read(ctx, m.of, 0, make([]uint64, 1), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that was given up: %v", err)
	}
	m.o.Versions.Close()
	for name, call := range m.calls(t) {
		if err := call(); !errors.Is(err, version.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}
