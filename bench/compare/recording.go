package compare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/load"
)

// playing is a way in which a competitor takes recordings.
type playing struct {
	what string // what it keeps, where there are several ways
	send func(ctx context.Context, s *instance, c *corpus.Corpus) (points int64, err error)
	// prepare makes what it needs before the first point; or nil.
	prepare func(ctx context.Context, s *instance) error
}

// recorded is the space a recording takes.
type recorded struct {
	what  string  // of the way
	name  string  // of the recording
	space float64 // bytes per point
	err   error
}

// bound is what a program for compression makes of a recording's columns.
type bound struct {
	program, name string
	space         float64
}

// recordings sends every recording to a new server, and takes its space.
func (m *measurer) recordings(ctx context.Context, p *competitor, out *outcome) {
	for _, way := range p.playings {
		for _, c := range m.corpora {
			r := recorded{what: way.what, name: c.Name}
			r.err = m.with(ctx, p, func(s *instance) (err error) {
				if way.prepare != nil {
					if err := way.prepare(ctx, s); err != nil {
						return err
					}
				}
				points, err := way.send(ctx, s, c)
				if err != nil {
					return err
				}
				r.space, err = s.spaceOf(ctx, points, c.Points(), out)
				return err
			})
			m.Logf("  recording %s %s: %.4g bytes per point%v", r.name, r.what, r.space, orNothing(r.err))
			out.recorded = append(out.recorded, r)
		}
	}
}

// loadCorpora reads all recordings, and moves them to where stores have closed
// them.
func (m *measurer) loadCorpora(dir string) error {
	names, err := corpus.Names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := corpus.Load(dir, name)
		if err != nil {
			return err
		}
		load.Ready(c)
		m.corpora = append(m.corpora, c)
	}
	return nil
}

// bounds compresses the recordings with what the machine has.
func (m *measurer) bounds(ctx context.Context) (out []bound) {
	for _, program := range [][]string{{"xz", "-9e", "--threads=1"}, {"zstd", "-19"}} {
		for _, c := range m.corpora {
			if n, err := corpus.Compressed(ctx, c, program[0], program[1:]...); err == nil {
				out = append(out, bound{program[0] + " " + program[1], c.Name,
					float64(n) / float64(c.Points())})
			}
		}
	}
	return out
}

// playStream is a playing over the store's own stream.
func playStream(what string, timestamped bool) playing {
	return playing{what: what, send: func(ctx context.Context, s *instance,
		c *corpus.Corpus) (int64, error) {
		p := load.Playback{Bucket: ddbBucket, Timestamped: timestamped}
		return p.Send(ctx, s.addr("tcp"), c)
	}}
}

// part is samples of a recording: of each series those from from[i] on, before
// to[i].
type part struct {
	*corpus.Corpus
	from, to []int
}

// playParts is a playing of messages that hold a stretch of time of all series
// each. advance is whether a point hours further on follows.
func playParts(dial func(context.Context, *instance) (conn, error),
	encode func(dst []byte, p *part) ([]byte, error), advance bool) playing {
	return playing{send: func(ctx context.Context, s *instance, c *corpus.Corpus) (int64, error) {
		conn, err := dial(ctx, s)
		if err != nil {
			return 0, err
		}
		defer conn.abandon()
		points, err := sendParts(ctx, conn, encode, c)
		if err == nil && advance {
			_, last := c.Span()
			later := &corpus.Corpus{Series: []corpus.Series{{
				Labels: c.Series[0].Labels,
				Times:  []int64{last + 1000*advanceSeconds},
				Values: []string{"0"},
			}}}
			var more int64
			more, err = sendParts(ctx, conn, encode, later)
			points += more
		}
		if err != nil {
			return 0, err
		}
		return points, conn.finish(ctx)
	}}
}

func sendParts(ctx context.Context, c conn, encode func([]byte, *part) ([]byte, error),
	rec *corpus.Corpus) (points int64, err error) {
	p := &part{rec, make([]int, len(rec.Series)), make([]int, len(rec.Series))}
	var buf []byte
	waiting := 0
	send := func() error {
		if buf, err = encode(buf[:0], p); err != nil {
			return err
		}
		points += int64(waiting)
		waiting = 0
		copy(p.from, p.to)
		return c.send(ctx, buf)
	}
	err = rec.Each(func(_ int64, series, index []int) error {
		for k, i := range series {
			p.to[i] = index[k] + 1
		}
		if waiting += len(series); waiting < messagePoints {
			return nil
		}
		return send()
	})
	if err != nil || waiting == 0 {
		return points, err
	}
	return points, send()
}

