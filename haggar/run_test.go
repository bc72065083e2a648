package haggar

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

var start = time.Unix(1_790_000_000, 0)

// base is a small fast run against s.
func base(s *store) Config {
	return Config{
		Addr: s.ln.Addr().String(), Bucket: "b", Agents: 3, Metrics: 40,
		Fast: true, CacheConnections: true, Start: start, Steps: 150,
		Data: Data{Seed: 11},
	}
}

// send runs c to its end and returns the summary and the journal.
func send(t *testing.T, s *store, c Config) (Summary, *Journal) {
	t.Helper()
	var journal, log bytes.Buffer
	c.Journal = &journal
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sum, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	j, err := ReadJournal(&journal)
	if err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Logf("log: %s", log.String())
	}
	return sum, j
}

// expect returns the points that the journal's flushes of the given states
// stand for.
func expect(j *Journal, states ...State) map[place]uint64 {
	want := map[place]uint64{}
	for _, f := range j.Flushes {
		if !slices.Contains(states, f.State) {
			continue
		}
		for i := f.First; i < f.First+f.Count; i++ {
			key, it := string(j.AppendKey(nil, f.Agent, i)), j.Series(f.Agent, i)
			for r := range f.Slots {
				want[place{key, f.Slot + r*f.Step}] = it.Word(f.Slot + r*f.Step)
			}
		}
	}
	return want
}

func compare(t *testing.T, got, want map[place]uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("the store has %d points, the journal %d", len(got), len(want))
	}
	for at, w := range want {
		if got[at] != w {
			t.Fatalf("%q at slot %d: the store has %x, the journal %x", at.key, at.slot, got[at], w)
		}
	}
}

func TestJournalIsWhatTheStoreGot(t *testing.T) {
	f := func(name string, change func(*Config)) {
		t.Run(name, func(t *testing.T) {
			s := listen(t, newStore())
			c := base(s)
			change(&c)
			sum, j := send(t, s, c)
			compare(t, s.points, expect(j, Sent, Acked))
			total := int64(c.Agents) * int64(c.Metrics) * c.Steps
			if sum.Points != total || sum.Errors != 0 || int64(len(s.points)) != total || s.twice != 0 {
				t.Errorf("summary %+v, %d points stored, %d twice, want %d points", sum, len(s.points), s.twice,
					total)
			}
			if c.Ack && sum.Acked != total || !c.Ack && sum.Acked != 0 {
				t.Errorf("%d points acknowledged", sum.Acked)
			}
			if sum.Flushes != int64(len(j.Flushes)) || sum.Flushes != int64(s.flushes) ||
				sum.FlushP99 < sum.FlushP50 {
				t.Errorf("%d flushes in the summary, %d in the journal, %d in the store, p50 %d, p99 %d",
					sum.Flushes, len(j.Flushes), s.flushes, sum.FlushP50, sum.FlushP99)
			}
		})
	}
	f("entries", func(c *Config) {})
	f("batch", func(c *Config) { c.Batch = true })
	f("batch, acknowledged", func(c *Config) { c.Batch, c.Ack = true, true })
	f("the mix", func(c *Config) { c.Walk, c.Batch = true, true })
	f("steps of 10 s", func(c *Config) { c.Walk, c.Step = true, 10*time.Second })
	f("a connection per flush", func(c *Config) { c.CacheConnections, c.Steps = false, 5 })
	f("a connection per flush, acknowledged", func(c *Config) {
		c.CacheConnections, c.Ack, c.Steps = false, true, 5
	})
	f("rows of several writes", func(c *Config) { c.Agents, c.Metrics, c.Steps = 1, 12_000, 2 })
	f("batches of several writes", func(c *Config) {
		c.Batch, c.Agents, c.Metrics, c.Steps = true, 1, 12_000, 2
	})
	f("tiny writes", func(c *Config) { c.TinyWrites, c.Steps, c.CacheConnections = true, 3, false })
	f("shuffled entries", func(c *Config) { c.Shuffle = true })
	f("shuffled batches of the mix", func(c *Config) { c.Shuffle, c.Batch, c.Walk = true, true, true })
	f("shuffled batches of several writes", func(c *Config) {
		c.Shuffle, c.Batch, c.Metrics, c.Steps = true, true, 12_000, 2
	})
	f("in time", func(c *Config) {
		c.Fast, c.FlushInterval, c.Steps = false, time.Millisecond, 3
	})
}

