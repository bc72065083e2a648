// Package shop holds the example data of docs/dql.md: bucket shop with its series, tags and
// events. `ddb demo shop` writes it into a node, and the tests of the page read it, so readers
// get the answers that the page prints.
package shop

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

const (
	// Bucket is the name of the bucket.
	Bucket = "shop"
	// Resolution is the length of its slots, in milliseconds.
	Resolution = 1000
	// Start is the slot of 2026-11-20 12:00:00 UTC. The short series begin there, the long
	// ones end there.
	Start = 1795176000
	// Hour is how many slots before Start the long series begin.
	Hour = 3600
)

// Series is one series of the bucket.
type Series struct {
	Metric string   // its parts, with dots between them
	Key    []byte   // of the metric
	Slot   int64    // of the first word
	Words  []uint64 // one for each slot, point.Unset where there is no point
}

// Short are the series of ten seconds: metric and values from Start on, one a second; – is no
// point.
var Short = [...][2]string{
	{"web.eu.requests", "10 12 11 13 15 14 10 9 11 12"},
	{"web.us.requests", "20 21 19 25 24 22 20 18 21 23"},
	{"web.eu.errors", "0 0 1 0 2 0 0 1 0 0"},
	{"temp", "– 21 – – 22 – – – 20 –"},
	{"visits", "100 103 103 110 2 5 9 9 12 20"},
	{"price", "0.3 0.3 0.3 0.1 0.2 0.3 19.99 0.3 0.3 0.3"},
}

// long describes a series of an hour.
type long struct {
	metric string
	every  int64               // slots between points
	points int64               // fewer than the hour has: the sender died
	value  func(i int64) int64 // of point i
}

var hour = [...]long{
	{"cart.hits", 10, 360, func(i int64) int64 { return 5 + i%7 }},
	{"hosts.a.lat", 10, 360, func(i int64) int64 { return 105 + i%3 }},
	{"hosts.b.lat", 10, 360, func(i int64) int64 { return 120 + i%5 }},
	{"hosts.c.lat", 10, 360, func(i int64) int64 { return 140 + i%4 }},
	{"hosts.d.lat", 10, 180, func(i int64) int64 { return 90 + i%2 }},
	{"jobs.done", 10, 360, jobsDone},
	{"disk.a.used", 60, 60, func(i int64) int64 { return 40 + i/6 }},
	{"disk.a.total", 60, 60, func(int64) int64 { return 100 }},
	{"disk.b.used", 60, 60, func(i int64) int64 { return 150 - i/20 }},
	{"disk.b.total", 60, 60, func(int64) int64 { return 200 }},
	{"disk.c.used", 60, 60, func(int64) int64 { return 10 }},
}

// jobsDone grows by 20 every ten seconds. Its process restarts after 40 minutes, and counts
// from 0 again.
func jobsDone(i int64) int64 {
	if i >= 240 {
		i -= 240
	} else {
		i += 50
	}
	return 20 * i
}

// All returns every series of the bucket.
func All() ([]Series, error) {
	var all []Series
	for _, s := range Short {
		words, err := shortWords(s[1])
		if err != nil {
			return nil, err
		}
		all = append(all, Series{Metric: s[0], Slot: Start, Words: words})
	}
	for i := range hour {
		l := &hour[i]
		words := make([]uint64, Hour)
		for n := range l.points {
			words[n*l.every] = point.FromInt(l.value(n))
		}
		all = append(all, Series{Metric: l.metric, Slot: Start - Hour, Words: words})
	}
	for i := range all {
		key, err := metric.Key(strings.Split(all[i].Metric, ".")...)
		if err != nil {
			return nil, err
		}
		all[i].Key = key
	}
	return all, nil
}

func shortWords(values string) ([]uint64, error) {
	var words []uint64
	for text := range strings.FieldsSeq(values) {
		if text == "–" {
			words = append(words, point.Unset)
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			words = append(words, point.FromInt(n))
			continue
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("a value of the example data: %w", err)
		}
		words = append(words, point.FromFloat(f))
	}
	return words, nil
}

// tagged says which series has which tags: metric, collection, name in it, tags as JSON.
var tagged = [...][4]string{
	{"web.eu.requests", "fleet", "requests", `"site":"eu","host":"web1","k8s:app":"shop"`},
	{"web.us.requests", "fleet", "requests", `"site":"us","host":"web2","k8s:app":"shop"`},
	{"web.eu.errors", "fleet", "errors", `"site":"eu","host":"web1"`},
	{"disk.a.used", "disks", "used", `"host":"a"`},
	{"disk.a.total", "disks", "total", `"host":"a"`},
	{"disk.b.used", "disks", "used", `"host":"b"`},
	{"disk.b.total", "disks", "total", `"host":"b"`},
	{"disk.c.used", "disks", "used", `"host":"c"`},
}

// Tags returns the tags of its series, as lines of JSON that POST /tags reads.
func Tags() string {
	var b strings.Builder
	for _, t := range tagged {
		parts := strings.ReplaceAll(t[0], ".", `","`)
		fmt.Fprintf(&b,
			`{"bucket":"%s","metric":["%s"],"collection":"%s","name":["%s"],"tags":{%s}}`+"\n",
			Bucket, parts, t[1], t[2], t[3])
	}
	return b.String()
}

// Event is one event of the bucket.
type Event struct {
	Time string // RFC 3339
	JSON string
}

// Nanoseconds returns the time of the event since 1970.
func (e Event) Nanoseconds() (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, e.Time)
	return t.UnixNano(), err
}

// Events are the events of the bucket.
var Events = [...]Event{
	{"2026-11-20T12:00:01.25Z", `{"name":"login","user":{"name":"ann"},"tries":[1,40]}`},
	{"2026-11-20T12:00:04.000000001Z", `{"name":"login","user":{"name":"bob"},"tries":[3,90,210]}`},
	{"2026-11-20T12:00:06.5Z", `{"name":"deploy","version":"1.4","user":{"name":"ann"}}`},
}
