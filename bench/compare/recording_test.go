package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"dalmatiner/bench/corpus"
)

// recording has series that begin and end at different times.
func recording() *corpus.Corpus {
	c := &corpus.Corpus{Name: "made", Interval: 1000}
	for i := range 30 {
		s := corpus.Series{
			Labels: []corpus.Label{{Name: "__name__", Value: "a metric"}, {Name: "n", Value: fmt.Sprint(i)},
				{Name: "none", Value: ""}}}
		for at := i * 100; at < 5000-i*20; at++ {
			s.Times, s.Values = append(s.Times, 1_700_000_000_000+int64(at)*1000+int64(i%3)),
				append(s.Values, fmt.Sprint(at*i))
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// sent plays a recording to a sink with texts for messages, and returns a line
// for every sample.
func sent(t *testing.T, c *corpus.Corpus, advance bool, encode func([]byte, *part) ([]byte, error),
	decode func([]byte) []string) (points int64, lines []string) {
	t.Helper()
	k := &messages{}
	dial := func(context.Context, *instance) (conn, error) { return k, nil }
	points, err := playParts(dial, encode, advance).send(t.Context(), nil, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range k.got {
		lines = append(lines, decode(m)...)
	}
	return points, lines
}

// messages is a server that keeps them.
type messages struct{ got [][]byte }

func (k *messages) send(_ context.Context, m []byte) error {
	k.got = append(k.got, slices.Clone(m))
	return nil
}
func (k *messages) finish(context.Context) error { return nil }
func (k *messages) abandon()                     {}

// Every sample of a recording is sent once, in the order of time.
func TestPlayParts(t *testing.T) {
	c := recording()
	var want []string
	for i := range c.Series {
		s := &c.Series[i]
		for k, at := range s.Times {
			want = append(want, fmt.Sprintf("__name__=a metric n=%d none= %s %d", i, s.Values[k], at))
		}
	}
	points, got := sent(t, c, false, remoteWritePart, func(raw []byte) []string {
		return samples(t, raw)
	})
	if points != c.Points() || points != int64(len(got)) {
		t.Errorf("%d points, %d lines, want %d", points, len(got), c.Points())
	}
	last := map[string]int64{}
	for _, line := range got {
		series, at := line[:strings.LastIndex(line, "=")], parsed(t, line)
		if last[series] >= at {
			t.Errorf("%s comes after %d", line, last[series])
		}
		last[series] = at
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Error("other samples arrive than were sent")
	}
	points, got = sent(t, c, true, remoteWritePart, func(raw []byte) []string {
		return samples(t, raw)
	})
	_, end := c.Span()
	if points != c.Points()+1 || parsed(t, got[len(got)-1]) != end+1000*advanceSeconds {
		t.Errorf("%d points, the last is %s", points, got[len(got)-1])
	}
}

// parsed returns the time of a line.
func parsed(t *testing.T, line string) int64 {
	t.Helper()
	at, err := strconv.ParseInt(line[strings.LastIndex(line, " ")+1:], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// samples reads a request of remote write.
func samples(t *testing.T, raw []byte) (lines []string) {
	t.Helper()
	request, err := s2.Decode(nil, raw)
	if err != nil {
		t.Fatal(err)
	}
	_, series, _ := message(t, request)
	for _, s := range series {
		keys, fields, _ := message(t, s)
		labels := ""
		for i, f := range fields {
			if keys[i] == 1 {
				_, label, _ := message(t, f)
				labels += string(label[0]) + "=" + string(label[1]) + " "
				continue
			}
			_, _, sample := message(t, f)
			lines = append(lines, fmt.Sprint(labels, math.Float64frombits(sample[0]), " ", sample[1]))
		}
	}
	return lines
}

func TestTextParts(t *testing.T) {
	p := &part{&corpus.Corpus{Series: recording().Series[:2]}, []int{2, 0}, []int{4, 1}}
	for _, tc := range []struct {
		encode func([]byte, *part) ([]byte, error)
		want   string
	}{
		{influxPart, `metrics,__name__=a\ metric,n=0 value=0 1700000002000000000
metrics,__name__=a\ metric,n=0 value=0 1700000003000000000
metrics,__name__=a\ metric,n=1 value=100 1700000100001000000
`},
		{questPart, `metrics,series=a\ metric{n\="0"\,none\=""} value=0 1700000002000000000
metrics,series=a\ metric{n\="0"\,none\=""} value=0 1700000003000000000
metrics,series=a\ metric{n\="1"\,none\=""} value=100 1700000100001000000
`},
		{clickHousePart, `"a metric{n=""0"",none=""""}",0,1700000002.000
"a metric{n=""0"",none=""""}",0,1700000003.000
"a metric{n=""1"",none=""""}",100,1700000100.001
`},
	} {
		if got, err := tc.encode(nil, p); err != nil || string(got) != tc.want {
			t.Errorf("got\n%s%v, want\n%s", got, err, tc.want)
		}
	}
}
