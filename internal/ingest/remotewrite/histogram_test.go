package remotewrite

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/protobuf"
	"dalmatiner/internal/store/storetest"
)

func spanOf(offset int64, length uint64) message {
	return message(nil).Zigzag(1, offset).Varint(2, length)
}

// A histogram becomes the series of a classic one, with the bounds that its schema has.
func TestHistograms(t *testing.T) {
	ints := func(ms int64) message {
		return message(nil).Varint(1, 9).Float(3, 18.5).Zigzag(4, 0).Float(5, 0.001).Varint(6, 2).
			Bytes(8, spanOf(1, 1)).Zigzags(9, 3).
			Bytes(11, spanOf(0, 2)).Bytes(11, spanOf(1, 1)).Zigzags(12, 1, 1, -1).Varint(15, uint64(ms))
	}
	floats := func(ms int64) message {
		return message(nil).Float(2, 1.5).Float(3, 7).Zigzag(4, histogram.CustomSchema).
			Bytes(11, spanOf(0, 2)).Floats(13, 1, 0.5).Varint(15, uint64(ms)).Float(16, 2.5)
	}
	f := newFixture(t)
	w := f.mustWrite(V1, message(nil).
		Bytes(1, series1("__name__", "h", "zone", "a", "job", "x").Bytes(4, ints(f.now))).
		Bytes(1, series1("__name__", "c").Bytes(4, floats(f.now+500))))
	if w.Histograms != 2 || w.Samples != 0 {
		t.Errorf("%+v", w)
	}
	list := []string{
		"'c_bucket'.'le=+Inf' 1.5@500", "'c_bucket'.'le=2.5' 1@500", "'c_count' 1.5@500",
		"'c_sum' 7@500",
	}
	for _, b := range []string{"+Inf' 9", "-0.001' 3", "-1' 3", "-2' 0", "0.001' 5", "0.5' 5",
		"1' 6", "2' 8", "4' 8", "8' 9"} {
		le, n, _ := strings.Cut(b, "' ")
		list = append(list, "'h_bucket'.'job=x'.'le="+le+"'.'zone=a' "+n+"@0")
	}
	list = append(list, "'h_count'.'job=x'.'zone=a' 9@0", "'h_sum'.'job=x'.'zone=a' 18.5@0")
	f.same(list...)
	if got := f.tagged("le", "+Inf"); got != 2 {
		t.Errorf("%d series have the tag le", got)
	}

	stale := message(nil).Float(3, math.Float64frombits(staleNaN)).Varint(15, uint64(f.now))
	f.mustWrite(V2, symbols("", "__name__", "gone").Bytes(5, series2(1, 2).Bytes(3, stale)))
	if got := strings.Join(f.series(), "\n"); !strings.Contains(got, "'gone_count' stale@0") ||
		!strings.Contains(got, "'gone_bucket'.'le=+Inf' stale@0") {
		t.Error(got)
	}
}

func TestHistogramsThatAreNone(t *testing.T) {
	f := newFixture(t)
	for want, h := range map[error]message{
		histogram.ErrSchema:  message(nil).Zigzag(4, 9).Bytes(11, spanOf(0, 1)).Zigzags(12, 1),
		histogram.ErrBuckets: message(nil).Zigzag(4, 3).Bytes(11, spanOf(0, 2)).Zigzags(12, 1),
		errNegative: message(nil).
			Varint(15, 1<<63),
		protobuf.ErrMalformed: message(nil).Bytes(11, []byte{0x10}),
	} {
		_, err := f.write(V1, message(nil).Bytes(1, series1("__name__", "h").Bytes(4, h)))
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	huge := message(nil).Bytes(11, spanOf(0, 1<<31))
	if _, err := f.write(V1, message(nil).
		Bytes(1, series1("__name__", "h").Bytes(4, huge))); !errors.Is(err, histogram.ErrBuckets) {
		t.Error(err)
	}
}

// FuzzWrite takes what nobody sent: it never panics, and what is stored was counted.
func FuzzWrite(f *testing.F) {
	now := int64(1_800_000_000_000)
	f.Add(byte(V1), []byte(message(nil).Bytes(1, series1("__name__", "a", "b", "c").
		Bytes(2, sample(1, now)))))
	f.Add(byte(V2), []byte(symbols("", "__name__", "a").Bytes(5, series2(1, 2).
		Bytes(2, sample(1, now)).Bytes(3, message(nil).Varint(1, 1).Bytes(11, spanOf(0, 1)).
		Zigzags(12, 1)))))
	o := storetest.Options()
	o.WALSync = wal.Off
	_, server := newServer(f, o)
	f.Fuzz(func(t *testing.T, v byte, msg []byte) {
		w, err := server.Write(t.Context(), "fuzz", netip.AddrPort{}, V1+Version(v&1), msg)
		if err == nil && uint64(w.Samples) > w.Counts.ReceivedPoints() {
			t.Errorf("%+v", w)
		}
	})
}
