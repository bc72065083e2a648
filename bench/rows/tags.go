package rows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
	"dalmatiner/internal/api/tagline"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/local"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/tags"
)

const (
	tagStartBudget  = 2   // seconds
	tagBytesBudget  = 200 // of memory a series, beside its name
	tagImportLeast  = 300 // thousand series a second
	tagIngestBudget = 1.1 // processor time of a point with tags ÷ without; 1 but for noise

	tagGroups  = 489 // of columns of each connection: 1 M series
	tagRows    = 10  // sent of every series at a time
	tagPart    = 768 << 10
	tagSends   = 5  // of known series, of which the median counts
	tagLookups = 21 // of each kind, of which the median counts
)

// tagValues is how many values each of the five tags has.
var tagValues = [...]int{10, 100, 1000, 10_000, 100_000}

// tagLookupRows are what is looked for, and how long it may take in milliseconds.
var tagLookupRows = []struct {
	name   string
	where  string
	budget float64
}{
	{"a value of 100 series", "tag3 = '77'", 1},
	{"a value of 100 k series", "tag0 = '3'", 20},
	{"three values", "tag0 = '7' AND tag1 = '77' AND tag2 = '777'", 5},
	{"patterns of parts in the middle of the name", "ddb:part_2 LIKE '*3' AND ddb:part_4 LIKE '*77'",
		50},
	{"a regular expression over 100 k values", "tag4 =~ '[0-9]*777'", 50},
}

// taggedSeries is a million series under way, on a server that is started again now and then.
type taggedSeries struct {
	*bench
	s    *server.Server
	data string
	c    haggar.Config
	area string
	n    int
}

// tags gives 1 M series five tags each, and takes the time of what tags are for, and of what they
// must not make slower. Ingest is compared between two servers that were started with the series.
func (b *bench) tags(ctx context.Context) error {
	data := filepath.Join(b.Dir, "tags")
	s, err := b.Start(data)
	if err != nil {
		return err
	}
	groups := tagGroups
	if b.Quick {
		groups /= 10
	}
	r := &taggedSeries{
		bench: b,
		s:     s,
		data:  data,
		c:     load.Uniform(load.Connections, groups*load.GroupWidth, tagRows),
		n:     load.Connections * groups * load.GroupWidth,
	}
	defer func() { r.s.Remove() }()
	r.c.Start = r.c.Start.Add(-time.Hour)
	r.area = fmt.Sprintf("tags, %d k series of five", r.n/1000)
	if _, err := r.send(ctx); err != nil { // new series
		return err
	}
	if err := r.restart("start, without tags", 0); err != nil {
		return err
	}
	without, err := r.ingest(ctx, "without tags")
	if err != nil {
		return err
	}
	if err := r.importTags(ctx); err != nil {
		return err
	}
	if err := r.restart("start, with tags", tagStartBudget); err != nil {
		return err
	}
	if err := r.memory(ctx); err != nil {
		return err
	}
	with, err := r.ingest(ctx, "with tags")
	if err != nil {
		return err
	}
	b.table.Add(report.Figure{
		Area:   r.area,
		What:   "ingest of known series, with tags ÷ without",
		Unit:   "×",
		Value:  with / without,
		Budget: tagIngestBudget,
	}.
		Because("processor time, of a point; each behind a start and %d points of each series", tagRows))
	if err := r.s.Stop(); err != nil {
		return err
	}
	return b.tagLookups(ctx, data, &r.c, r.area, r.n)
}

// send sends points of all series, and returns the processor time of each in nanoseconds.
func (r *taggedSeries) send(ctx context.Context) (nanos float64, err error) {
	before, err := r.s.CPU()
	if err != nil {
		return 0, err
	}
	_, err = load.Send(ctx, r.Env, r.s, r.c)
	r.c.Start = r.c.Start.Add(tagRows * time.Second)
	if err != nil {
		return 0, err
	}
	after, err := r.s.CPU()
	return float64(after.Sub(before).Sum()) / float64(tagRows*r.n), err
}

// ingest adds what a point of known series takes on a server that has just been started. The first
// points define where the series are: they do not count.
func (r *taggedSeries) ingest(ctx context.Context, how string) (nanos float64, err error) {
	if _, err := r.send(ctx); err != nil {
		return 0, err
	}
	var all []float64
	for range tagSends {
		one, err := r.send(ctx)
		if err != nil {
			return 0, err
		}
		all = append(all, one)
	}
	f := report.Median(r.area, "ingest of known series, "+how, "ns/point",
		all).Because("processor time")
	r.table.Add(f)
	return f.Value, nil
}

