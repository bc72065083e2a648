package admin

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// columnsPerTable is how many series stand side by side: values of nine
// characters and a time fit a terminal of 120.
const columnsPerTable = 8

// WriteResult prints events, then the names of all series with resolution and coverage,
// then their values over time, series of one resolution side by side, selectors
// without a hit, then the totals; of an EXPLAIN, the plan. took is the time the client saw.
func WriteResult(w io.Writer, r *Result, took time.Duration) error {
	if r.PlanText != "" {
		_, err := fmt.Fprintf(w, "%s\nquery %s ms, round trip %s ms\n", r.PlanText,
			milliseconds(time.Duration(r.QueryTime)*time.Microsecond), milliseconds(took))
		return err
	}
	events, err := writeEvents(w, r.Events)
	if err != nil {
		return err
	}
	if len(r.Events) > 0 && len(r.Results) == 0 {
		_, err := fmt.Fprintf(w, "%d events, query %s ms, round trip %s ms\n", events,
			milliseconds(time.Duration(r.QueryTime)*time.Microsecond), milliseconds(took))
		return err
	}
	points := int64(0)
	for i := range r.Results {
		points += r.Results[i].points()
	}
	if err := legend(r.Results).write(w); err != nil {
		return err
	}
	if err := writeUnknown(w, r); err != nil {
		return err
	}
	for _, group := range groups(r.Results) {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := writeValues(w, r, group); err != nil {
			return err
		}
	}
	for i, m := range r.Missing {
		if i == 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "missing: %s\n", m.Message); err != nil {
			return err
		}
	}
	for _, u := range r.Unmatched {
		more := ""
		if u.More > 0 {
			more = fmt.Sprintf(" and %d more", u.More)
		}
		if _, err := fmt.Fprintf(w, "\nleft out, without a partner: %s%s of %s\n",
			strings.Join(u.Series, ", "), more, u.Selector); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "\n%d series, %d points, coverage %s, query %s ms, round trip %s ms\n",
		len(r.Results), points,
		coverage(meanCoverage(r.Results)), milliseconds(time.Duration(r.QueryTime)*time.Microsecond),
		milliseconds(took))
	return err
}

// legend is the table of the series. What the stars of patterns stand for, how far apart points
// are, and when series have ended stand in it where that tells something.
func legend(series []Series) *table {
	stars := slices.ContainsFunc(series, func(s Series) bool { return len(s.Stars) > 0 })
	sparse := slices.ContainsFunc(series, func(s Series) bool {
		return s.Interval != nil && *s.Interval > s.BucketResolution
	})
	t := newTable(1, 2)
	head := []string{"", "Series"}
	if stars {
		head = append(head, "Stars")
	} else {
		t = newTable(1)
	}
	head = append(head, "Resolution", "Points", "Coverage")
	if sparse {
		head = append(head, "A point every")
	}
	ended := slices.ContainsFunc(series, func(s Series) bool { return s.Ended })
	if ended {
		head = append(head, "Ended (UTC)")
	}
	t.add(head...)
	for i, s := range series {
		row := []string{strconv.Itoa(i + 1), s.Name}
		if stars {
			row = append(row, strings.Join(s.Stars, ", "))
		}
		row = append(row, pointsAsTime(1, s.Resolution), strconv.FormatInt(s.points(), 10),
			coverage(s.Coverage))
		if sparse {
			row = append(row, spacing(s))
		}
		if ended {
			row = append(row, s.ended())
		}
		t.add(row...)
	}
	return t
}

// maxUnknownLines is of how many series writeUnknown says what is unknown.
const maxUnknownLines = 8

// writeUnknown prints a line for each of the first series of which damage took
// something.
func writeUnknown(w io.Writer, r *Result) error {
	lines, rest := "", 0
	for i, s := range r.Results {
		u := s.Unknown
		switch {
		case u == nil || len(u.Ranges) == 0:
			continue
		case strings.Count(lines, "\n") == maxUnknownLines:
			rest++
			continue
		}
		at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.999") }
		lines += fmt.Sprintf("unknown: series %d, %d slots from %s to %s", i+1, u.Slots,
			at(u.Ranges[0][0]), at(u.Ranges[len(u.Ranges)-1][1]))
		if n := int64(len(u.Ranges)) + u.More; n > 1 {
			lines += fmt.Sprintf(" in %d ranges", n)
		}
		if u.More > 0 {
			lines += fmt.Sprintf(", %d of them behind that", u.More)
		}
		if r.Damaged == "shown" {
			lines += ", with older values"
		}
		lines += fmt.Sprintf(" (%s)\n", strings.Join(u.Why, "; "))
	}
	if rest > 0 {
		lines += fmt.Sprintf("unknown: also in %d more series\n", rest)
	}
	if lines != "" {
		shown := "a gap, or what is left of a span, is shown"
		if r.Damaged == "shown" {
			shown = "older values are shown, which may be out of date"
		}
		lines += "unknown: where there is a ?, " + shown + "\n"
	}
	_, err := io.WriteString(w, lines)
	return err
}

