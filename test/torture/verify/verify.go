// Package verify reads everything back from a node, over the wire and over HTTP,
// and has the oracle judge it.
package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// Region says where damage may have taken points: never which values may be
// shown.
type Region struct {
	Slot func(s *oracle.Series, slot int64) bool
	Name func(s *oracle.Series) bool

	Event func(n uint32) bool // nil: no event may be missing
	Tags  bool                // changes of tags may be missing

	// Back: a part of the log is gone together with all that names what it held,
	// or its end looks like that of a crash: what was written there is as if it had
	// never been sent. It says whose deletion is written there; nil without such
	// damage.
	Back func(s *oracle.Series) bool
}

// excuses says whether damage explains a finding.
func (g *Region) excuses(s *oracle.Series, f oracle.Finding) bool {
	switch {
	case g == nil:
		return false
	case g.Back != nil && f.Class == oracle.Risen:
		return g.Back(s)
	case f.Class == oracle.Missing, f.Class == oracle.Alone, g.Back != nil && f.Class == oracle.Stale:
		return g.Slot(s, f.Slot)
	}
	return false
}

// Report is the outcome.
type Report struct {
	oracle.Verdict
	Names   int64
	Queries int64
	Lost    int64 // points that are missing where damage was
	Events  int64
	Tags    int64

	LostEvents, LostTags int64 // likewise
	Findings             []oracle.Finding
	Faults               int64 // findings, those beyond the first ones too
	Classes              map[oracle.Class]int64
}

// AllLost counts what is missing where damage was.
func (r *Report) AllLost() int64 { return r.Lost + r.LostEvents + r.LostTags }

const kept = 12

// Found adds a fault.
func (r *Report) Found(f oracle.Finding) {
	r.Faults++
	if r.Classes == nil {
		r.Classes = map[oracle.Class]int64{}
	}
	r.Classes[f.Class]++
	if len(r.Findings) < kept && r.Classes[f.Class] <= 4 {
		r.Findings = append(r.Findings, f)
	}
}

// Add adds what another comparison found.
func (r *Report) Add(o *Report) {
	r.Slots, r.Points, r.Set = r.Slots+o.Slots, r.Points+o.Points, r.Set+o.Set
	r.Names, r.Queries, r.Lost, r.Faults = r.Names+o.Names, r.Queries+o.Queries, r.Lost+o.Lost,
		r.Faults+o.Faults
	r.Events, r.LostEvents, r.Tags, r.LostTags = r.Events+o.Events, r.LostEvents+o.LostEvents,
		r.Tags+o.Tags, r.LostTags+o.LostTags
	for c, n := range o.Classes {
		if r.Classes == nil {
			r.Classes = map[oracle.Class]int64{}
		}
		r.Classes[c] += n
	}
	for _, f := range o.Findings {
		if len(r.Findings) < kept {
			r.Findings = append(r.Findings, f)
		}
	}
}

// Options of a comparison.
type Options struct {
	Settle bool    // the node was started again: what it shows decides what was in doubt
	Region *Region // nil: nothing may be missing
	Sample int     // series of each bucket that are asked for over HTTP
	Seed   uint64
}

// All compares everything. Nobody writes meanwhile. An error is one of
// connections, and not of answers.
func All(n *subject.Node, book *oracle.Book, opt Options) (*Report, error) {
	r := &Report{}
	c, err := dwire.Dial(n.TCP, subject.Patience)
	if err != nil {
		return r, err
	}
	defer c.Close()
	listed, err := c.Buckets()
	if err != nil {
		return r, err
	}
	rng := rand.New(rand.NewPCG(opt.Seed, 5))
	for _, b := range book.Buckets {
		if err := bucket(n, c, b, slices.Contains(listed, b.Name), opt, rng, r); err != nil {
			return r, fmt.Errorf("bucket %s: %w", b.Name, err)
		}
	}
	known := []string{"dalmatinerdb"}
	for _, b := range book.Buckets {
		known = append(known, b.Name)
	}
	if e := book.Events; e != nil {
		known = append(known, e.Bucket, book.Tags.Bucket)
		if err := events(n, c, slices.Contains(listed, e.Bucket), e, opt, r); err != nil {
			return r, fmt.Errorf("events: %w", err)
		}
		if err := tags(n, book.Tags, opt, r); err != nil {
			return r, fmt.Errorf("tags: %w", err)
		}
	}
	for _, name := range listed {
		if !slices.Contains(known, name) {
			r.Found(oracle.Finding{Class: oracle.Name, Text: "a bucket that nobody made: " + name})
		}
	}
	return r, nil
}