// restart stops the server and adds the time in which it starts again.
func (r *taggedSeries) restart(what string, budget float64) error {
	if err := r.s.Stop(); err != nil {
		return err
	}
	begun := time.Now()
	again, err := r.Start(r.data)
	if err != nil {
		return err
	}
	r.s = again
	r.table.Add(report.Figure{
		Area:   r.area,
		What:   what,
		Unit:   "s",
		Value:  time.Since(begun).Seconds(),
		Budget: budget,
	})
	return nil
}

// importTags sends the tags of all series, and adds the rate.
func (r *taggedSeries) importTags(ctx context.Context) error {
	client, c := r.s.Client(), &r.c
	var took time.Duration
	var part []byte
	flush := func() error {
		begun := time.Now()
		out, err := client.ImportTags(ctx, bytes.NewReader(part))
		took += time.Since(begun)
		if err == nil && out.Refused > 0 {
			err = fmt.Errorf("%d of %d lines were refused: %+v", out.Refused, out.Lines, out.Errors[0])
		}
		part = part[:0]
		return err
	}
	for i := range r.n {
		ch := tags.Change{
			Key:        c.AppendKey(nil, i%load.Connections, i/load.Connections),
			Collection: []byte(c.Bucket),
			Name:       metric.AppendPart(nil, "m"),
		}
		for t, of := range tagValues {
			ch.Set = append(ch.Set, tags.Tag{TagName: tags.TagName{Name: fmt.Append(nil, "tag", t)},
				Value: fmt.Append(nil, i%of)})
		}
		var err error
		if part, err = tagline.Append(part, c.Bucket, &ch); err != nil {
			return err
		}
		if len(part) > tagPart || i == r.n-1 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	r.table.Add(report.Figure{
		Area:  r.area,
		What:  "import over HTTP",
		Unit:  "k series/s",
		Value: float64(r.n) / took.Seconds() / 1000,
		Least: tagImportLeast,
	}.
		Because("parts of %d KiB, each durable when it is answered", tagPart>>10))
	return nil
}

// memory adds what a series with its tags takes beside its name.
func (r *taggedSeries) memory(ctx context.Context) error {
	c := &r.c
	held, err := r.s.Metric(ctx, `dalmatiner_memory_bytes{pool="tags"}`)
	if err != nil {
		return err
	}
	for i := range r.n {
		held -= float64(len(c.AppendKey(nil, i%load.Connections, i/load.Connections)))
	}
	r.table.Add(report.Figure{
		Area:   r.area,
		What:   "memory beside the name, after a start",
		Unit:   "B/series",
		Value:  held / float64(r.n),
		Budget: tagBytesBudget,
	})
	return nil
}

// tagLookups takes the time of lookups as queries make them, of series that have points in memory.
func (b *bench) tagLookups(ctx context.Context, data string, c *haggar.Config, area string,
	n int) (err error) {
	s, err := store.Open(store.DefaultOptions(data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	info, err := s.BucketByName(c.Bucket)
	if err != nil {
		return err
	}
	x, err := s.NewSession(info)
	if err != nil {
		return err
	}
	at := time.Now().Unix()
	for i := range n {
		x.Point(c.AppendKey(nil, i%load.Connections, i/load.Connections), uint64(at), point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		return err
	}
	index := local.New(local.Options{Store: s, Tags: s.Tags().Index()}).Offers().Index
	for _, l := range tagLookupRows {
		q, err := dql.Parse("SELECT m FROM x WHERE " + l.where + " LAST 1s")
		if err != nil {
			return err
		}
		var all []float64
		hits := 0
		for range tagLookups {
			hits = 0
			begun := time.Now()
			err := index.Lookup(ctx, source.Lookup{
				Collection: c.Bucket, Where: q.Fields[0].Expr.(*dql.Lookup).Where,
				Tags:  []dql.DimVar{{Name: "tag4"}},
				Start: at*1000 - 60_000, End: at * 1000,
			}, func(source.Hit) bool { hits++; return true })
			if err != nil {
				return err
			}
			all = append(all, float64(time.Since(begun))/float64(time.Millisecond))
		}
		mid, _ := measure.Median(all)
		b.table.Add(report.Figure{
			Area:   area,
			What:   "lookup of " + l.name,
			Unit:   "ms",
			Value:  mid,
			Budget: l.budget,
		}.
			Because("%d series, by the finder of queries, with their values of a tag", hits))
	}
	return nil
}
