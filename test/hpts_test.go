package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// TestTimestampsByTheBytes: vectors 17, 33, 40 and 45 of internal/wire/testdata, and
// what is read back, in buckets that were created in every way there is.
func TestTimestampsByTheBytes(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	if _, err := n.dial().AddTimestampedBucket(context.Background(), "wire", 1000, 604800,
		86400); err != nil {
		t.Fatal(err)
	}
	b := admin.Bucket{Name: "http", Resolution: 1000, PPF: 604800, TTL: 86400, HPTS: true}
	if _, err := n.admin().CreateBucket(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "ddb", "admin", "buckets", "create", "--addr", n.http, "tool", "1s", "1w", "true",
		"1d"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	// The vectors are of 2017; a lifetime would hide them.
	for _, bucket := range []string{"wire", "http", "tool"} {
		s := n.socket()
		s.ask(append([]byte{7, 4}, bucket...))
		if got, want := s.reply(),
			unhex(t, "00000000000003e80000000000093a800000000000000000010000000000015180"); !bytes.Equal(got,
			want) {
			t.Errorf("the properties of %s are %x, want %x", bucket, got, want)
		}
		if _, err := n.dial().SetTTL(context.Background(), bucket, 0); err != nil {
			t.Fatal(err)
		}
		s = n.socket()
		s.send(frame(append(unhex(t, "12 01 05 04"), bucket...)))
		s.send(unhex(t, "0a 0000000059682f00 0007026d79036b6579 0100000000000007 14d1120d8271cd15 0000"))
		s.send(unhex(t, "05 0000000059682f02 0007026d79036b6579 00000020 9ffc000000000000 "+
			"14d1120d8271cd15 0000000000000000 0000000000000001"))
		s.send([]byte{6})
		get := append(append(unhex(t, "02 04"), bucket...),
			unhex(t, "0007 026d79036b6579 0000000059682f00 00000004")...)
		timestamped := unhex(t, "0100000000000007 14d1120d8271cd15 0000000000000000 0000000000000000"+
			"9ffc000000000000 14d1120d8271cd15 0000000000000000 0000000000000000")
		var got []byte
		eventually(t, "both points of "+bucket+" are there", func() bool {
			s := n.socket()
			s.ask(append(get, 1, 0, 255))
			got = s.slots(16, 4)
			return !bytes.Equal(got[32:40], make([]byte, 8))
		})
		if !bytes.Equal(got, timestamped) {
			t.Errorf("%s holds %x, want %x", bucket, got, timestamped)
		}
		s = n.socket()
		s.ask(append(get, 0, 2, 0))
		if got, want := s.slots(8, 4),
			unhex(t, "0100000000000007 0000000000000000 9ffc000000000000 0000000000000000"); !bytes.Equal(
			got, want) {
			t.Errorf("%s holds the values %x, want %x", bucket, got, want)
		}
	}
	r := run(t, "ddb", "admin", "buckets", "list", "--addr", n.http)
	for _, line := range strings.Split(r.out, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		want := map[string]string{"Bucket": "HPTS", "dalmatinerdb": "false"}[fields[0]]
		if want == "" {
			want = "true"
		}
		if fields[len(fields)-1] != want {
			t.Errorf("the list has the line %q, want %s at its end", line, want)
		}
	}
}

const (
	timestampedSeries = 300 // more than fit one group
	timestampedSlots  = 40
)

// nanos is the timestamp every test sends with a point: inside its slot for two of
// three, up to days beside it for the rest.
func nanos(series int, slot int64) uint64 {
	begin := uint64(slot) * uint64(time.Second)
	x := uint64(series+1)*0x9e3779b97f4a7c15 ^ uint64(slot)*0xd1b54a32d192ed03
	x ^= x >> 29
	if x%3 == 0 {
		return begin - x%uint64(100*24*time.Hour)
	}
	return begin + x%uint64(time.Second)
}

// TestTimestampsSurviveKill: after kill -9 on the acknowledged stream every
// acknowledged point has its value and its timestamp to the nanosecond, and no
// other point has any; so after merging and a clean restart.
func TestTimestampsSurviveKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir, "--set", "wal.sync=always")
	if _, err := n.dial().AddTimestampedBucket(context.Background(), "nanos", 1000, 604800,
		0); err != nil {
		t.Fatal(err)
	}
	base := past(time.Hour)
	keys := make([][]byte, timestampedSeries)
	for i := range keys {
		keys[i] = key(t, "nanos", fmt.Sprint(i))
	}
	for round := range 3 {
		sendNanos(t, n, keys, base+int64(round*timestampedSlots))
		if round == 1 {
			if _, err := n.admin().Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		n.kill()
		n = startNode(t, dir, "--set", "wal.sync=always")
		wantNanos(t, n, keys, base, (round+1)*timestampedSlots)
	}
	n.stop()
	n = startNode(t, dir)
	wantNanos(t, n, keys, base, 3*timestampedSlots)
	row := n.account("nanos")
	if want := uint64(3 * timestampedSlots * timestampedSeries); row.Accepted+row.Late != want ||
		row.Received != want {
		t.Errorf("the account holds %+v, want %d points", row, want)
	}
	names, err := n.dial().List(context.Background(), "nanos")
	if err != nil || len(names) != timestampedSeries {
		t.Errorf("%d metrics are listed, want %d: %v", len(names), timestampedSeries, err)
	}
	r := query(t, n, fmt.Sprintf("SELECT nanos.* BUCKET nanos AS $2 AFTER %d FOR %ds", base*1000,
		3*timestampedSlots))
	if len(r.Results) != timestampedSeries {
		t.Errorf("a query finds %d series, want %d", len(r.Results), timestampedSeries)
	}
	for _, s := range r.Results {
		i, err := strconv.Atoi(strings.Trim(s.Name, "'"))
		if err != nil || s.Coverage != 1 {
			t.Fatalf("%s: coverage %v, %v", s.Name, s.Coverage, err)
		}
		for j, v := range s.Values {
			if want := point.Float(value(uint64(i), base+int64(j))); v == nil || *v != want {
				t.Fatalf("%s, value %d: %v, want %v", s.Name, j, v, want)
			}
		}
	}
	if r := run(t, "ddb", "admin", "check", "--addr", n.http); r.code != 0 {
		t.Errorf("check: %s%s", r.out, r.errOut)
	}
}

