package admin

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/host/config"
)

// writeBuckets prints the list of buckets in the columns of the original: the
// name 30 wide on the right, then resolution, file size, grace and TTL 15 wide
// on the left; with a column more where there are buckets with timestamps.
func writeBuckets(w io.Writer, buckets []Bucket) error {
	line := func(cells ...string) error {
		for i := range cells {
			if i == 0 {
				cells[i] = pad(cells[i], 30, false)
			} else {
				cells[i] = pad(cells[i], 15, true)
			}
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, " | "), " "))
		return err
	}
	header := []string{"Bucket", "Resolution", "File Size", "Grace", "TTL"}
	if slices.ContainsFunc(buckets, func(b Bucket) bool { return b.HPTS }) {
		header = append(header, "HPTS")
	}
	columns := len(header)
	if err := line(header...); err != nil {
		return err
	}
	for _, b := range buckets {
		cells := []string{b.Name, pointsAsTime(1, b.Resolution), pointsAsTime(b.PPF, b.Resolution),
			config.FormatDuration(time.Duration(b.Grace)), ttlAsTime(b.TTL, b.Resolution),
			strconv.FormatBool(b.HPTS)}
		if err := line(cells[:columns]...); err != nil {
			return err
		}
	}
	return nil
}

func ttlAsTime(ttl TTL, resolution int64) string {
	if ttl == 0 {
		return infinity
	}
	return pointsAsTime(int64(ttl), resolution)
}

// pointsAsTime prints how long n points take, or their number where that is no
// duration of 64 bits.
func pointsAsTime(n, resolution int64) string {
	if resolution <= 0 || n > math.MaxInt64/int64(time.Millisecond)/resolution {
		return strconv.FormatInt(n, 10) + " points"
	}
	return config.FormatDuration(time.Duration(n*resolution) * time.Millisecond)
}

// deletedBuckets is printed for the sum of the buckets that are gone, which
// has no name.
const deletedBuckets = "(deleted buckets)"

// WriteAccount prints one line per row, first of points, then of events where there are any, the
// reasons of refusals, losses and refused requests, and whether received is the sum of the rest. It
// returns the rows where it is not.
func WriteAccount(w io.Writer, a Account) (wrong []AccountRow, err error) {
	var b strings.Builder
	points := a.Rows
	if len(a.Events.Rows) > 0 {
		points = slices.DeleteFunc(slices.Clone(points), func(r AccountRow) bool {
			return r.Received == 0 && hasRow(a.Events.Rows, r.Bucket)
		})
	}
	if len(points) > 0 || len(a.Events.Rows) == 0 {
		if wrong, err = writeEntries(&b, "Bucket", points); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "lost later: %s\nrecovered of these: %s\n", losses(a.Lost),
			reasonsOrNone(a.Recovered))
	}
	if len(a.Events.Rows) > 0 {
		more, err := writeEntries(&b, "Events of bucket", a.Events.Rows)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, more...)
		fmt.Fprintf(&b, "events lost later: %s\nrecovered of these: %s\n", losses(a.Events.Lost),
			reasonsOrNone(a.Events.Recovered))
	}
	if a.TagsLost > 0 {
		fmt.Fprintf(&b, "tags lost: at least %d changes, or series with all their tags; import them "+
			"again\n", a.TagsLost)
	}
	fmt.Fprintf(&b, "refused requests: %s\n", reasonsOrNone(a.Requests))
	if err := writeClocks(&b, a.Clocks); err != nil {
		return wrong, err
	}
	_, err = io.WriteString(w, b.String())
	return wrong, err
}

// writeClocks prints the senders whose clocks are ahead, where there are any.
func writeClocks(b *strings.Builder, clocks []Clock) error {
	if len(clocks) == 0 {
		return nil
	}
	t := newTable(0, 3)
	t.add("Sender with a clock ahead", "By", "Ahead", "Listener", "Last (UTC)")
	for _, c := range clocks {
		t.add(c.Sender, (time.Duration(c.AheadMS) * time.Millisecond).Round(time.Second).String(),
			count(c.Ahead),
			c.Listener, time.UnixMilli(c.LastMS).UTC().Format(time.DateTime))
	}
	return t.write(b)
}

func hasRow(rows []AccountRow, bucket string) bool {
	return slices.ContainsFunc(rows, func(r AccountRow) bool { return r.Bucket == bucket })
}

// writeEntries prints the rows of points or of events, and whether they add up. It returns those
// that do not.
func writeEntries(b *strings.Builder, head string,
	rows []AccountRow) (wrong []AccountRow, err error) {
	t := newTable(0, 9)
	perMinute := len(rows) > 0 && rows[0].Minute != 0
	if perMinute {
		fmt.Fprintf(b, "%s %s\n", head, rows[0].Bucket)
		head = "Minute (UTC)"
	}
	t.add(head, "Received", "Accepted", "Duplicate", "Conflicting", "Late", "Unset", "Refused", "",
		"Reasons")
	for _, r := range rows {
		name := cmp.Or(r.Bucket, deletedBuckets)
		if perMinute {
			name = time.Unix(r.Minute*60, 0).UTC().Format("2006-01-02 15:04")
		}
		mark := ""
		if r.Sum() != r.Received {
			wrong = append(wrong, r)
			mark = "!"
		}
		t.add(name, count(r.Received), count(r.Accepted), count(r.Duplicate), count(r.Conflicting),
			count(r.Late),
			count(r.Unset), count(r.RefusedTotal()), mark, reasons(r.Refused))
	}
	if err := t.write(b); err != nil {
		return nil, err
	}
	const rule = "received = accepted + duplicate + conflicting + late + unset + refused"
	if len(wrong) == 0 {
		fmt.Fprintf(b, "%s: holds in every line\n", rule)
	}
	for _, r := range wrong {
		fmt.Fprintf(b, "%s: DOES NOT HOLD for %s: received %d, sum %d\n", rule,
			cmp.Or(r.Bucket, deletedBuckets), r.Received, r.Sum())
	}
	return wrong, nil
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

// reasons prints counts above 0 by reason, the largest first.
func reasons(counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var out []string
	for _, name := range names {
		if counts[name] > 0 {
			out = append(out, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	return strings.Join(out, ", ")
}

func reasonsOrNone(counts map[string]uint64) string {
	return cmp.Or(reasons(counts), "none")
}

// losses prints what was lost later, by cause. A cause without a number has taken something of
// which nobody knows how much it was.
func losses(counts map[string]uint64) string {
	var out []string
	if known := reasons(counts); known != "" {
		out = append(out, known)
	}
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		if counts[cause] == 0 {
			out = append(out, cause+" (how many is not known)")
		}
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// writeStats prints name and value, one per line.
func writeStats(w io.Writer, stats []Stat) error {
	var b strings.Builder
	for _, s := range stats {
		fmt.Fprintf(&b, "%s %s\n", s.Name, number(s.Value))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// number prints the shortest decimal that reads back as v, as the JSON of the node has it:
// without an exponent from a millionth on and below 1e21.
func number(v float64) string {
	if abs := math.Abs(v); v != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
