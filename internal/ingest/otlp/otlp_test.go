package otlp

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
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/protomsg"
)

type message = protomsg.Message

func newServer(tb testing.TB, o store.Options, promote ...string) (*store.Store, *Server) {
	st, ws := ackedtest.Open(tb, Listener, o)
	return st, New(Options{Writers: ws, Promote: promote})
}

// attribute returns a KeyValue of a text.
func attribute(name, value string) message {
	return message(nil).Text(1, name).Bytes(2, message(nil).Text(1, value))
}

// one returns a request of metrics of one resource.
func one(resource message, metrics ...message) message {
	var scope message
	for _, m := range metrics {
		scope = scope.Bytes(2, m)
	}
	return message(nil).Bytes(1, message(nil).Bytes(1, resource).Bytes(2, scope))
}

// stored returns all series of the bucket with the values of a second.
func stored(t *testing.T, st *store.Store, second int64) (list []string) {
	t.Helper()
	b, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	words, times := make([]uint64, 1), make([]uint64, 1)
	err = st.Metrics(t.Context(), b, nil, func(key []byte) bool {
		if err := st.ReadWithStale(t.Context(), b, key, second, words, times); err != nil {
			t.Error(err)
		}
		text := fmt.Sprint(point.Float(words[0]))
		if words[0] == point.Stale {
			text = "stale"
		} else if ns := int64(times[0]) - second*1e9; ns != 789 {
			text += fmt.Sprintf("@%d", ns)
		}
		list = append(list, metric.Text(key)+" "+text)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// Each kind of metric becomes the series that Prometheus makes of it.
func TestKinds(t *testing.T) {
	st, s := newServer(t, storetest.Options(), "k8s.pod.name")
	second := time.Now().Unix() - 10
	ns := uint64(second)*1e9 + 789
	resource := message(nil).Bytes(1, attribute("service.name", "shop")).
		Bytes(1, attribute("service.namespace", "eu")).Bytes(1, attribute("host.name", "h1")).
		Bytes(1, attribute("service.instance.id", "i1")).Bytes(1, attribute("k8s.pod.name", "p"))
	number := message(nil).Fixed(3, ns)
	odd := message(nil).Bytes(7, attribute("a.b", "1")).Bytes(7, attribute("a_b", "2")).
		Bytes(7, message(nil).Text(1, "n").Bytes(2, message(nil).Varint(3, 7))).
		Bytes(7, message(nil).Text(1, "list").Bytes(2, message(nil).Bytes(5,
			message(nil).Bytes(1, message(nil).Text(1, "x")).Bytes(1, message(nil).Varint(2, 1)))))
	_, err := s.Write(t.Context(), "b", netip.AddrPort{}, one(resource,
		message(nil).Text(1, "cpu.temp").Text(3, "Cel").Bytes(5, message(nil).
			Bytes(1, append(odd, number.Float(4, 21.5)...))),
		message(nil).Text(1, "requests").Bytes(7, message(nil).Bytes(1, number.Fixed(6, 1<<40)).
			Varint(2, 2).Varint(3, 1)),
		message(nil).Text(1, "gone").Bytes(5, message(nil).Bytes(1, number.Varint(8, 1))),
		message(nil).Text(1, "took").Text(3, "ms").Bytes(9, message(nil).Bytes(1, number.Fixed(4, 6).
			Float(5, 40.5).Fixeds(6, 1, 2, 3).Floats(7, 5, 10)).Varint(2, 2)),
		message(nil).Text(1, "size").Bytes(10, message(nil).Bytes(1, number.Fixed(4, 7).Float(5, 9).
			Zigzag(6, 0).Fixed(7, 1).Bytes(8, message(nil).Zigzag(1, 1).Varints(2, 2, 0, 3)).
			Bytes(9, message(nil).Zigzag(1, 0).Varints(2, 1))).Varint(2, 2)),
		message(nil).Text(1, "old").Bytes(11, message(nil).Bytes(1, number.Fixed(4, 3).Float(5, 1.5).
			Bytes(6, message(nil).Float(1, 0.9).Float(2, 0.75)))),
	))
	if err != nil {
		t.Fatal(err)
	}
	const own = "'instance=i1'.'job=eu/shop'.'k8s_pod_name=p'"
	want := []string{
		"'cpu_temp_celsius'.'a_b=1;2'.'instance=i1'.'job=eu/shop'.'k8s_pod_name=p'." +
			"'list=[\"x\",true]'.'n=7' 21.5",
		"'gone'." + own + " stale",
		"'old'." + own + ".'quantile=0.9' 0.75", "'old_count'." + own + " 3",
		"'old_sum'." + own + " 1.5",
		"'requests_total'." + own + " " + fmt.Sprint(float64(1<<40)),
		"'size_count'." + own + " 7", "'size_sum'." + own + " 9",
		"'target_info'.'host_name=h1'." + own + " 1",
		"'took_milliseconds_count'." + own + " 6", "'took_milliseconds_sum'." + own + " 40.5",
	}
	for le, n := range map[string]string{"-2": "0", "-1": "1", "0": "2", "2": "2", "4": "4",
		"8": "4", "16": "7", "+Inf": "7"} {
		want = append(want, "'size_bucket'.'instance=i1'.'job=eu/shop'.'k8s_pod_name=p'.'le="+le+
			"' "+n)
	}
	for le, n := range map[string]string{"5": "1", "10": "3", "+Inf": "6"} {
		want = append(want, "'took_milliseconds_bucket'.'instance=i1'.'job=eu/shop'."+
			"'k8s_pod_name=p'.'le="+le+"' "+n)
	}
	slices.Sort(want)
	if got := stored(t, st, second); !slices.Equal(got, want) {
		t.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A data point that is none is counted under its reason, and costs no other one.
func TestRejected(t *testing.T) {
	st, s := newServer(t, storetest.Options())
	second := time.Now().Unix() - 10
	number := message(nil).Fixed(3, uint64(second)*1e9+789).Float(4, 1)
	gaugeOf := func(points ...message) (data message) {
		for _, p := range points {
			data = data.Bytes(1, p)
		}
		return data
	}
	w, err := s.Write(t.Context(), "b", netip.AddrPort{}, one(nil,
		message(nil).Text(1, "m").Bytes(5, gaugeOf(number, message(nil).Float(4, 1), []byte{0x19},
			message(nil).Fixed(3, math.MaxUint64))),
		message(nil).Bytes(5, gaugeOf(number)),
		message(nil).Text(1, "d").Bytes(7, gaugeOf(number).Varint(2, 1)),
		message(nil).Text(1, "h").Bytes(9, gaugeOf(number.Fixeds(6, 1, 2, 3))),
		message(nil).Text(1, "e").Bytes(10, gaugeOf(number.Zigzag(6, 21))),
		message(nil).Text(1, "empty"),
	))
	partial := (*PartialError)(nil)
	if !errors.As(err, &partial) || w.Points != 1 || w.Rejected != 7 || w.Counts.Accepted != 1 {
		t.Errorf("%+v, %v", w, err)
	}
	requests := st.Account().Requests()
	for reason, n := range map[string]uint64{"malformed": 1, "bad_time": 2, "bad_name": 1,
		"delta": 1, "bad_histogram": 2} {
		if requests["otlp_"+reason] != n {
			t.Errorf("%s: %d, want %d", reason, requests["otlp_"+reason], n)
		}
	}
	if got := stored(t, st, second); len(got) != 1 || got[0] != "'m' 1" {
		t.Errorf("%q", got)
	}
	if _, err := s.Write(t.Context(), "b", netip.AddrPort{}, []byte{0x0a, 9}); err != ErrMalformed {
		t.Error(err)
	}
}

// FuzzWrite: nothing that comes breaks the server, and what was handed over is counted.
func FuzzWrite(f *testing.F) {
	now := uint64(time.Now().UnixNano())
	number := message(nil).Bytes(7, attribute("a", "b")).Fixed(3, now).Float(4, 1)
	for _, kind := range []message{message(nil).Bytes(5, message(nil).Bytes(1, number)),
		message(nil).Bytes(9, message(nil).Bytes(1, number.Fixeds(6, 1, 2).Floats(7, 1))),
		message(nil).Bytes(10, message(nil).Bytes(1, number.Bytes(8, message(nil).Varints(2, 1)))),
		message(nil).Bytes(11, message(nil).Bytes(1, number.Bytes(6, message(nil).Float(1, 1))))} {
		f.Add([]byte(one(message(nil).Bytes(1, attribute("service.name", "x")),
			append(message(nil).Text(1, "m"), kind...))))
	}
	o := storetest.Options()
	o.WALSync = wal.Off // no request waits for a tick
	_, s := newServer(f, o)
	f.Fuzz(func(t *testing.T, msg []byte) {
		w, _ := s.Write(t.Context(), "b", netip.AddrPort{}, msg)
		if w.Points > int(w.Counts.ReceivedPoints()) {
			t.Errorf("%+v", w)
		}
	})
}

// BenchmarkWrite is the time of a data point of known series, the log included.
func BenchmarkWrite(b *testing.B) {
	const resources, perResource = 100, 100
	o := store.DefaultOptions(b.TempDir())
	o.WALSync = wal.Off
	_, s := newServer(b, o)
	round := uint64(time.Now().Add(-time.Hour).UnixNano())
	build := func() (msgs []message) {
		round += 10e9
		for r := range resources {
			data := message(nil)
			for i := range perResource {
				p := message(nil).Bytes(7, attribute("cpu", fmt.Sprint(i))).
					Bytes(7, attribute("state", "idle")).Fixed(3, round).Float(4, float64(i))
				data = data.Bytes(1, p)
			}
			resource := message(nil).Bytes(1, attribute("service.name", "node")).
				Bytes(1, attribute("service.instance.id", fmt.Sprint(r)))
			msgs = append(msgs, one(resource, message(nil).Text(1, "system.cpu.time").Text(3, "s").
				Bytes(7, data.Varint(2, 2).Varint(3, 1))))
		}
		return msgs
	}
	send := func() time.Duration {
		msgs := build()
		start := time.Now()
		for _, m := range msgs {
			if _, err := s.Write(b.Context(), "b", netip.AddrPort{}, m); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
	send()
	took := time.Duration(0)
	for b.Loop() {
		took += send()
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/resources/perResource, "ns/point")
}