func bucket(n *subject.Node, c *dwire.Conn, b *oracle.Bucket, there bool, opt Options,
	rng *rand.Rand, r *Report) error {
	if opt.Settle {
		b.Decide(there)
	}
	switch {
	case (there != (b.State == oracle.Present)) && opt.Region != nil && opt.Region.Back != nil:
		return nil // its creation or deletion may be written there
	case there && b.State == oracle.Gone:
		r.Found(oracle.Finding{Class: oracle.Name, Text: "a deleted bucket is back: " + b.Name})
		return nil
	case !there && b.State == oracle.Present:
		r.Found(oracle.Finding{Class: oracle.Name, Text: "a bucket is missing: " + b.Name})
		return nil
	case !there || b.State != oracle.Present:
		return nil
	}
	b.Lane.Lock()
	defer b.Lane.Unlock()
	sample := map[int]bool{}
	for range min(opt.Sample, len(b.Series)) {
		sample[rng.IntN(len(b.Series))] = true
	}
	clock := bucketClock(b)
	for i, s := range b.Series {
		early := bucketClock(b)
		points, err := c.Get(b.Name, s.Key, b.First, b.Slots, b.HPTS)
		if err != nil {
			return err
		}
		clock = oracle.Clock{Hidden: early.Hidden, Shown: bucketClock(b).Shown}
		v := s.Judge(points, clock, opt.Settle, func(f oracle.Finding) {
			if opt.Region.excuses(s, f) {
				r.Lost++
				return
			}
			r.Found(f)
		})
		r.Slots, r.Points, r.Set = r.Slots+v.Slots, r.Points+v.Points, r.Set+v.Set
		values := points
		if b.HPTS {
			if values, err = alone(c, s, points, opt.Region, r); err != nil {
				return err
			}
		}
		if sample[i] && b.TTL == 0 && v.Set > 0 {
			if err := overHTTP(n, s, values, opt.Region != nil, rng, r); err != nil {
				return err
			}
		}
	}
	names, err := c.List(b.Name)
	if err != nil {
		return err
	}
	lost := func(*oracle.Series) bool { return false }
	if opt.Region != nil {
		lost = opt.Region.Name
	}
	r.Names += b.JudgeNames(names, clock, lost, r.Found)
	if opt.Settle {
		b.Settled()
	}
	return nil
}

// alone reads and judges the values of a series without their timestamps, as queries
// see them. Where damage took a timestamp its value is left out of the pairs, and
// stays here. It was counted as lost with the pairs.
func alone(c *dwire.Conn, s *oracle.Series, pairs []byte, region *Region,
	r *Report) ([]byte, error) {
	values, err := c.Get(s.Bucket.Name, s.Key, s.Bucket.First, s.Bucket.Slots, false)
	if err != nil {
		return nil, err
	}
	s.JudgeAlone(pairs, values, func(f oracle.Finding) {
		if !region.excuses(s, f) {
			r.Found(f)
		}
	})
	return values, nil
}

// bucketClock is what the lifetime hides now, with two points of room.
func bucketClock(b *oracle.Bucket) oracle.Clock {
	if b.TTL == 0 {
		return oracle.Clock{}
	}
	border := time.Now().UnixMilli()/b.Resolution - b.TTL
	return oracle.Clock{Hidden: border - 2, Shown: border + 3}
}
