package test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

// agreeMargin is what a lifetime hides beyond its begin while the test goes on:
// nothing is sent there, nothing compared.
const agreeMargin = 1200

// agreeBucket is the model of a bucket. It is made by the first write.
type agreeBucket struct {
	name   string
	hpts   bool
	exists bool
	cut    int // slots below it are hidden by the lifetime
	since  time.Time
	points [agreeSeries][]wire.Timestamped
}

func newAgreeBucket(name string, hpts bool) *agreeBucket {
	b := &agreeBucket{name: name, hpts: hpts}
	for i := range b.points {
		b.points[i] = make([]wire.Timestamped, agreeSlots)
	}
	return b
}

// clear empties the model of some series.
func (b *agreeBucket) clear(from, to int) {
	for i := from; i < to; i++ {
		clear(b.points[i])
	}
}

// any reports whether a series has points that are sure to be there.
func (b *agreeBucket) any(series int) bool {
	return slices.ContainsFunc(b.points[series][b.sure():], func(p wire.Timestamped) bool {
		return p.Word != point.Unset
	})
}

// sure returns the first slot of which it is known that it is not hidden.
func (b *agreeBucket) sure() int {
	if b.cut == 0 {
		return 0
	}
	return b.cut + agreeMargin
}

// run is what one message holds: consecutive points of a series.
type agreeRun struct {
	series, slot int
	points       []wire.Timestamped
}

func (a *agreement) run(b *agreeBucket, most int) agreeRun {
	r := agreeRun{series: a.r.IntN(agreeSeries), points: make([]wire.Timestamped, 1+a.r.IntN(most))}
	r.slot = b.sure() + a.r.IntN(agreeSlots-most-b.sure())
	salt := a.r.Uint64N(1000)
	for i := range r.points {
		begin := uint64(a.base+int64(r.slot+i)) * uint64(time.Second)
		r.points[i] = wire.Timestamped{Word: value(salt, int64(i)), Time: begin +
			a.r.Uint64N(uint64(time.Second))}
	}
	return r
}

// plain takes the timestamps from a run: every point gets the begin of its slot.
func (a *agreement) plain(r agreeRun) (words []uint64) {
	for i := range r.points {
		r.points[i].Time = uint64(a.base+int64(r.slot+i)) * uint64(time.Second)
		words = append(words, r.points[i].Word)
	}
	return words
}

// ensure makes the bucket where there is none.
func (a *agreement) ensure(b *agreeBucket) {
	a.t.Helper()
	if b.exists {
		return
	}
	b.exists = true
	for _, n := range a.nodes {
		c := n.dial()
		add := c.AddBucket
		if b.hpts {
			add = c.AddTimestampedBucket
		}
		if _, err := add(context.Background(), b.name, 1000, 604800, 0); err != nil {
			a.t.Fatal(err)
		}
	}
}

// write sends some runs to every node: in order, late, and over what is there.
func (a *agreement) write(b *agreeBucket) {
	a.t.Helper()
	a.ensure(b)
	timestamped := b.hpts && a.r.IntN(4) > 0
	runs, sent := make([]agreeRun, 1+a.r.IntN(20)), 0
	for i := range runs {
		runs[i] = a.run(b, 2000)
		if !timestamped {
			a.plain(runs[i])
		}
		sent += len(runs[i].points)
	}
	for i, n := range a.nodes {
		open := n.dial().OpenAckStream
		if timestamped {
			open = n.dial().OpenTimestampedAckStream
		}
		stream, err := open(b.name)
		if err != nil {
			a.t.Fatal(err)
		}
		s := ackStream{a.t, stream}
		for _, r := range runs {
			if timestamped {
				err = s.TimestampedPoints(a.keys[r.series], a.base+int64(r.slot), r.points...)
			} else {
				err = s.Points(a.keys[r.series], a.base+int64(r.slot), a.plain(r)...)
			}
			if err != nil {
				a.t.Fatal(err)
			}
		}
		if ack := s.flush(); ack.Received != uint64(sent) || ack.Refused != 0 {
			a.t.Fatalf("node %d answered %d points with %+v", i, sent, ack)
		}
		if err := s.Close(); err != nil {
			a.t.Fatal(err)
		}
	}
	for _, r := range runs {
		copy(b.points[r.series][r.slot:], r.points)
	}
}

// unacked sends runs through a listener that sends no reply, until each is in the
// account, and makes them durable with a point over the other port.
func (a *agreement) unacked(b *agreeBucket, listener string) {
	a.t.Helper()
	a.ensure(b)
	for range 1 + a.r.IntN(5) {
		r := a.run(b, 100)
		for i, n := range a.nodes {
			// UDP is refused while senders are held back.
			for refused := uint64(1); refused > 0; {
				before := n.account(b.name)
				a.through(n, b, listener, r)
				after := before
				eventually(a.t, fmt.Sprintf("node %d has %d points by %s", i, len(r.points), listener),
					func() bool {
						after = n.account(b.name)
						return after.Received == before.Received+uint64(len(r.points))
					})
				refused = after.Refused["overload"] - before.Refused["overload"]
				if after.RefusedTotal() != before.RefusedTotal()+refused {
					a.t.Fatalf("node %d refused points by %s: %+v", i, listener, after.Refused)
				}
			}
		}
		copy(b.points[r.series][r.slot:], r.points)
	}
	a.write(b)
}

