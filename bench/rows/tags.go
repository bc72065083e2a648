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
	"dalmatiner/internal/dql"
	"dalmatiner/internal/haggar"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/node"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/tagline"
	"dalmatiner/internal/tags"
)

const (
	tagStartBudget  = 2       // seconds
	tagBytesBudget  = 200     // of memory a series, beside its name
	tagImportBudget = 300_000 // series a second

	tagGroups  = 489 // of columns of each connection: 1 M series
	tagRows    = 10  // sent of every series at a time
	tagPart    = 768 << 10
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
	{"parts in the middle of the name", "ddb:part_2 = 'nothing' AND ddb:part_3 = 'nothing'", 50},
	{"a regular expression over 100 k values", "tag4 =~ '[0-9]*777'", 50},
}

// tags gives 1 M series five tags each, and takes the time of what tags are for, and of what they
// must not make slower.
func (b *bench) tags(ctx context.Context) error {
	data := filepath.Join(b.Dir, "tags")
	s, err := b.Start(data)
	if err != nil {
		return err
	}
	defer func() { s.Remove() }()
	groups := tagGroups
	if b.Quick {
		groups /= 10
	}
	c := load.Uniform(load.Connections, groups*load.GroupWidth, tagRows)
	c.Start = c.Start.Add(-time.Hour)
	n := load.Connections * groups * load.GroupWidth
	area := fmt.Sprintf("tags, %d k series of five", n/1000)
	send := func(what string) error {
		sum, err := load.Send(ctx, b.Env, s, c)
		c.Start = c.Start.Add(tagRows * time.Second)
		if err == nil && what != "" {
			b.table.Add(report.Figure{Area: area, What: what, Unit: "M points/s", Value: sum.PointsPerSec / 1e6})
		}
		return err
	}
	restart := func(what string, budget float64) error {
		if err := s.Stop(); err != nil {
			return err
		}
		begun := time.Now()
		again, err := b.Start(data)
		if err != nil {
			return err
		}
		s = again
		b.table.Add(report.Figure{Area: area, What: what, Unit: "s", Value: time.Since(begun).Seconds(), Budget: budget})
		return nil
	}
	if err := send(""); err != nil { // new series
		return err
	}
	if err := send("ingest of known series, without tags"); err != nil {
		return err
	}
	if err := restart("start, without tags", 0); err != nil {
		return err
	}
	if err := b.importTags(ctx, s, &c, area, n); err != nil {
		return err
	}
	if err := restart("start, with tags", tagStartBudget); err != nil {
		return err
	}
	if err := b.tagMemoryFigure(ctx, s, &c, area, n); err != nil {
		return err
	}
	if err := send("ingest of known series, with tags"); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	return b.tagLookups(ctx, data, &c, area, n)
}

// importTags sends the tags of all series, and adds the rate and the memory that they take.
func (b *bench) importTags(ctx context.Context, s *server.Server, c *haggar.Config, area string, n int) error {
	client := s.Client()
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
	for i := range n {
		ch := tags.Change{Key: c.AppendKey(nil, i%load.Connections, i/load.Connections), Collection: []byte(c.Bucket), Name: metric.AppendPart(nil, "m")}
		for t, of := range tagValues {
			ch.Set = append(ch.Set, tags.Tag{TagName: tags.TagName{Name: fmt.Append(nil, "tag", t)}, Value: fmt.Append(nil, i%of)})
		}
		var err error
		if part, err = tagline.Append(part, c.Bucket, &ch); err != nil {
			return err
		}
		if len(part) > tagPart || i == n-1 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	b.table.Add(report.Figure{Area: area, What: "import over HTTP", Unit: "k series/s", Value: float64(n) / took.Seconds() / 1000}.
		Because("parts of %d KiB, each durable when it is answered; goal %d k", tagPart>>10, tagImportBudget/1000))
	return nil
}

// tagMemoryFigure adds what a series with its tags takes beside its name.
func (b *bench) tagMemoryFigure(ctx context.Context, s *server.Server, c *haggar.Config, area string, n int) error {
	held, err := s.Metric(ctx, `dalmatiner_memory_bytes{pool="tags"}`)
	if err != nil {
		return err
	}
	for i := range n {
		held -= float64(len(c.AppendKey(nil, i%load.Connections, i/load.Connections)))
	}
	b.table.Add(report.Figure{Area: area, What: "memory beside the name, after a start", Unit: "B/series", Value: held / float64(n), Budget: tagBytesBudget})
	return nil
}

// tagLookups takes the time of lookups as queries make them, of series that have points in memory.
func (b *bench) tagLookups(ctx context.Context, data string, c *haggar.Config, area string, n int) (err error) {
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
	index := node.Lookups(s)
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
				Collection: c.Bucket, Where: q.Fields[0].Expr.(*dql.Lookup).Where, Tags: []dql.DimVar{{Name: "tag4"}},
				Start: at*1000 - 60_000, End: at * 1000,
			}, func(source.Hit) bool { hits++; return true })
			if err != nil {
				return err
			}
			all = append(all, float64(time.Since(begun))/float64(time.Millisecond))
		}
		mid, _ := measure.Median(all)
		b.table.Add(report.Figure{Area: area, What: "lookup of " + l.name, Unit: "ms", Value: mid, Budget: l.budget}.
			Because("%d series, by the finder of queries, with their values of a tag", hits))
	}
	return nil
}