// spacing says how far apart the points of a series are, and what its bucket
// has slots for.
func spacing(s Series) string {
	if s.Interval == nil {
		return "-"
	}
	return pointsAsTime(1, *s.Interval) + " in a bucket of " + pointsAsTime(1, s.BucketResolution)
}

// points returns how many points were read for a series; of an answer of the original, its values.
func (s *Series) points() int64 {
	if s.Points == nil {
		return int64(len(s.Values))
	}
	return *s.Points
}

// start returns when the first value of a series is, in a result that starts at a time.
func (s *Series) start(of int64) int64 {
	if s.Start != nil {
		return *s.Start
	}
	return of
}

// ended says when the last point of a series that has ended is from; nothing of others.
func (s *Series) ended() string {
	switch {
	case !s.Ended:
		return ""
	case s.LastPoint == 0:
		return "no point"
	}
	return time.UnixMilli(s.LastPoint).UTC().Format("2006-01-02 15:04:05.999")
}

// groups splits the indexes of all series with values into tables: neighbours
// with the same times, at most columnsPerTable.
func groups(series []Series) [][]int {
	var out [][]int
	for i, s := range series {
		if len(s.Values) == 0 {
			continue
		}
		if n := len(out); n > 0 && len(out[n-1]) < columnsPerTable && series[out[n-1][0]].beside(&s) {
			out[n-1] = append(out[n-1], i)
			continue
		}
		out = append(out, []int{i})
	}
	return out
}

// beside reports whether the values of two series have the same times.
func (s *Series) beside(o *Series) bool {
	return s.Resolution == o.Resolution && s.start(0) == o.start(0) && slices.Equal(s.Times, o.Times)
}

// at returns when the span of a value begins, or of a row behind the last, where the last one ends.
func (s *Series) at(start int64, row int) int64 {
	switch n := len(s.Times); {
	case n == 0:
		return start + int64(row)*s.Resolution
	case row < n:
		return s.Times[row]
	default:
		return s.Times[n-1] + s.Resolution
	}
}

func writeValues(w io.Writer, r *Result, group []int) error {
	first := &r.Results[group[0]]
	start := first.start(r.Start)
	layout := "2006-01-02 15:04:05"
	if first.Resolution%1000 != 0 || start%1000 != 0 {
		layout += ".000"
	}
	t := newTable(0)
	zone := time.UTC
	head := []string{"Time (UTC)"}
	if r.Zone != nil {
		zone, layout = r.Zone, layout+" -07:00" // there is an hour twice where clocks are set back
		head[0] = "Time (" + zone.String() + ")"
	}
	rows := 0
	for _, i := range group {
		head = append(head, strconv.Itoa(i+1))
		rows = max(rows, len(r.Results[i].Values))
	}
	t.add(head...)
	for row := range rows {
		at := time.UnixMilli(first.at(start, row)).In(zone)
		cells := []string{at.Format(layout)}
		for _, i := range group {
			cells = append(cells, cell(r, i, row))
		}
		t.add(cells...)
	}
	return t.write(w)
}

// cell prints one value. A ? behind it says that damage took slots behind it.
func cell(r *Result, series, row int) string {
	s := &r.Results[series]
	if row >= len(s.Values) {
		return ""
	}
	lost := s.unknownAt(s.start(r.Start), row)
	switch v := s.Values[row]; {
	case v == nil && lost:
		return "?"
	case v == nil:
		return "-"
	case lost:
		return s.text(row) + "?"
	default:
		return s.text(row)
	}
}

// unknownAt reports whether slots behind a value are unknown.
func (s *Series) unknownAt(start int64, row int) bool {
	if s.Unknown == nil {
		return false
	}
	if s.BucketResolution > 0 {
		start -= start % s.BucketResolution
	}
	from, past := s.at(start, row), s.at(start, row+1)
	at, _ := slices.BinarySearchFunc(s.Unknown.Ranges, from, func(r [2]int64, from int64) int {
		return cmp.Compare(r[1], from+1)
	})
	return at < len(s.Unknown.Ranges) && s.Unknown.Ranges[at][0] < past
}

func coverage(share float64) string { return strconv.FormatFloat(share, 'f', 3, 64) }

func meanCoverage(series []Series) float64 {
	if len(series) == 0 {
		return 0
	}
	sum := 0.0
	for _, s := range series {
		sum += s.Coverage
	}
	return sum / float64(len(series))
}

func milliseconds(d time.Duration) string {
	text := strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64)
	return strings.TrimSuffix(text, ".00")
}

// sortBuckets puts buckets in the order of their names.
func sortBuckets(buckets []Bucket) {
	slices.SortFunc(buckets, func(a, b Bucket) int { return strings.Compare(a.Name, b.Name) })
}
