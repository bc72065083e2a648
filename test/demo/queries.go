package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dalmatiner/client"
	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
)

const selfBucket = "dalmatinerdb"

const (
	minCoverage = 0.95
	repeats     = 21 // of a query, for the median of its time

	slotMs = 1000 // all three buckets have a point a second
)

// askWait asks for the maxima per minute of one series.
func (s *session) askWait(ctx context.Context) error {
	return s.askMaxima(ctx, haggar.WaitQuery, []int{7}, time.Hour, time.Minute)
}

// askUsage asks for the maxima per hour of seven series.
func (s *session) askUsage(ctx context.Context) error {
	return s.askMaxima(ctx, haggar.UsageQuery, []int{0, 1, 2, 3, 4, 5, 6}, 24*time.Hour, time.Hour)
}

// askMaxima runs a query for maxima of published series, prints the result and
// compares all of it: the maxima with those of haggar's function, and the points
// below them one by one.
func (s *session) askMaxima(ctx context.Context, text string, numbers []int, span,
	window time.Duration) error {
	r, err := s.ask(ctx, text)
	if err != nil {
		return err
	}
	s.compare(len(r.Results) == len(numbers), "%d results, asked were %d", len(r.Results),
		len(numbers))
	slots, width := int(span/time.Second), int(window/time.Second)
	for i, number := range numbers[:min(len(numbers), len(r.Results))] {
		result := r.Results[i]
		s.compare(result.Coverage >= minCoverage, "%s: the coverage is %.4f, at least %.2f is due",
			result.Name, result.Coverage, minCoverage)
		s.compare(result.Resolution == window.Milliseconds(), "%s: the resolution is %d ms", result.Name,
			result.Resolution)
		s.compare(len(result.Values) == slots/width, "%s: %d values, %d are due", result.Name,
			len(result.Values), slots/width)
		values, set, err := s.sent(ctx, number, r.Start/slotMs, slots)
		if err != nil {
			return err
		}
		s.compare(math.Abs(result.Coverage-float64(set)/float64(slots)) < 1e-9,
			"%s: the coverage is %v, %d of %d slots are set", result.Name, result.Coverage, set, slots)
		for w := range min(len(result.Values), slots/width) {
			want := slices.Max(values[w*width : (w+1)*width])
			got := result.Values[w]
			s.compare(got != nil && *got == want, "%s, value %d: %s, haggar's maximum is %v", result.Name, w,
				text64(got), want)
		}
	}
	return nil
}

// sent returns the values that the slots of a published series must have, by
// haggar's function, and how many of them its journal says it sent. A slot that it
// has not sent, such as the second under way, is less than any value. The store's own points
// are compared on the way: each that was sent, and none besides.
func (s *session) sent(ctx context.Context, number int, first int64, count int) (values []float64,
	set int, err error) {
	data := haggar.Data{Preset: haggar.Published}
	words, err := s.read(ctx, haggar.PublishedBucket, data.AppendKey(nil, 0, number), first, count)
	if err != nil {
		return nil, 0, err
	}
	series := data.Series(0, number)
	values = make([]float64, count)
	for i, word := range words {
		slot, due := first+int64(i), uint64(point.Unset)
		values[i] = math.Inf(-1)
		if s.slots[number][slot] {
			set++
			due = series.Word(slot)
			values[i] = float64(series.At(slot))
		}
		s.compare(word == due, "series %d, slot %d: the point is %016x, haggar's is %016x", number, slot,
			word, due)
	}
	return values, set, nil
}

// askRate asks for the rate the store measured itself. Its points are those of
// the account: their sum is what was stored, and the averages are theirs.
func (s *session) askRate(ctx context.Context) error {
	key, err := s.rateKey(ctx)
	if err != nil {
		return err
	}
	var stored, measured uint64
	err = waitFor(ctx, "the store has measured the last second", func() (bool, error) {
		if stored, err = s.storedPoints(ctx); err != nil {
			return false, err
		}
		measured, err = s.measuredPoints(ctx, key)
		return measured >= stored, err
	})
	s.compare(measured == stored, "the points of mps make %d, the account has %d stored points",
		measured, stored)
	if err != nil {
		return err
	}
	r, err := s.ask(ctx, haggar.RateQuery)
	if err != nil {
		return err
	}
	if len(r.Results) != 1 {
		return fmt.Errorf("%d results instead of one", len(r.Results))
	}
	const slots, width = 3600, 300
	words, err := s.read(ctx, selfBucket, key, r.Start/slotMs, slots)
	if err != nil {
		return err
	}
	with := averages(words, width)
	// The second before the query may have been written just behind it.
	words[slots-1] = point.Unset
	without := averages(words, width)
	values := r.Results[0].Values
	s.compare(len(values) == len(with), "%d values, %d are due", len(values), len(with))
	for i, v := range values[:min(len(values), len(with))] {
		s.compare(near(v, with[i]) || near(v, without[i]), "rate %d: %s, the points of mps make %v", i,
			text64(v), text64(with[i]))
	}
	fmt.Fprintf(s.out, "mps counted %d points: exactly those that the account calls stored.\n",
		measured)
	fmt.Fprintln(s.out,
		"The coverage is low because the node is younger than an hour: before its first second there "+
			"is no point.")
	return nil
}

