package cluster

import (
	"encoding/binary"
	"math"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/coordinator"
	"dalmatiner/internal/intake"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/wire"
)

// What of a commit goes out together at most.
const (
	batchRows  = 4096    // that a stream collects
	batchNames = 4 << 20 // bytes of keys
)

// stream takes the points of one sender for one bucket of the cluster. What it admits goes out in
// batches, at the latest with a commit.
type stream struct {
	wire.PointByPoint // every point is a row, so none are taken together

	c         *Cluster
	info      buckets.Info
	how       coordinator.Options
	admission intake.Admission
	commits   *commitQueue
	number    uint64 // of commits

	lo, hi  uint64 // slots that are taken, while there are rows
	rows    []replication.Row
	refused account.Counts // and those sent as unset
	key     []byte         // of the last point
	id      metric.SeriesID
	names   int    // bytes of the keys of rows
	period  uint32 // of the registry of names, when the first of the rows came
	order   []noted
	at      int                        // in order, of the series that is expected
	places  map[metric.SeriesID]uint32 // of series in order
	ended   bool
}

// noted is a series of a sender, which sends them in one order again and again.
type noted struct {
	key    []byte
	id     metric.SeriesID
	period uint32 // in which its name was noted
}

// The bounds of what is known of orders. What is not known is computed again.
const (
	orderSeries = 1 << 16  // of a stream
	orderBytes  = 64 << 20 // of all streams
	notedBytes  = 96       // with its place
)

// Point takes one point: see wire.Points.
func (s *stream) Point(key []byte, slot uint64, raw uint64) {
	s.timestamped(key, slot, raw, s.info.SlotBegin(slot))
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
		s.timestamped(key, slot, point.Get(data), at)
	}
}

// Append takes many points of any series.
func (s *stream) Append(points []coordinator.Point) {
	for i := range points {
		p := &points[i]
		at := p.Time
		if at == 0 {
			at = s.info.SlotBegin(p.Slot)
		}
		s.timestamped(p.Key, p.Slot, p.Word, at)
	}
}

func (s *stream) timestamped(key []byte, slot, raw, at uint64) {
	if len(s.rows) == 0 {
		s.lo, s.hi = s.admission.Slots()
		s.period = s.c.names.Period()
	}
	word, timestamp, refused, ok := s.admission.Point(key, slot, raw, at, s.lo, s.hi)
	switch {
	case !ok:
		s.refused.Refused[refused]++
		return
	case word == point.Unset:
		s.refused.Unset++ // it erases nothing, so there is nothing to copy
		return
	}
	if len(s.key) == 0 || string(s.key) != string(key) {
		s.key = append(s.key[:0], key...)
		s.id = s.series(key)
		s.names += len(key)
	}
	s.rows = append(s.rows, replication.Row{Series: s.id, Slot: slot, Value: replication.Value{Word: word, Time: timestamp}})
	if len(s.rows) == batchRows || s.names >= batchNames/4 {
		s.submit()
	}
}

// series returns the id of a series, whose name is known in this period.
func (s *stream) series(key []byte) metric.SeriesID {
	if s.at == len(s.order) {
		s.at = 0 // it begins anew
	}
	if s.at < len(s.order) && string(s.order[s.at].key) == string(key) {
		n := &s.order[s.at]
		if s.at++; n.period != s.period {
			n.key, n.period = s.c.names.Note(n.id, s.info.ID, key), s.period
		}
		return n.id
	}
	id := metric.ValuesOf(s.info.ID, key, s.info.HPTS)
	n := noted{s.c.names.Note(id, s.info.ID, key), id, s.period}
	at, known := s.places[id]
	switch {
	case n.key == nil: // no metric can have it
	case known:
		s.order[at], s.at = n, int(at)+1
	case len(s.order) == orderSeries:
	case s.c.ordered.Add(notedBytes) > orderBytes:
		s.c.ordered.Add(-notedBytes)
	default:
		if s.places == nil {
			s.places = make(map[metric.SeriesID]uint32)
		}
		s.places[id] = uint32(len(s.order))
		s.order = append(s.order, n)
		s.at = len(s.order)
	}
	return id
}

// submit gives the rows to the protocol, or refuses them.
func (s *stream) submit() {
	rows, names := s.rows, s.names
	s.rows, s.key, s.names = nil, s.key[:0], 0 // a name is noted at least once a batch
	if len(rows) == 0 {
		return
	}
	n := uint64(len(rows))
	switch {
	case s.admission.Gone():
		s.refused.Refused[account.BucketDeleted] += n
	case s.admission.DiskFull(): // there would be no room for the account
		s.refused.Refused[account.DiskFull] += n
	case !s.admission.Wait(s.how.NeverWait), !s.c.commits.reserve(len(rows), s.how.NeverWait):
		s.refused.Refused[account.Overload] += n
	default:
		s.commits.add(rows, names)
	}
}

// Commit hands over everything that came so far: see coordinator.Stream.
func (s *stream) Commit() (coordinator.Token, error) {
	if err := s.c.commits.open(); err != nil {
		return coordinator.Token{}, err
	}
	s.submit()
	var refusals coordinator.Token
	if s.refused.Received() > 0 {
		var err error
		if refusals, err = s.c.o.Store.CountPoints(s.info.ID, &s.refused); err != nil {
			return coordinator.Token{}, err
		}
	}
	s.number++
	t := s.commits.commit(s.number, s.refused, refusals)
	s.refused = account.Counts{}
	return t, nil
}

// Pending reports whether anything waits for Commit.
func (s *stream) Pending() bool {
	return len(s.rows) > 0 || s.refused.Received() > 0 || s.commits.pending()
}

// Close commits what is pending and ends the stream.
func (s *stream) Close() error {
	if s.ended {
		return nil
	}
	s.c.ordered.Add(-notedBytes * int64(len(s.order)))
	s.order, s.places, s.at, s.ended = nil, nil, 0, true
	if !s.Pending() {
		return nil
	}
	_, err := s.Commit()
	return err
}
