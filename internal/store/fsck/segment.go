package fsck

import (
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/recompute"
)

// checkSegments verifies the committed segments; those of a directory that is not
// in use are the ones that a start would serve.
func (c *checker) checkSegments() {
	c.progress.TotalFiles = c.report.Files + int64(len(c.state.Segments))
	for i := range c.state.Segments {
		m := &c.state.Segments[i]
		c.begin(datadir.Segment(m.Kind, m.Seq))
		if c.fs.Err() != nil {
			return
		}
		c.checkSegment(datadir.Segment(m.Kind, m.Seq), m)
	}
	c.checkUnlisted()
}

// gone says whether a running store has dropped a segment since the check read
// the MANIFEST.
func (c *checker) gone(seq uint64) bool {
	if c.running == nil {
		return false
	}
	state, _, err := manifest.Inspect(c.fs, c.dir, c.id)
	return err == nil && !state.HasSegment(seq)
}

// checkSegment verifies one file.
func (c *checker) checkSegment(file string, m *manifest.Segment) {
	r, err := segment.Open(c.fs, c.path(file))
	if err != nil {
		if !oserror.IsNotExist(err) || !c.gone(m.Seq) {
			c.segmentError(file, err)
		}
		return
	}
	defer r.Close()
	c.report.Files++
	c.report.Blocks += int64(r.Blocks())
	info := r.Info()
	if m.Bytes != info.Size || m.Points != info.Points {
		c.damaged(Damage{File: file, Part: "size", Expected: fmt.Sprintf("%d bytes, %d points in the "+
			"MANIFEST", m.Bytes, m.Points),
			Found: fmt.Sprintf("%d bytes, %d points", info.Size, info.Points)})
	}
	if err := (origin.File{Directory: c.id, Number: m.Seq}).Check(r.Origin()); err != nil {
		c.damaged(Damage{File: file, Part: "file", Detail: err.Error()})
	} else if m.Sum != info.Sum {
		c.damaged(Damage{
			File:     file,
			Part:     "sum",
			Expected: fmt.Sprintf("%08x in the MANIFEST", m.Sum),
			Found:    fmt.Sprintf("%08x", info.Sum),
		})
	}
	verr := r.Verify()
	c.segmentError(file, verr)
	timestamps, err := r.Timestamps()
	c.segmentError(file, err)
	s := segmentCheck{
		c:          c,
		file:       file,
		r:          r,
		timestamps: timestamps,
		purged:     uint64(info.Generation),
		named:      c.named,
	}
	if m != nil {
		s.purged, s.named = m.PurgedThrough(), c.named && c.older[m.Seq]
	}
	err = r.Each(s.chunk)
	c.segmentError(file, err)
	s.finishSeries()
	for _, d := range s.wrong {
		if err == nil { // else it is of chunks that could not be read
			c.damaged(d)
		}
	}
	if verr == nil && err == nil && s.points != info.Points {
		c.damaged(Damage{File: file, Offset: info.Size, Part: "footer",
			Expected: fmt.Sprintf("%d points", info.Points),
			Found:    fmt.Sprintf("%d in the chunks", s.points)})
	}
	c.segmentError(file, r.Series(s.identity))
	if s.unnamed > 0 {
		c.damaged(Damage{File: file, Part: "series", Expected: "the catalogue names all that have chunks",
			Found: fmt.Sprintf("%d without a name, hash %s among them", s.unnamed, s.example)})
	}
}

// segmentError adds the damage that a call of a reader found.
func (c *checker) segmentError(file string, err error) {
	if err == nil {
		return
	}
	damages := segment.Damages(err)
	for _, d := range damages {
		out := Damage{File: file, Offset: d.Offset, Length: d.Length, Part: d.Part, Detail: d.Detail}
		if d.Detail == "" {
			out.Expected, out.Found = fmt.Sprintf("CRC-32C %08x", d.Want), fmt.Sprintf("%08x", d.Got)
		}
		c.damaged(out)
	}
	if len(damages) == 0 {
		c.unreadable(file, err)
	}
}

// segmentCheck looks at what is inside the blocks of one segment.
type segmentCheck struct {
	c          *checker
	file       string
	r          *segment.Reader
	timestamps segment.Timestamps
	points     int64
	rollups    recompute.Rollups
	wrong      []Damage // rollups, at most MaxDamages

	bucket  uint64
	hash    segment.Hash
	any     bool
	chunks  int
	unnamed int
	example segment.Hash
	purged  uint64 // of the segment
	named   bool   // the catalogue has all of its names, if they are not lost
	words   [chunk.Slots]uint64
}