// sendNanos sends all series from a slot on, by batches and by entries in turn,
// and waits until they are durable.
func sendNanos(t *testing.T, n *node, keys [][]byte, from int64) {
	t.Helper()
	s, err := n.dial().OpenTimestampedAckStream("nanos")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for slot := from; slot < from+timestampedSlots/2; slot++ {
		err = s.BatchStart(slot)
		for i, k := range keys {
			if err == nil {
				err = s.TimestampedBatchPoint(k,
					wire.Timestamped{Word: value(uint64(i), slot), Time: nanos(i, slot)})
			}
		}
		if err == nil {
			err = s.BatchEnd()
		}
	}
	order := rand.Perm(len(keys))
	for _, i := range order {
		var points []wire.Timestamped
		for slot := from + timestampedSlots/2; slot < from+timestampedSlots; slot++ {
			points = append(points, wire.Timestamped{Word: value(uint64(i), slot), Time: nanos(i, slot)})
		}
		if err == nil {
			err = s.TimestampedPoints(keys[i], from+timestampedSlots/2, points...)
		}
	}
	if err == nil {
		_, err = s.FlushAck()
	}
	if err != nil {
		t.Fatal(err)
	}
	ack, err := s.ReadAck()
	if err != nil || ack.Received != uint64(len(keys)*timestampedSlots) || ack.Refused != 0 {
		t.Fatalf("answered with %+v, %v", ack, err)
	}
}

// wantNanos reads everything back, a slot further than it goes.
func wantNanos(t *testing.T, n *node, keys [][]byte, base int64, slots int) {
	t.Helper()
	c := n.dial()
	for i, k := range keys {
		want := make([]wire.Timestamped, slots+1)
		var words []uint64
		for j := range slots {
			slot := base + int64(j)
			want[j] = wire.Timestamped{Word: value(uint64(i), slot), Time: nanos(i, slot)}
			words = append(words, want[j].Word)
		}
		got, err := c.GetTimestamped(context.Background(), "nanos", k, base, slots+1)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("series %d differs: %v\n%v\n%v", i, err, got, want)
		}
		if i%50 == 0 && !slices.Equal(get(t, c, "nanos", k, base, slots), words) {
			t.Fatalf("the values of series %d differ", i)
		}
	}
}

// TestTimestampsOfOtherListeners: what comes without a timestamp gets the begin of
// its slot, what Graphite sends its own time.
func TestTimestampsOfOtherListeners(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	if _, err := n.dial().AddTimestampedBucket(context.Background(), "coarse", 10_000, 604800,
		0); err != nil {
		t.Fatal(err)
	}
	slot := past(time.Hour) / 10
	begin := uint64(slot) * uint64(10*time.Second)
	send(t, n, "coarse", key(t, "plain"), slot, point.FromInt(1), point.Unset, point.FromInt(3))
	got, err := n.dial().GetTimestamped(context.Background(), "coarse", key(t, "plain"), slot, 3)
	want := []wire.Timestamped{{Word: point.FromInt(1), Time: begin}, {},
		{Word: point.FromInt(3), Time: begin + uint64(20*time.Second)}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	s := n.socket()
	s.ask(append(append(unhex(t, "02 06"), "coarse"...),
		binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(
			unhex(t, "0006 05706c61696e"), uint64(slot)), 1)...))
	if got := s.slots(8, 1); !bytes.Equal(got, unhex(t, "0100000000000001")) {
		t.Errorf("the plain form holds %x", got)
	}
}