// averages computes what a query makes of the points: the mean of those in each span, nil where
// there is none.
func averages(words []uint64, width int) (out []*float64) {
	for from := 0; from < len(words); from += width {
		sum, n := 0.0, 0.0
		for _, w := range words[from : from+width] {
			if w != point.Unset {
				sum += point.Float(w)
				n++
			}
		}
		if n == 0 {
			out = append(out, nil)
			continue
		}
		average := sum / n
		out = append(out, &average)
	}
	return out
}

// near allows for another order of summing.
func near(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return math.Abs(*a-*b) <= 1e-9*math.Max(1, math.Abs(*b))
}

// waitForRate waits for the node's first measurement of its own rate: without
// load it is 0.
func (s *session) waitForRate(ctx context.Context) error {
	return waitFor(ctx, "the node has measured its first second", func() (bool, error) {
		_, err := s.rateKey(ctx)
		if errors.Is(err, errNoRate) {
			return false, nil
		}
		return err == nil, err
	})
}

var errNoRate = errors.New("bucket " + selfBucket + " has no metric mps")

// rateKey returns the key of the node's own rate.
func (s *session) rateKey(ctx context.Context) ([]byte, error) {
	c, err := client.Dial(ctx, s.tcpAddr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	keys, err := c.List(ctx, selfBucket)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if parts, ok := metric.Parts([]byte(key)); ok && len(parts) == 2 && string(parts[1]) == "mps" {
			return []byte(key), nil
		}
	}
	return nil, errNoRate
}

// storedPoints returns what the account calls stored, the store's own metrics
// apart.
func (s *session) storedPoints(ctx context.Context) (uint64, error) {
	a, err := s.client.Account(ctx, "", 0)
	var n uint64
	for _, row := range a.Rows {
		if row.Bucket != selfBucket {
			c := account.Counts{
				Accepted:    row.Accepted,
				Duplicate:   row.Duplicate,
				Conflicting: row.Conflicting,
				Late:        row.Late,
			}
			n += c.StoredPoints()
		}
	}
	return n, err
}

// measuredPoints returns the sum of the last hour's points of mps, which on a
// fresh store is all of them.
func (s *session) measuredPoints(ctx context.Context, key []byte) (uint64, error) {
	words, err := s.read(ctx, selfBucket, key, time.Now().Unix()-3600, 3602)
	var n uint64
	for _, w := range words {
		if w != point.Unset {
			n += uint64(point.Int(w))
		}
	}
	return n, err
}

// read returns the points of a series, by GET.
func (s *session) read(ctx context.Context, bucket string, key []byte, first int64,
	count int) ([]uint64, error) {
	c, err := client.Dial(ctx, s.tcpAddr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Get(ctx, bucket, key, first, count)
}

// ask prints a query and its result, and how long it took the first time and
// in the median.
func (s *session) ask(ctx context.Context, text string) (*admin.Result, error) {
	fmt.Fprintf(s.out, "\n%s\n\n", text)
	start := time.Now()
	r, err := s.client.Query(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	first := time.Since(start)
	if err := admin.WriteResult(s.out, r, first); err != nil {
		return nil, err
	}
	times := make([]time.Duration, repeats)
	for i := range times {
		start := time.Now()
		if _, err := s.client.Query(ctx, text); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	fmt.Fprintf(s.out, "over HTTP: first %v, median of %d more %v\n",
		first.Round(10*time.Microsecond), repeats, times[repeats/2].Round(10*time.Microsecond))
	return r, nil
}

func text64(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

// showAccount prints the ledger and compares it with what haggar sent.
func (s *session) showAccount(ctx context.Context) error {
	fmt.Fprint(s.out, "\nddb admin account\n\n")
	a, err := s.client.Account(ctx, "", 0)
	if err != nil {
		return err
	}
	wrong, err := admin.WriteAccount(s.out, a)
	if err != nil {
		return err
	}
	s.compare(len(wrong) == 0, "the parts of the account do not make the sum: %+v", wrong)
	rows := map[string]admin.AccountRow{}
	for _, row := range a.Rows {
		rows[row.Bucket] = row
	}
	for bucket, sum := range map[string]haggar.Summary{haggar.PublishedBucket: s.published,
		loadBucket: s.load} {
		row := rows[bucket]
		s.compare(row.Received == uint64(sum.Points),
			"bucket %s: haggar sent %d points, the account says %d", bucket, sum.Points, row.Received)
		s.compare(row.RefusedTotal() == 0 && row.Conflicting == 0, "bucket %s: %+v", bucket, row)
		s.compare(sum.Errors == 0, "bucket %s: haggar met %d errors", bucket, sum.Errors)
		fmt.Fprintf(s.out, "haggar sent %d points to %s at %.0f a second: received %d\n", sum.Points,
			bucket, sum.PointsPerSec, row.Received)
	}
	return nil
}
