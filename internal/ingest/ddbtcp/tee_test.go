package ddbtcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write"
)

// tee is a target that sends every point to two stores, as one of a cluster sends
// it to several nodes: it takes no bytes of the wire by itself, its tokens stand for a
// position in each log, and what became of the points it says only when both copies
// are durable.
type tee struct {
	mu      sync.Mutex
	nodes   [2]write.Target
	commits []*teeCommit // by position, from 1
}

type teeCommit struct {
	token    write.Token
	tokens   [2]write.Token
	counts   [2]account.Counts
	report   func(write.Token, account.Counts)
	reported bool
	stream   *teeStream
}

func (t *tee) all() [2]write.Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nodes
}

func (t *tee) EnsureBucket(name string, form buckets.Form) (info buckets.Info, err error) {
	for _, n := range t.all() {
		if info, err = n.EnsureBucket(name, form); err != nil {
			return buckets.Info{}, err
		}
	}
	return info, nil
}

func (t *tee) Durable() bool { return t.all()[0].Durable() && t.all()[1].Durable() }

func (t *tee) Open(bucket buckets.Info, how write.Options) (write.Stream, error) {
	s := &teeStream{t: t, report: how.Report}
	for i, n := range t.all() {
		how.Report = func(_ write.Token, c account.Counts) { s.counts[i] = c }
		var err error
		if s.streams[i], err = n.Open(bucket, how); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// WaitDurable waits for both copies, then reports what has not been reported yet.
func (t *tee) WaitDurable(ctx context.Context, token write.Token) error {
	if token.Position == 0 {
		return nil
	}
	t.mu.Lock()
	commits := slices.Clone(t.commits[:token.Position])
	t.mu.Unlock()
	last := commits[len(commits)-1]
	for i, n := range t.all() {
		if err := n.WaitDurable(ctx, last.tokens[i]); err != nil {
			return err
		}
	}
	for _, c := range commits {
		if c.stream == last.stream && !c.reported && c.report != nil {
			c.reported = true
			c.report(c.token, c.counts[0])
		}
	}
	return nil
}

type teeStream struct {
	wire.PointByPoint
	t       *tee
	streams [2]write.Stream
	counts  [2]account.Counts // of the commit under way
	report  func(write.Token, account.Counts)
	commits uint64
}

func (s *teeStream) Point(key []byte, slot, raw uint64) {
	for _, x := range s.streams {
		x.Point(key, slot, raw)
	}
}

func (s *teeStream) Points(key []byte, slot uint64, data []byte) {
	for _, x := range s.streams {
		x.Points(key, slot, data)
	}
}

func (s *teeStream) Append(points []write.Point) {
	for _, x := range s.streams {
		x.Append(points)
	}
}

func (s *teeStream) Commit() (write.Token, error) {
	c := &teeCommit{report: s.report, stream: s}
	for i, x := range s.streams {
		var err error
		if c.tokens[i], err = x.Commit(); err != nil {
			return write.Token{}, err
		}
	}
	s.commits++
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	c.counts = s.counts
	c.token = write.Token{Position: uint64(len(s.t.commits) + 1), Commit: s.commits}
	s.t.commits = append(s.t.commits, c)
	return c.token, nil
}

func (s *teeStream) HasPending() bool {
	return s.streams[0].HasPending() || s.streams[1].HasPending()
}

func (s *teeStream) Close() error { return errors.Join(s.streams[0].Close(), s.streams[1].Close()) }

// A target that sends points to two nodes, and knows late what became of them, fits
// behind the protocol: acknowledgements say what they say with one store, and both
// stores hold everything that was acknowledged.
func TestTwoNodesBehindTheProtocol(t *testing.T) {
	so := storetest.Options()
	so.WALSync = wal.Always
	other := storetest.Open(t, so)
	var both *tee
	f := newFixture(t, func(_ *store.Options, o *Options) {
		both = &tee{nodes: [2]write.Target{nil, other.Intake()}}
		o.Points = both
	})
	both.mu.Lock()
	both.nodes[0] = f.store.Intake()
	both.mu.Unlock()
	s := f.openAcked()
	slot := time.Now().Unix() - 60
	keys := make([][]byte, 300) // more than a group
	for i := range keys {
		keys[i] = metric.AppendPart(nil, string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	const rounds = 5
	for round := range int64(rounds) {
		if err := s.BatchStart(slot + round); err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if err := s.BatchPoint(k, point.FromInt(int64(i)+round)); err != nil {
				t.Fatal(err)
			}
		}
		// a commit that is not acknowledged by itself
		if err := errors.Join(s.BatchEnd(), s.Flush()); err != nil {
			t.Fatal(err)
		}
		// too far ahead
		if err := s.Points(keys[0], slot+1_000_000, make([]uint64, round)...); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FlushAck(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range uint64(rounds) {
		ack, err := s.ReadAck()
		if err != nil {
			t.Fatal(err)
		}
		if ack.Received != uint64(len(keys))+round || ack.Refused != round {
			t.Errorf("acknowledgement %d: %d received, %d refused", round, ack.Received, ack.Refused)
		}
	}
	for i, st := range []*store.Store{f.store, other} {
		checkTeed(t, i, st, keys, slot, rounds)
	}
}

// checkTeed checks that one of the stores has every point and counted it.
func checkTeed(t *testing.T, i int, st *store.Store, keys [][]byte, slot int64, rounds int) {
	info, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	for n, k := range keys {
		words := make([]uint64, rounds)
		if err := st.Read(t.Context(), info, k, slot, words); err != nil {
			t.Fatal(err)
		}
		for round, w := range words {
			if w != point.FromInt(int64(n+round)) {
				t.Fatalf("store %d: slot %d of series %d holds %x", i, round, n, w)
			}
		}
	}
	if c := st.Account().Total(info.ID); c.Accepted != uint64(rounds*len(keys)) ||
		c.Refused[account.Future] != 10 {
		t.Errorf("store %d counts %+v", i, c)
	}
}
