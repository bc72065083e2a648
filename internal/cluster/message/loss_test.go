package message

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/metric"
)

// line is an encoder and a decoder with a connection between them that loses frames, and the
// restarts of both sides.
type line struct {
	*rapid.T
	here, there *world
	*Encoder
	*Decoder
	boot     uint64
	most     int
	sent     []flight // on their way
	requests [][]byte
	decoded  int
}

type flight struct {
	frame []byte
	m     replication.Message
}

func (l *line) restartSender() {
	if l.boot == 0 || rapid.Bool().Draw(l.T, "a start, not only another encoder") {
		l.boot++
		l.here.Registry = newWorld(30).Registry // it counts from 1 again
	}
	l.Encoder = l.here.encoder(l.boot)
	l.most = rapid.IntRange(4, 40).Draw(l.T, "names at most")
	l.Encoder.most = l.most
}

// send encodes a message. It may not be given to the connection, or be lost with the end of one
// that the sender has not noticed.
func (l *line) send(t *rapid.T) {
	g := generator{t, l.here}
	m := g.message(rapid.SampledFrom([]int{kindWrite, kindFill, kindWritten}).Draw(t, "kind"))
	frame, err := l.Append(nil, m)
	if err != nil {
		if !errors.Is(err, ErrTooLong) {
			t.Fatal(err)
		}
		return
	}
	if got := len(l.table.ids); got > l.most {
		t.Fatalf("%d names are in the table, the limit is %d", got, l.most)
	}
	switch rapid.IntRange(0, 5).Draw(t, "given") {
	case 0:
		l.ConfirmSent(false)
	case 1: // nobody says what became of it: it was not sent
	default:
		l.ConfirmSent(true)
		l.sent = append(l.sent, flight{frame, m})
	}
}

// arrive takes the next frame: it is what was sent, or refused for what it lacks.
func (l *line) arrive(t *rapid.T) {
	if len(l.sent) == 0 {
		t.Skip()
	}
	of := l.sent[0]
	if rapid.IntRange(0, 5).Draw(t, "twice") > 0 {
		l.sent = l.sent[1:]
	}
	m, news, err := l.Decode(of.frame)
	switch {
	case errors.Is(err, ErrRenew):
		l.requests = append(l.requests, l.AppendRequest(nil))
		return
	case err != nil:
		t.Fatal(err)
	}
	l.decoded++
	for _, b := range news {
		l.there.buckets[b.ID()] = b
	}
	requireEqual(t, m, of.m)
	l.there.mustKnow(t, l.here, m)
}

// letGo lets so much time pass that the receiver has no names any more.
func (l *line) letGo(*rapid.T) {
	l.there.now += int64(2 * names.PeriodLength)
	l.there.Registry = registryAt(&l.there.now)
	l.Decoder.names = l.there.Registry
}

// request takes a request of the receiver to the sender.
func (l *line) request(t *rapid.T) {
	if len(l.requests) == 0 {
		t.Skip()
	}
	if err := l.HandleRequest(l.requests[0]); err != nil {
		t.Fatal(err)
	}
	l.requests = l.requests[1:]
}

// Whatever is lost: no row comes under another series, and what comes has its names.
func TestLossesNeverMixSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &line{T: t, here: newWorld(30), there: emptyWorld()}
		l.restartSender()
		l.Decoder = NewDecoder(l.there.Registry)
		t.Repeat(map[string]func(*rapid.T){
			"send": l.send, "send more": l.send, "arrive": l.arrive, "arrive more": l.arrive,
			"request": l.request,
			"lose": func(t *rapid.T) { // the end of a connection that the sender does not notice
				l.sent = l.sent[:rapid.IntRange(0, len(l.sent)).Draw(t, "kept")]
			},
			"end": func(t *rapid.T) { l.sent = l.sent[:0]; l.Renew() },
			"restart sender": func(t *rapid.T) {
				l.sent = l.sent[:rapid.IntRange(0, len(l.sent)).Draw(t, "kept")]
				l.restartSender()
			},
			"restart receiver": func(*rapid.T) { l.Decoder = NewDecoder(l.there.Registry) },
			"let go":           l.letGo,
			"wait":             func(t *rapid.T) { l.there.now += rapid.Int64Range(0, 1<<36).Draw(t, "ns") },
		})
		l.heals(t)
	})
}

