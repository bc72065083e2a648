package remotewrite

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/ingest/protobuf"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/protomsg"
)

// staleNaN is the double that Prometheus sends for a stale marker.
const staleNaN = 0x7ff0000000000002

// The messages of the tests have the numbers of prometheus/types.proto and
// io/prometheus/write/v2/types.proto.

type message = protomsg.Message

func sample(v float64, ms int64) message {
	return message(nil).Float(1, v).Varint(2, uint64(ms))
}

// series1 is a series of V1 with labels by name and value.
func series1(texts ...string) (m message) {
	for i := 0; i < len(texts); i += 2 {
		m = m.Bytes(1, message(nil).Text(1, texts[i]).Text(2, texts[i+1]))
	}
	return m
}

// series2 is a series of V2 with the numbers of its labels.
func series2(refs ...uint64) message {
	return message(nil).Varints(1, refs...)
}

func symbols(list ...string) (m message) {
	for _, s := range list {
		m = m.Text(4, s)
	}
	return m
}

type fixture struct {
	*testing.T
	store  *store.Store
	server *Server
	now    int64 // ms
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	st, server := newServer(t, storetest.Options())
	now := time.Now().UnixMilli()
	return &fixture{t, st, server, now - now%1000}
}

// newServer returns a server and the store behind it.
func newServer(tb testing.TB, o store.Options) (*store.Store, *Server) {
	st, ws := ackedtest.Open(tb, Listener, o)
	return st, New(ws)
}

func (f *fixture) write(v Version, m message) (Written, error) {
	f.Helper()
	return f.server.Write(f.Context(), "prometheus", netip.AddrPort{}, v, m)
}

func (f *fixture) mustWrite(v Version, m message) Written {
	f.Helper()
	w, err := f.write(v, m)
	if err != nil {
		f.Fatal(err)
	}
	return w
}

// series returns all that is stored: name, labels, and the values with their times in ms from
// the fixture's now.
func (f *fixture) series() (list []string) {
	f.Helper()
	b, err := f.store.BucketByName("prometheus")
	if err != nil {
		f.Fatal(err)
	}
	const slots = 200
	from := f.now/1000 - 100
	values, times := make([]uint64, slots), make([]uint64, slots)
	err = f.store.Metrics(f.Context(), b, nil, func(key []byte) bool {
		text := metric.Text(key)
		if err := f.store.ReadWithStale(f.Context(), b, key, from, values, times); err != nil {
			f.Error(err)
		}
		for i, w := range values {
			if w != point.Unset {
				at := (from + int64(i)) * 1000
				if w != point.Stale {
					at = int64(times[i]) / 1e6
				}
				text += fmt.Sprintf(" %s@%d", value(w), at-f.now)
			}
		}
		list = append(list, text)
		return true
	})
	if err != nil {
		f.Error(err)
	}
	slices.Sort(list)
	return list
}

func value(w uint64) string {
	if w == point.Stale {
		return "stale"
	}
	return fmt.Sprint(point.Float(w))
}

