package httpapi

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/golden"
)

// newSince is of the clock of the machine.
var newSince = regexp.MustCompile(`"new_since":\d+,"new_hours":[\d.]+`)

// TestGoldenTop: what has most series.
func TestGoldenTop(t *testing.T) {
	o := testOptions(newFakeStore(t))
	change := func(bucket uint64, part, collection string, clock time.Time,
		set ...string) tags.Change {
		key, err := metric.Key(part)
		if err != nil {
			t.Fatal(err)
		}
		c := tags.Change{Bucket: bucket, Key: key, Collection: []byte(collection),
			Clock: uint64(clock.UnixNano())}
		for i := 0; i < len(set); i += 3 {
			c.Set = append(c.Set,
				tags.Tag{TagName: tags.TagName{Namespace: []byte(set[i]), Name: []byte(set[i+1])},
					Value: []byte(set[i+2])})
		}
		return c
	}
	o.Tags = newFakeTags(t,
		change(1, "f", "b", now, "", "host", "web1", "", "dc", "eu", "label", "a/b:c", "1"),
		change(1, "t", "b", time.Now(), "", "host", "web2", "", "dc", "eu"),
		change(2, "m", "ho\xffsts", now, "", "host", "db'1", "la:bel", "x", "2"),
	)
	h := New(o)
	var b strings.Builder
	for _, target := range []string{
		"by=names",
		"by=names&collection=b&sort=new&limit=1",
		"by=names&collection=ho%5Cxffsts",
		"by=values&limit=3",
		"by=values&name=la%5C:bel:x",
		"by=buckets",
		"by=prefixes",
		"by=prefixes&bucket=b&prefix=a",
		"by=prefixes&bucket=odd+%5C'%5Cxff%5Cx0a+name&depth=2&limit=1",
		"by=prefixes&prefix=%5Cxzz",
		"",
		"by=hosts",
		"by=names&sort=up",
		"by=names&limit=1001",
		"by=prefixes&depth=0",
		"by=prefixes&bucket=c",
		"by=buckets&collection=b",
		"by=names&prefix=a",
		"by=names&what=1",
		"by=names&format=csv",
	} {
		w := get("/tags/top?" + target).send(h)
		b.WriteString("> " + target + "\n" +
			newSince.ReplaceAllString(w.Body.String(), `"new_since":0,"new_hours":1`) + "\n")
	}
	golden.Same(t, "testdata/top.golden", b.String())
}