// chunk decodes a chunk and compares its header with what the words give (I4).
func (s *segmentCheck) chunk(bucket uint64, h segment.Hash, number int64, data []byte) error {
	if !s.any || s.bucket != bucket || s.hash != h {
		s.finishSeries()
		s.bucket, s.hash, s.any, s.chunks = bucket, h, true, 0
	}
	s.c.report.Chunks++
	s.chunks++
	bad := func(part, expected, found string) {
		s.c.damaged(Damage{File: s.file, Length: int64(len(data)), Part: part, Expected: expected,
			Found:  found,
			Detail: fmt.Sprintf("chunk %d of series %s in bucket %d", number, h, bucket)})
	}
	clear(s.words[:])
	header, err := chunk.ParseHeader(data)
	if err == nil {
		err = chunk.DecodeRange(s.words[:], data, 0)
	}
	if err != nil {
		bad("chunk", "an encoded chunk", err.Error())
		return nil
	}
	want := recompute.Header(&s.words)
	if !s.timestamps.Is(bucket, h) {
		points := int64(recompute.Points(&s.words))
		s.points += points
		s.c.report.Points += points
	}
	if !recompute.Equal(&want, &header) {
		bad("aggregates of a chunk", fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", header))
	}
	if info := s.r.Info(); info.WindowChunks > 0 {
		s.rollups.Add(&want, &s.words, info.WindowFirst, number-info.WindowFirst)
	}
	return nil
}

// finishRollups compares the rollups of the series that ends with what its
// chunks give (I4).
func (s *segmentCheck) finishRollups() {
	info := s.r.Info()
	for l := segment.Small; s.any && l <= segment.Large &&
		l.Chunks() <= int64(info.WindowChunks); l++ {
		var got [segment.MaxSpans]chunk.Header
		var digests [segment.MaxSpans]uint64
		spans, _, err := s.r.Rollups(l, s.bucket, s.hash, &got)
		if err != nil || spans == 0 && s.chunks < segment.FewChunks {
			continue
		}
		if _, _, err = s.r.RollupDigests(l, s.bucket, s.hash, &digests); err != nil {
			continue
		}
		for i := range info.WindowChunks / uint32(l.Chunks()) {
			want := s.rollups.Header(l, int(i))
			if spans>>i&1 == 0 {
				got[i] = chunk.Header{}
			}
			unit := info.WindowFirst + int64(i)*l.Chunks()
			if !recompute.Equal(want, &got[i]) {
				s.wrongRollup("rollups", l, unit, fmt.Sprintf("%+v", *want), fmt.Sprintf("%+v", got[i]))
			}
			if digest := s.rollups.Digest(l, int(i)); digest != digests[i] {
				s.wrongRollup("rollups, digest", l, unit, fmt.Sprintf("%016x", digest),
					fmt.Sprintf("%016x", digests[i]))
			}
		}
	}
	s.rollups = recompute.Rollups{}
}

// wrongRollup notes what a rollup says of the chunks from first on.
func (s *segmentCheck) wrongRollup(part string, l segment.Rollup, first int64, expected,
	found string) {
	if len(s.wrong) < MaxDamages {
		s.wrong = append(s.wrong, Damage{File: s.file, Part: part, Expected: expected, Found: found,
			Detail: fmt.Sprintf("%d chunks from %d on of series %s in bucket %d", l.Chunks(), first, s.hash,
				s.bucket)})
	}
}

// finishSeries ends a series: it compares its rollups and looks for its name.
func (s *segmentCheck) finishSeries() {
	s.finishRollups()
	if !s.any || !s.named || s.c.hasName(metric.SeriesID(s.hash)) || !s.c.alive(s.bucket) ||
		s.c.hidden(s.bucket, s.hash, s.purged) {
		return
	}
	s.c.unnamed[metric.SeriesID(s.hash).Value()] = true
	s.unnamed++
	s.example = s.hash
}

// identity compares a name with its hash and with the catalogue.
func (s *segmentCheck) identity(e segment.Series) error {
	if e.DeleteSequence > 0 {
		return nil // a series that was deleted has no name
	}
	id, ok := identity(&e)
	if !ok {
		s.c.damaged(Damage{File: s.file, Part: "series " + metric.Text(e.Key),
			Expected: "hash " + segment.Hash(id).String(), Found: e.Hash.String()})
		return nil
	}
	switch {
	case !s.named || !s.c.alive(e.Bucket):
	case !s.c.hasName(id):
		s.c.unlisted = append(s.c.unlisted, unlisted{s.file, e.Hash})
	case max(e.Incarnation, s.c.lives.Get(id.Value())) <= s.c.state.RememberAfter:
		// It expired, was deleted and began anew: its name may be there from before.
	case e.Incarnation < s.c.lives.Get(id.Value()) && e.Since < s.c.begun[id.Value()]:
		// It was deleted and began anew: a merge kept its name until a flush had committed that.
	case e.Incarnation != s.c.lives.Get(id.Value()) && !s.c.hidden(e.Bucket, e.Hash, s.purged):
		s.c.damaged(Damage{File: s.file, Part: "incarnation of series " + metric.Text(e.Key),
			Expected: fmt.Sprintf("%d, as in the catalogue", s.c.lives.Get(id.Value())),
			Found:    fmt.Sprint(e.Incarnation)})
	}
	return nil
}
