package cluster

import (
	"encoding/binary"
	"math"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/intake"
)

// What of a commit goes out together at most.
const (
	batchRows  = 4096    // that a stream collects
	batchNames = 4 << 20 // bytes of keys
)

// stream takes the points of one sender for one bucket of the cluster. What it admits goes out in
// batches, at the latest with a commit.
type stream struct {
	c         *Cluster
	info      buckets.Info
	how       write.Options
	admission intake.Admission
	commits   *commitQueue
	number    uint64 // of commits

	lo, hi  uint64 // slots that are taken, while there are points
	points  rowBatch
	refused account.Counts // and those sent as unset
	names   int            // bytes of the keys of points
	order   order
	ended   bool
}

// Point takes one point: see wire.Points.
func (s *stream) Point(key []byte, slot uint64, raw uint64) {
	s.addTimestamped(key, slot, raw, s.info.SlotBegin(slot))
}

// Batch takes points that come in the order of the sender: see wire.Points.
func (s *stream) Batch(slot uint64, buf []byte) int { return s.match(slot, buf, kernel.MatchBatch) }

// Entries takes points that come in the order of the sender: see wire.Points.
func (s *stream) Entries(slot uint64, buf []byte) int {
	return s.match(slot, buf, kernel.MatchEntries)
}

func (s *stream) match(slot uint64, buf []byte, match match) int {
	if s.info.HPTS || s.how.Timestamps {
		return 0
	}
	if s.begin(); slot < s.lo || slot >= s.hi {
		return 0
	}
	size, names := s.points.match(&s.order, slot, buf, batchNames/4-s.names, match)
	s.names += names
	s.submitFull()
	return size
}

// begin prepares for the first point of those that go out together.
func (s *stream) begin() {
	if s.points.number == 0 {
		s.lo, s.hi = s.admission.Slots()
		s.order.period = s.c.names.Period()
	}
}

// Points takes consecutive points of one metric: see wire.Points.
func (s *stream) Points(key []byte, slot uint64, data []byte) {
	size := point.Size
	if s.how.Timestamps {
		size = intake.TimestampedSize
	}
	if n := uint64(len(data) / size); slot > math.MaxUint64-n {
		s.refused.Refused[account.Future] += n // its last slots would begin at 0 again
		return
	}
	for ; len(data) >= size; data, slot = data[size:], slot+1 {
		at := s.info.SlotBegin(slot)
		if s.how.Timestamps {
			at = binary.BigEndian.Uint64(data[point.Size:])
		}
		s.addTimestamped(key, slot, point.Get(data), at)
	}
}

// Append takes many points of any series.
func (s *stream) Append(points []write.Point) {
	for i := range points {
		p := &points[i]
		at := p.Time
		if at == 0 {
			at = s.info.SlotBegin(p.Slot)
		}
		s.addTimestamped(p.Key, p.Slot, p.Word, at)
	}
}

func (s *stream) addTimestamped(key []byte, slot, raw, at uint64) {
	s.begin()
	word, timestamp, refused, ok := s.admission.Point(key, slot, raw, at, s.lo, s.hi)
	switch {
	case !ok:
		s.refused.Refused[refused]++
		return
	case word == point.Unset:
		s.refused.Unset++ // it erases nothing, so there is nothing to copy
		return
	}
	before := s.order.at
	id, place := s.order.series(key)
	if place < 0 || s.order.at != before || s.names == 0 { // else the name of the last point
		s.names += len(key)
	}
	s.points.add(&s.order, id, place, slot, replication.Value{Word: word, Time: timestamp})
	s.submitFull()
}

// submitFull submits the points if no more go out together.
func (s *stream) submitFull() {
	if s.points.number == batchRows || s.names >= batchNames/4 {
		s.submit()
	}
}

// submit gives the points to the protocol, or refuses them.
func (s *stream) submit() {
	if s.points.number == 0 {
		return
	}
	columns, rows := s.points.take(&s.order)
	names := s.names
	s.names = 0
	count := replication.Points(columns, rows)
	n := uint64(count)
	switch {
	case s.admission.IsDeleted():
		s.refused.Refused[account.BucketDeleted] += n
	case s.admission.DiskFull(): // there would be no room for the account
		s.refused.Refused[account.DiskFull] += n
	case !s.admission.Wait(s.how.NeverWait), !s.c.commits.reserve(count, s.how.NeverWait):
		s.refused.Refused[account.Overload] += n
	default:
		s.commits.add(outBatch{columns: columns, rows: rows, points: count, names: names})
	}
}

// Commit hands over everything that came so far: see write.Stream.
func (s *stream) Commit() (write.Token, error) {
	if err := s.c.commits.open(); err != nil {
		return write.Token{}, err
	}
	s.submit()
	var refusals write.Token
	if s.refused.ReceivedPoints() > 0 {
		var err error
		if refusals, err = s.c.o.Store.CountPoints(s.info.ID, &s.refused); err != nil {
			return write.Token{}, err
		}
	}
	s.number++
	t := s.commits.commit(s.number, s.refused, refusals)
	s.refused = account.Counts{}
	return t, nil
}

// HasPending reports whether anything waits for Commit.
func (s *stream) HasPending() bool {
	return s.points.number > 0 || s.refused.ReceivedPoints() > 0 || s.commits.hasPending()
}

// Close commits what is pending and ends the stream.
func (s *stream) Close() error {
	if s.ended {
		return nil
	}
	s.ended = true
	defer s.order.forget()
	if !s.HasPending() {
		return nil
	}
	_, err := s.Commit()
	return err
}