func TestClassicBytes(t *testing.T) {
	s := listen(t, newStore())
	c := base(s)
	c.Bucket, c.CacheConnections, c.Agents, c.Metrics, c.Steps = "haggar1", false, 4, 18, 1
	c.Start = time.Unix(1_500_000_000, 0)
	_, j := send(t, s, c)
	// Vector 41 of internal/wire/testdata/vectors.txt: metric 17 of agent 3 has the value 500.
	const open = "0000000a04020768616767617231"
	const entry = "050000000059682f00001c056167656e7406202020202033076d6574726963730620202020313700000008"
	it := j.Series(3, 17)
	want := entry + hex.EncodeToString(point.Append(nil, it.Word(1_500_000_000)))
	found := false
	for _, raw := range s.raw {
		text := hex.EncodeToString(raw)
		if !strings.HasPrefix(text, open+"05") || !strings.HasSuffix(text, "06") {
			t.Errorf("a connection carries %s, want it to start with %s and to end with a flush", text, open)
		}
		if len(raw) != 14+18*51+1 {
			t.Errorf("a connection carries %d bytes, want 18 entries of 51", len(raw))
		}
		found = found || strings.HasSuffix(text, want+"06")
	}
	if !found || len(s.raw) != 4 {
		t.Errorf("%d connections, and none ends with %s", len(s.raw), want)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	run := func(seed uint64) string {
		s := listen(t, newStore())
		c := base(s)
		c.Agents, c.Walk, c.Seed, c.Batch = 1, true, seed, true
		send(t, s, c)
		return string(s.raw[0])
	}
	if first, again := run(1), run(1); first != again {
		t.Error("two runs of one seed send different bytes")
	}
	if run(1) == run(2) {
		t.Error("two seeds send the same bytes")
	}
}

// No two rows of a shuffled load have the same order, and a seed has its own.
func TestShuffle(t *testing.T) {
	names := regexp.MustCompile("metrics\x06 *([0-9]+)")
	orders := func(seed uint64) (rows []string) {
		s := listen(t, newStore())
		c := base(s)
		c.Agents, c.Metrics, c.Steps, c.Seed, c.Shuffle = 1, 100, 4, seed, true
		send(t, s, c)
		var all []string
		for _, m := range names.FindAllStringSubmatch(string(s.raw[0]), -1) {
			all = append(all, m[1])
		}
		for row := range slices.Chunk(all, c.Metrics) {
			rows = append(rows, strings.Join(row, " "))
		}
		return rows
	}
	one := orders(1)
	if !slices.Equal(one, orders(1)) {
		t.Error("two runs of one seed have different orders")
	}
	one = append(one, orders(2)...)
	if slices.Sort(one); len(one) != 8 || len(slices.Compact(one)) != 8 {
		t.Errorf("%d rows of two runs, %d orders", len(one), len(slices.Compact(one)))
	}
}

func TestFailuresAreCountedAndTriedAgain(t *testing.T) {
	f := func(name string, change func(*Config)) {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.breakAt = 500
			listen(t, s)
			c := base(s)
			// More flushes than may be unacknowledged, so that the agent meets
			// the closed connection.
			c.Agents, c.Metrics, c.Steps = 1, 1000, 2*maxUnacked
			change(&c)
			sum, j := send(t, s, c)
			if sum.Errors == 0 || len(s.opens) < 2 {
				t.Errorf("%d errors, %d connections, want errors and a second connection", sum.Errors,
					len(s.opens))
			}
			if !slices.ContainsFunc(j.Flushes, func(f Flush) bool { return f.State == Failed }) {
				t.Errorf("no flush failed: %+v", j.Flushes)
			}
			sent := expect(j, Sent, Acked, Failed)
			for at, w := range s.points {
				if sent[at] != w {
					t.Fatalf("the store has %x for %q at %d, which the journal does not", w, at.key, at.slot)
				}
			}
			sure := expect(j, Sent, Acked)
			for at, w := range sure {
				if s.points[at] != w {
					t.Fatalf("the store has %x for %q at %d, the journal is sure of %x", s.points[at], at.key,
						at.slot, w)
				}
			}
			if len(sure) == 0 {
				t.Error("no flush succeeded")
			}
		})
	}
	f("a connection per flush", func(c *Config) { c.CacheConnections = false })
	f("acknowledged", func(c *Config) { c.Ack = true })
}

func TestNoStoreIsAnError(t *testing.T) {
	s := listen(t, newStore())
	c := base(s)
	c.Agents, c.Steps = 1, 1
	s.close()
	sum, j := send(t, s, c)
	if sum.Errors != 1 || sum.Points != 0 || len(j.Flushes) != 0 {
		t.Errorf("summary %+v, %d flushes, want one error and nothing sent", sum, len(j.Flushes))
	}
}

func TestPublishedPreset(t *testing.T) {
	s := listen(t, newStore())
	c := base(s)
	c.Fast, c.Steps, c.Start = false, 0, time.Time{}
	c.Preset, c.Backfill, c.NoLive = Published, time.Hour, true
	c.Now = func() time.Time { return start }
	sum, j := send(t, s, c)
	compare(t, s.points, expect(j, Sent))
	if sum.Points != 3600*8 || len(s.opens) != 1 || s.opens[0] != "4 tachyon 2" {
		t.Errorf("%d points, streams %q, want %d into tachyon", sum.Points, s.opens, 3600*8)
	}
	key := "\x05cloud\x05zones\x03cpu\x05nwait\x1ee2be6f6c-2005-4f2d-aff9-f427b9"
	for _, slot := range []int64{start.Unix() - 3600, start.Unix() - 1} {
		if _, ok := s.points[place{key, slot}]; !ok {
			t.Errorf("no point of %q at slot %d", key, slot)
		}
	}
}

func TestSummaryInJSON(t *testing.T) {
	b, err := json.Marshal(Summary{Points: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"points", "points_per_s", "errors", "flush_p50_us", "flush_p99_us",
		"cpu_s", "seconds", "acked"} {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("%s has no %s", b, name)
		}
	}
}