// heals fails unless messages come again once nothing is lost any more, after one request at most.
func (l *line) heals(t *rapid.T) {
	l.sent, l.requests = nil, nil
	for range 3 {
		m := fillOf(l.here.series[0], l.here.series[1])
		frame, err := l.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		l.ConfirmSent(true)
		got, _, err := l.Decode(frame)
		if err == nil {
			requireEqual(t, got, m)
			return
		}
		if err := l.HandleRequest(l.AppendRequest(nil)); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("a request for names does not help")
}

// Requests of the frames that were on their way when names were asked for ask for nothing more.
func TestLateRequestsAreForOlderNames(t *testing.T) {
	here := newWorld(10)
	e, d := here.encoder(1), NewDecoder(emptyWorld().Registry)
	m := fillOf(here.series[0])
	var requests [][]byte
	for i := range 5 {
		frame, err := e.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		e.ConfirmSent(true)
		if i == 0 {
			continue // it is lost
		}
		if _, _, err := d.Decode(frame); !errors.Is(err, ErrRenew) {
			t.Fatalf("frame %d: %v", i, err)
		}
		requests = append(requests, d.AppendRequest(nil))
	}
	before := e.epoch
	for _, r := range requests {
		if err := e.HandleRequest(r); err != nil {
			t.Fatal(err)
		}
	}
	if e.epoch.number != before.number+1 {
		t.Errorf("%d requests renewed the names %d times", len(requests), e.epoch.number-before.number)
	}
	if err := e.HandleRequest(requests[0][1:]); !errors.Is(err, ErrMalformed) {
		t.Errorf("a short request: %v", err)
	}
}

// A name that the receiver let go while nobody used it is asked for again, not taken for known.
func TestNamesThatTheReceiverLetGo(t *testing.T) {
	here, there := newWorld(10), emptyWorld()
	e, d := here.encoder(1), NewDecoder(there.Registry)
	m := fillOf(here.series[0])
	next := func() error {
		frame, err := e.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		e.ConfirmSent(true)
		_, _, err = d.Decode(frame)
		return err
	}
	if err := next(); err != nil {
		t.Fatal(err)
	}
	d.names = emptyWorld().Registry
	if err := next(); err != nil {
		t.Fatalf("within a period: %v", err)
	}
	there.now = 1 << 40
	d.names = registryAt(&there.now)
	if err := next(); !errors.Is(err, ErrRenew) {
		t.Fatalf("a name is taken for known: %v", err)
	}
}

// What a peer cannot be told names what is missing.
func TestUnknownNames(t *testing.T) {
	here := newWorld(3)
	e := here.encoder(1)
	unknown := metric.SeriesID{1, 2, 3}
	wrong := metric.SeriesID{4}
	here.Note(wrong, bucketsOf(1)[0].ID(), []byte("\x01a"))
	inNone := metric.Series(99, []byte("\x01a"))
	here.Note(inNone, 99, []byte("\x01a"))
	for _, id := range []metric.SeriesID{unknown, wrong, inNone} {
		m := fillOf(here.series[0], id)
		if got, err := e.Append([]byte("x"), m); !errors.Is(err, ErrName) || string(got) != "x" {
			t.Errorf("series %x: %q, %v", id[:], got, err)
		}
		if n := e.now(); n != (sizes{}) {
			t.Errorf("%+v are in the tables after an error", n)
		}
		if _, err := NewChanges(here.Registry).Append(nil,
			replication.Change{Rows: []replication.Row{{Series: here.series[0]}, {Series: id}}}); !errors.Is(
			err, ErrName) && id != inNone {
			t.Errorf("a change with series %x: %v", id[:], err)
		}
	}
	if _, err := e.Append(nil, replication.WriteReply{Key: replication.Key{Attempt: -1}}); err == nil {
		t.Error("a negative number is encoded")
	}
}

func TestFramesBeyondTheLimit(t *testing.T) {
	here := newWorld(100)
	e := NewEncoder(here.Registry, here.bucketOf, 1, 1000)
	var m replication.Deliver
	for i := range 100 {
		m.Change.Rows = append(m.Change.Rows, replication.Row{Series: here.series[i]})
		frame, err := e.Append(nil, m)
		if err != nil && !errors.Is(err, ErrTooLong) || len(frame) > 1000 ||
			(err == nil) != (frame != nil) {
			t.Fatalf("%d rows: %d bytes, %v", i+1, len(frame), err)
		}
		if err != nil && i < 20 {
			t.Fatal(err)
		}
	}
	e.limit, e.most = 1<<20, 99
	if _, err := e.Append(nil, m); !errors.Is(err, ErrTooLong) {
		t.Errorf("100 series with a table of 99: %v", err)
	}
}

// A table that is full begins anew, also with many names in one message.
func TestFullTables(t *testing.T) {
	here, there := newWorld(300), emptyWorld()
	e, d := here.encoder(1), NewDecoder(there.Registry)
	e.most = 128
	for i := range 10 {
		var m replication.Deliver
		for n := range 100 {
			m.Change.Rows = append(m.Change.Rows, replication.Row{Series: here.series[(i*70+n)%300],
				Slot: uint64(i)})
		}
		frame, err := e.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		e.ConfirmSent(true)
		got, _, err := d.Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, got, m)
	}
	if e.epoch.number < 5 || len(e.table.ids) > e.most {
		t.Error(fmt.Sprint("epoch ", e.epoch.number, " with ", len(e.table.ids), " names"))
	}
}

// Numbers of another start of a sender, or of another encoder of this one, mean nothing for those
// of this encoder, though they may be the same.
func TestNumbersDoNotOutliveAnEncoder(t *testing.T) {
	for _, restart := range []bool{false, true} {
		here := newWorld(10)
		d := NewDecoder(emptyWorld().Registry)
		for n := range 3 {
			e := here.encoder(1)
			if restart {
				here.Registry = newWorld(10).Registry
				e = here.encoder(uint64(n))
			}
			for i := range 2 {
				frame, err := e.Append(nil, fillOf(here.series[n]))
				if err != nil {
					t.Fatal(err)
				}
				e.ConfirmSent(true)
				if n > 0 && i == 0 {
					continue // the frame with the name is lost
				}
				if _, _, err := d.Decode(frame); (n == 0) != (err == nil) || err != nil &&
					!errors.Is(err, ErrRenew) {
					t.Errorf("encoder %d, restart %v: %v", n, restart, err)
				}
			}
		}
	}
}