// remoteWritePart is a part as a request of remote write 1.0.
func remoteWritePart(dst []byte, p *part) ([]byte, error) {
	var request, series []byte
	for i := range p.Series {
		s := &p.Series[i]
		if p.from[i] == p.to[i] {
			continue
		}
		series = series[:0]
		for _, l := range s.Labels {
			series = appendLabel(series, l.Name, l.Value)
		}
		for k := p.from[i]; k < p.to[i]; k++ {
			v, err := strconv.ParseFloat(s.Values[k], 64)
			if err != nil {
				return nil, err
			}
			series = appendSample(series, v, s.Times[k])
		}
		request = appendBytes(request, seriesField, series)
	}
	return s2.EncodeSnappy(dst[:cap(dst)], request), nil
}

// influxPart is a part in the line protocol of InfluxDB: one measurement, the
// labels as tags, the value a double.
func influxPart(dst []byte, p *part) ([]byte, error) {
	for i := range p.Series {
		s := &p.Series[i]
		prefix := []byte("metrics")
		for _, l := range s.Labels {
			if l.Value != "" { // InfluxDB has no empty ones
				prefix = fmt.Appendf(prefix, ",%s=%s", influxText(l.Name), influxText(l.Value))
			}
		}
		for k := p.from[i]; k < p.to[i]; k++ {
			if _, err := strconv.ParseFloat(s.Values[k], 64); err != nil {
				return nil, err
			}
			dst = fmt.Appendf(dst, "%s value=%s %d\n", prefix, s.Values[k], s.Times[k]*1e6)
		}
	}
	return dst, nil
}

// questPart is a part as lines for a table of series, values and times.
func questPart(dst []byte, p *part) ([]byte, error) {
	for i := range p.Series {
		s := &p.Series[i]
		name := influxText(s.String())
		for k := p.from[i]; k < p.to[i]; k++ {
			if _, err := strconv.ParseFloat(s.Values[k], 64); err != nil {
				return nil, err
			}
			dst = fmt.Appendf(dst, "metrics,series=%s value=%s %d\n", name, s.Values[k], s.Times[k]*1e6)
		}
	}
	return dst, nil
}

// clickHousePart is a part as CSV of series, value, time.
func clickHousePart(dst []byte, p *part) ([]byte, error) {
	for i := range p.Series {
		s := &p.Series[i]
		name := strings.ReplaceAll(s.String(), `"`, `""`)
		for k := p.from[i]; k < p.to[i]; k++ {
			dst = fmt.Appendf(dst, "\"%s\",%s,%d.%03d\n", name, s.Values[k], s.Times[k]/1000,
				s.Times[k]%1000)
		}
	}
	return dst, nil
}

// influxText escapes a tag.
func influxText(s string) []byte {
	var out []byte
	for i := range len(s) {
		if s[i] == ' ' || s[i] == ',' || s[i] == '=' || s[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return out
}

// spaceOf flushes and merges, checks that all that was sent is there, stops the
// server and returns what it keeps in bytes per point.
func (s *instance) spaceOf(ctx context.Context, sent, points int64, out *outcome) (float64, error) {
	idle, err := s.settle(ctx)
	if err != nil {
		return 0, err
	}
	if !idle {
		out.notes = append(out.notes, fmt.Sprintf("still busy %v after a load", settleTimeout))
	}
	if err := s.counted(ctx, sent); err != nil {
		return 0, err
	}
	// Once it has ended: some have files that are longer while they run.
	if err := s.stop(); err != nil {
		return 0, err
	}
	bytes, err := usage(s.dir, append([]string{"log"}, s.competitor.logs...))
	return float64(bytes) / float64(points), err
}

// recordingErrors joins what failed of the recordings.
func (o *outcome) recordingErrors() error {
	var errs []error
	for _, r := range o.recorded {
		if r.err != nil {
			errs = append(errs, fmt.Errorf("recording %s: %w", r.name, r.err))
		}
	}
	return errors.Join(errs...)
}