// through sends one run by a listener.
func (a *agreement) through(n *node, b *agreeBucket, listener string, r agreeRun) {
	a.t.Helper()
	words, slot := a.plain(r), a.base+int64(r.slot)
	if listener == "udp" {
		k := a.keys[r.series]
		d := append([]byte{0, byte(len(b.name))}, b.name...)
		d = binary.BigEndian.AppendUint64(d, uint64(slot))
		d = append(binary.BigEndian.AppendUint16(d, uint16(len(k))), k...)
		d = binary.BigEndian.AppendUint32(d, uint32(len(words)*point.Size))
		for _, w := range words {
			d = point.Append(d, w)
		}
		c := n.to("udp", n.listener("udp put"))
		put(a.t, c, d)
		_ = c.Close() // what was sent was sent
		return
	}
	var lines []byte
	for i, w := range words {
		number := strconv.FormatInt(point.Int(w), 10)
		if point.KindOf(w) == point.KindFloat {
			number = strconv.FormatFloat(point.Float(w), 'f', 3, 64)
		}
		lines = fmt.Appendf(lines, "series.%d %s %d\n", r.series, number, slot+int64(i))
	}
	network := strings.TrimPrefix(listener, "graphite ")
	c := n.to(network, n.listener("graphite lines"))
	put(a.t, c, lines)
	if err := c.Close(); err != nil {
		a.t.Fatal(err)
	}
}

// limit gives the bucket a lifetime, shorter than the last.
func (a *agreement) limit(b *agreeBucket) {
	a.t.Helper()
	if !b.exists {
		return
	}
	cut := b.sure() + a.r.IntN(agreeSlots/8)
	if cut > agreeSlots/2 {
		return
	}
	b.since = time.Now()
	for _, n := range a.nodes {
		ttl := b.since.Unix() - a.base - int64(cut)
		if _, err := n.dial().SetTTL(context.Background(), b.name, uint64(ttl)); err != nil {
			a.t.Fatal(err)
		}
	}
	b.cut = cut
	for _, points := range b.points {
		clear(points[:cut])
	}
}

// drop deletes the bucket, which may come again.
func (a *agreement) drop(b *agreeBucket) {
	a.t.Helper()
	if !b.exists {
		return
	}
	for i, n := range a.nodes {
		if err := n.admin().DeleteBucket(context.Background(), b.name); err != nil {
			a.t.Fatalf("node %d: %v", i, err)
		}
	}
	b.exists, b.cut = false, 0
	b.clear(0, agreeSeries)
}

// forget deletes a series, or all of them by their prefix; they may come again.
func (a *agreement) forget(b *agreeBucket) {
	a.t.Helper()
	if !b.exists {
		return
	}
	from, to := a.r.IntN(agreeSeries), agreeSeries
	choice := admin.SeriesChoice{Bucket: b.name, Prefix: "series"}
	if a.r.IntN(4) > 0 {
		choice = admin.SeriesChoice{Bucket: b.name, Metric: metric.Text(a.keys[from])}
		to = from + 1
		if !b.any(from) {
			return // it may have left
		}
	} else {
		from = 0
	}
	for i, n := range a.nodes {
		if _, err := n.admin().DeleteSeries(context.Background(), choice); err != nil {
			a.t.Fatalf("node %d: %v", i, err)
		}
	}
	b.clear(from, to)
}

// compare reads everything of a bucket from one node.
func (a *agreement) compare(i int, b *agreeBucket) {
	a.t.Helper()
	c := a.nodes[i].dial()
	defer c.Close()
	if !b.exists {
		if names, err := c.Buckets(context.Background()); err != nil || slices.Contains(names, b.name) {
			a.t.Fatalf("node %d (%s) has the buckets %q without %s: %v", i, a.settings(i), names, b.name,
				err)
		}
		return
	}
	if aged := time.Since(b.since); b.cut > 0 && aged > agreeMargin*time.Second {
		a.t.Fatalf("the lifetime went on for %v: the margin of the test is too small", aged)
	}
	for series, want := range b.points {
		got, err := c.GetTimestamped(context.Background(), b.name, a.keys[series], a.base, agreeSlots)
		if err != nil {
			a.t.Fatal(err)
		}
		words := get(a.t, c, b.name, a.keys[series], a.base, agreeSlots)
		for slot := range want {
			if slot >= b.cut && slot < b.sure() {
				continue
			}
			if got[slot] != want[slot] || words[slot] != want[slot].Word {
				a.t.Fatalf("node %d (%s) %s series %d slot %d holds %+v, alone %x, want %+v", i, a.settings(i),
					b.name, series, slot, got[slot], words[slot], want[slot])
			}
		}
	}
}