func (f *fixture) same(want ...string) {
	f.Helper()
	if got := f.series(); !slices.Equal(got, want) {
		f.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (f *fixture) counted(reason string) uint64 {
	return f.store.Account().Requests()["remote_write_"+reason]
}

func TestSamplesOfBothVersions(t *testing.T) {
	for v, make := range map[Version]func(f *fixture) message{
		V1: func(f *fixture) message {
			up := series1("__name__", "up", "instance", "a:1", "job", "node")
			cpu := series1("__name__", "cpu", "job", "node", "empty", "")
			return message(nil).
				Bytes(1, up.Bytes(2, sample(1, f.now)).Bytes(2, sample(0, f.now+1500))).
				Bytes(1, cpu.Bytes(2, sample(0.25, f.now+7)).
					Bytes(2, sample(math.Float64frombits(staleNaN), f.now+2000)).
					Bytes(2, sample(math.Inf(-1), f.now+3000)).
					Bytes(2, sample(math.Copysign(0, -1), f.now+4001)).
					Bytes(2, sample(math.NaN(), f.now+5000)))
		},
		V2: func(f *fixture) message {
			return symbols("", "__name__", "up", "instance", "a:1", "job", "node", "cpu").
				Bytes(5, series2(1, 2, 3, 4, 5, 6).
					Bytes(2, sample(1, f.now)).Bytes(2, sample(0, f.now+1500))).
				Bytes(5, series2(1, 7, 5, 6).
					Bytes(2, sample(0.25, f.now+7).Varint(3, uint64(f.now))).
					Bytes(2, sample(math.Float64frombits(staleNaN), f.now+2000)).
					Bytes(2, sample(math.Inf(-1), f.now+3000)).
					Bytes(2, sample(math.Copysign(0, -1), f.now+4001)).
					Bytes(2, sample(math.NaN(), f.now+5000)).
					Varint(6, uint64(f.now)))
		},
	} {
		t.Run(fmt.Sprint("version ", v), func(t *testing.T) {
			f := newFixture(t)
			w := f.mustWrite(v, make(f))
			if w.Samples != 7 || w.Counts.Accepted != 7 || w.Counts.Unset != 0 {
				t.Errorf("%+v", w)
			}
			f.same("'cpu'.'job=node' 0.25@7 stale@2000 -Inf@3000 -0@4001 NaN@5000",
				"'up'.'instance=a:1'.'job=node' 1@0 0@1500")
			b, err := f.store.BucketByName("prometheus")
			if err != nil || b.Resolution != 1000 || !b.HPTS {
				t.Errorf("%+v, %v", b, err)
			}
			if got := f.tagged("job", "node"); got != 2 {
				t.Errorf("%d series have the tag", got)
			}
		})
	}
}

// tagged returns how many series have a tag.
func (f *fixture) tagged(name, value string) (n int) {
	f.Helper()
	err := f.store.Tags().Walk(func(c *tags.Change) error {
		for _, tag := range c.Set {
			if string(tag.Name) == name && string(tag.Value) == value {
				n++
			}
		}
		return nil
	})
	if err != nil {
		f.Error(err)
	}
	return n
}

// Labels may come in any order, and behind the samples.
func TestLabelsAnywhere(t *testing.T) {
	f := newFixture(t)
	m := message(nil).Bytes(2, sample(1, f.now))
	m = append(m, series1("z", "1", "a", "2", "__name__", "up")...)
	f.mustWrite(V1, message(nil).Bytes(1, m).
		Bytes(1, series1("a", "2", "__name__", "up", "z", "1").Bytes(2, sample(2, f.now+1000))))
	f.same("'up'.'a=2'.'z=1' 1@0 2@1000")
}

// A series may have samples and histograms, in any order; a field of another wire type is unknown.
func TestSamplesBesideHistograms(t *testing.T) {
	f := newFixture(t)
	h := message(nil).Varint(1, 2).Float(3, 7).Varint(15, uint64(f.now))
	odd := message(nil).Varint(1, 5).Float(1, 3).Varint(2, uint64(f.now+1000)).Float(2, 9)
	w := f.mustWrite(V1, message(nil).Bytes(1, series1("__name__", "a").Bytes(2, sample(1, f.now)).
		Bytes(4, h).Bytes(2, odd)))
	if w.Samples != 2 || w.Histograms != 1 {
		t.Errorf("%+v", w)
	}
	f.same("'a' 1@0 3@1000", "'a_bucket'.'le=+Inf' 2@0", "'a_count' 2@0", "'a_sum' 7@0")
}

// Of a request with series that are none the others are stored.
func TestSeriesThatAreNone(t *testing.T) {
	f := newFixture(t)
	one := sample(1, f.now)
	_, err := f.write(V1, message(nil).
		Bytes(1, series1("__name__", "a", "x", "1", "x", "2").Bytes(2, one)).
		Bytes(1, series1("__name__", "b", "", "1").Bytes(2, one)).
		Bytes(1, series1("__name__", strings.Repeat("c", 10)).Bytes(2, one).
			Bytes(2, sample(2, -5))).
		Bytes(1, series1("__name__", "d").Bytes(2, one)))
	bad := (*BadRequest)(nil)
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `series "a"`) {
		t.Error(err)
	}
	f.same("'cccccccccc' 1@0", "'d' 1@0")
	if f.counted("bad_labels") != 2 || f.counted("bad_value") != 1 {
		t.Errorf("%v", f.store.Account().Requests())
	}
	_, err = f.write(V2, symbols("", "__name__", "e").Bytes(5, series2(1, 3).Bytes(2, one)).
		Bytes(5, series2(1).Bytes(2, one)).Bytes(5, series2(1, 2).Bytes(2, one)))
	if !errors.As(err, &bad) || !errors.Is(err, errSymbol) {
		t.Error(err)
	}
	f.same("'cccccccccc' 1@0", "'d' 1@0", "'e' 1@0")
}

// Nothing is stored of a message that is cut off anywhere within a series.
func TestCutMessages(t *testing.T) {
	f := newFixture(t)
	whole := message(nil).Bytes(1, series1("__name__", "a").Bytes(2, sample(1, f.now)))
	for n := 1; n < len(whole); n++ {
		if _, err := f.write(V1, whole[:n]); !errors.Is(err, protobuf.ErrMalformed) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := f.store.BucketByName("prometheus"); err == nil {
		t.Error("there is a bucket")
	}
	if got := f.counted("malformed"); got != uint64(len(whole)-1) {
		t.Errorf("%d are counted", got)
	}
}

// Samples that the store refuses are named with the reason, the others are stored.
func TestRefusedSamples(t *testing.T) {
	f := newFixture(t)
	w, err := f.write(V1, message(nil).Bytes(1, series1("__name__", "a").Bytes(2, sample(1, f.now)).
		Bytes(2, sample(2, f.now+3600_000))))
	refusal := (*acked.Refusal)(nil)
	if !errors.As(err, &refusal) || refusal.Retry() || w.Samples != 1 ||
		refusal.Counts.Refused[account.Future] != 1 ||
		!strings.Contains(err.Error(), "1 of 2 points were not stored, 1: future, further ahead") {
		t.Errorf("%+v, %v", w, err)
	}
	f.same("'a' 1@0")
	again := f.mustWrite(V1, message(nil).Bytes(1,
		series1("__name__", "a").Bytes(2, sample(1, f.now))))
	if again.Counts.Duplicate != 1 || again.Counts.ReceivedPoints() != 1 {
		t.Errorf("the counts of the next request: %+v", again.Counts)
	}
}

// What is not kept is counted.
func TestWhatIsNotKept(t *testing.T) {
	f := newFixture(t)
	exemplar := message(nil).Float(2, 1).Varint(3, uint64(f.now))
	f.mustWrite(V1, message(nil).
		Bytes(1, series1("__name__", "a").Bytes(2, sample(1, f.now)).Bytes(3, exemplar)).
		Bytes(3, message(nil).Varint(1, 1).Text(2, "a")))
	f.mustWrite(V2, symbols("", "__name__", "a").Bytes(5, series2(1, 2).
		Bytes(2, sample(1, f.now+1000)).Bytes(4, exemplar)))
	if f.counted("exemplar_not_kept") != 2 || f.counted("metadata_not_kept") != 1 {
		t.Errorf("%v", f.store.Account().Requests())
	}
	f.same("'a' 1@0 1@1000")
}

// A series with more samples than a batch has points keeps its name.
func TestManySamplesOfASeries(t *testing.T) {
	f := newFixture(t)
	m, want := series1("__name__", "m", "x", "1"), "'m'.'x=1'"
	for i := range 1100 {
		m = m.Bytes(2, sample(float64(i), f.now-90_000+int64(i)*60))
	}
	w := f.mustWrite(V1, message(nil).Bytes(1, series1("__name__", "a").Bytes(2, sample(1, f.now))).
		Bytes(1, m))
	if w.Samples != 1101 || w.Counts.ReceivedPoints() != 1101 {
		t.Errorf("%+v", w)
	}
	if got := f.series(); len(got) != 2 || !strings.HasPrefix(got[1], want) {
		t.Errorf("%q", got)
	}
}

// More series than a batch has points and bytes, of several requests, keep their points.
func TestManySeries(t *testing.T) {
	f := newFixture(t)
	const n = 2 * 700
	for round := range 3 {
		var m message
		for i := range n {
			s := series1("__name__", "m", "i", fmt.Sprintf("%0200d", i))
			m = m.Bytes(1, s.Bytes(2, sample(float64(i), f.now+int64(1000*round))))
		}
		if w := f.mustWrite(V1, m); w.Samples != n || w.Counts.Accepted != n {
			t.Fatalf("%+v", w)
		}
	}
	for i, got := range f.series() {
		want := fmt.Sprintf("'m'.'i=%0200d' %d@0 %d@1000 %d@2000", i, i, i, i)
		if got != want {
			t.Fatalf("%s\nwant %s", got, want)
		}
	}
}
