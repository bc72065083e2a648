package haggar

import (
	"fmt"
	"strings"

	"dalmatiner/internal/model/metric"
)

// The published preset: the bucket and the series that the published queries
// name. The identifiers are as published.
const (
	Published       = "published"
	PublishedBucket = "tachyon"

	publishedWait  = "cloud.zones.cpu.nwait.e2be6f6c-2005-4f2d-aff9-f427b9"
	publishedUsage = "cloud.zones.cpu.usage."
)

// The published queries, letter by letter: the maximum waiting per minute of
// one machine, the maximum usage per hour of seven, and the store's own rate.
const (
	WaitQuery  = `SELECT max(cloud.zones.cpu.nwait.e2be6f6c-2005-4f2d-aff9-f427b9 BUCKET tachyon, 1m) LAST 1h`
	UsageQuery = `select
  max(cloud.zones.cpu.usage.f242021c-c5eb-4c53-a609-64bee4 BUCKET tachyon, 1h),
  max(cloud.zones.cpu.usage.b02df988-2abf-4364-8f55-c39eb3 BUCKET tachyon, 1h),
  max(cloud.zones.cpu.usage.7d1a1a3b-f3e9-4388-a938-c3a866 BUCKET tachyon, 1h),
  max(cloud.zones.cpu.usage.986ea915-f274-41c4-9ac5-b3dbd1 BUCKET tachyon, 1h),
  max(cloud.zones.cpu.usage.1333cf62-b8f1-496a-b2e1-5ec9d4 BUCKET tachyon, 1h),
  max(cloud.zones.cpu.usage.c6a34e43-a242-46e5-89af-b25431 BUCKET tachyon, 1h),
  max(cloud.zones.cpu.usage.e86f77ef-27a3-44c2-9348-f2319b BUCKET tachyon, 1h) LAST 1d`
	RateQuery = `SELECT avg(sum(*.mps BUCKET dalmatinerdb), 5m) AS 'metrics/s' LAST 1h`
)

// publishedSeries returns the texts of the published series, parts joined by
// dots, in the order of their numbers: seven of CPU usage, one of waiting.
func publishedSeries() []string {
	names := []string{
		"f242021c-c5eb-4c53-a609-64bee4",
		"b02df988-2abf-4364-8f55-c39eb3",
		"7d1a1a3b-f3e9-4388-a938-c3a866",
		"986ea915-f274-41c4-9ac5-b3dbd1",
		"1333cf62-b8f1-496a-b2e1-5ec9d4",
		"c6a34e43-a242-46e5-89af-b25431",
		"e86f77ef-27a3-44c2-9348-f2319b",
	}
	for i := range names {
		names[i] = publishedUsage + names[i]
	}
	return append(names, publishedWait)
}

// Data tells which series a run sends: what somebody who compares a store with
// a run must know.
type Data struct {
	Seed   uint64
	Walk   bool   // the published mix instead of uniform values
	Preset string // Published, or empty
}

// AppendKey appends the key of metric i of an agent.
func (d Data) AppendKey(dst []byte, agent, i int) []byte {
	if d.Preset == Published {
		for part := range strings.SplitSeq(publishedSeries()[i], ".") {
			dst = metric.AppendPart(dst, part)
		}
		return dst
	}
	dst = metric.AppendPart(dst, "agent")
	dst = metric.AppendPart(dst, fmt.Sprintf("%6d", agent))
	dst = metric.AppendPart(dst, "metrics")
	return metric.AppendPart(dst, fmt.Sprintf("%6d", i))
}

// Series returns the values of metric i of an agent.
func (d Data) Series(agent, i int) Iter { return Series(d.kind(i), d.Seed, agent, i) }

func (d Data) kind(i int) Kind {
	switch {
	case d.Preset == Published && i == 7:
		return Counter
	case d.Preset == Published:
		return Walk
	case d.Walk:
		return MixKind(i)
	}
	return Uniform
}
