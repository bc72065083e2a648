package statsd

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/write"
)

// newServer returns a server that stores into bucket b, and is flushed by hand.
func newServer(tb testing.TB, st *store.Store) *Server {
	tb.Helper()
	s := New(Options{Points: st.Intake(), Tags: tagstore.Tagger{Of: st.Tags()}, Events: st.Events(),
		Memory: st.Memory(), Account: st.Account(), Now: st.Now, Bucket: "b",
		Logger: slog.New(slog.DiscardHandler), Percentiles: []float64{50, 90, 99.9}, MaxSeries: 1000})
	tb.Cleanup(func() {
		if err := s.writer.to.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// send takes the lines of a packet.
func (s *Server) send(list ...string) {
	from := sender{s: s}
	from.packet([]byte(strings.Join(list, "\n")))
}

// shown prints a sample in its parts, or why it is none.
func (m *sample) shown(err error) string {
	if err != nil {
		return err.Error()
	}
	out := fmt.Sprintf("%s %d %s", m.name, m.kind, m.values)
	if m.rate != (rate{1, 1}) {
		out += fmt.Sprintf(" x%g(%d)", m.rate.each, m.rate.times)
	}
	for _, l := range m.tags {
		out += fmt.Sprintf(" %s=%s", l.Name, l.Value)
	}
	if m.timed {
		out += fmt.Sprintf(" @%d", m.time)
	}
	return out
}

// The lines up to the first blank are examples of the pages of StatsD and DogStatsD.
func TestSamples(t *testing.T) {
	var m sample
	for _, c := range []struct{ src, want string }{
		{"gorets:1|c", "gorets 0 1"},
		{"gorets:1|c|@0.1", "gorets 0 1 x10(10)"},
		{"glork:320|ms|@0.1", "glork 2 320 x10(10)"},
		{"gaugor:333|g", "gaugor 1 333"},
		{"gaugor:-10|g", "gaugor 1 -10"},
		{"gaugor:+4|g", "gaugor 1 +4"},
		{"uniques:765|s", "uniques 3 765"},
		{"page.views:1|c", "page.views 0 1"},
		{"fuel.level:0.5|g", "fuel.level 1 0.5"},
		{"song.length:240|h|@0.5", "song.length 2 240 x2(2)"},
		{"users.online:1|c|#country:china", "users.online 0 1 country=china"},
		{"users.online:1|c|@0.5|#country:china", "users.online 0 1 x2(2) country=china"},
		{"page.views:1:2:32|d", "page.views 2 1:2:32"},
		{"page.views:1|g|#env:dev|c:83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0c918c8d93df19a9de6f3fe1d",
			"page.views 1 1 env=dev"},
		{"page.views:15|c|#env:dev|T1656581400", "page.views 0 15 env=dev @1656581400000000000"},

		{"a:1|c|@0.3", "a 0 1 x3.3333333333333335(0)"},
		{"a:1|c|#b:2,a,,c:,b:1,b:2", "a 0 1 a=true b=1,2"},
		{"a:x:y|s", "a 3 x:y"},
		{"a:1|c||e:it-false|z", "a 0 1"},
		{":1|c", errName.Error()}, {"a", errName.Error()}, {"a:1", errType.Error()},
		{"a:1|x", errType.Error()}, {"a:1|c|@0", errRate.Error()}, {"a:1|c|@2", errRate.Error()},
		{"a:1|c|@nan", errRate.Error()}, {"a:1|c|#:b", errTags.Error()},
		{"a:1|c|T-1", errTime.Error()}, {"a:1|ms|T1", errTime.Error()}, {"a:+1|g|T1", errTime.Error()},
	} {
		if got := m.shown(m.parse([]byte(c.src))); got != c.want {
			t.Errorf("%s: %s, want %s", c.src, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]number{
		"1": {1, 1, true}, "-7": {-7, -7, true}, "+7": {7, 7, true}, "0.5": {0, 0.5, false},
		"1e3": {0, 1000, false}, "1234567890123456789": {0, 1234567890123456789, false},
	} {
		if got, ok := parseNumber([]byte(text)); !ok || got != want {
			t.Errorf("%s is %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "x", "nan", "inf", "0x1", "1_0", "1-2", "1e999"} {
		if got, ok := parseNumber([]byte(text)); ok {
			t.Errorf("%s is %v", text, got)
		}
	}
}

// reader reads points of a store's bucket.
type reader struct {
	t  *testing.T
	st *store.Store
	at int64 // s
}

// value returns the value of a series, by its parts with blanks between them.
func (r *reader) value(name string) float64 {
	r.t.Helper()
	b, err := r.st.BucketByName("b")
	if err != nil {
		r.t.Fatal(err)
	}
	var key []byte
	for part := range strings.FieldsSeq(name) {
		key = metric.AppendPart(key, part)
	}
	words := make([]uint64, 1)
	if err := r.st.Read(r.t.Context(), b, key, r.at, words); err != nil {
		r.t.Fatal(err)
	}
	switch point.KindOf(words[0]) {
	case point.KindInt:
		return float64(point.Int(words[0]))
	case point.KindFloat:
		return point.Float(words[0])
	}
	return math.NaN()
}

func (r *reader) check(name string, want float64) {
	r.t.Helper()
	if got := r.value(name); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		r.t.Errorf("%s is %v at %d, want %v", name, got, r.at, want)
	}
}

// What each type becomes, over three intervals.
func TestIntervals(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	s := newServer(t, st)
	r := reader{t, st, time.Now().Unix() - 100}
	flush := func() {
		t.Helper()
		r.at++
		if err := s.flush(time.Unix(r.at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	s.send("a.b:1|c|#host:x", "a.b:2:3|c|#host:x", "a.b:1|c|@0.1|#host:x", "a.b:0.5|c",
		"g:10|g", "g:+5|g", "g:-1|g", "u:x|s", "u:y|s", "u:x|s", "t:3|ms", "t:1:2|h", "t:10|d|@0.1",
		"a.b:7|ms", "", "bad", "bad:x|c", "bad:1:|c", "bad:1|g|@x")
	flush()
	for name, want := range map[string]float64{
		"a b counter host=x": 16, "a b counter": 0.5, "g gauge": 14, "u set": 2,
		"t count": 13, "t sum": 106, "t mean": 106. / 13, "t lower": 1, "t upper": 10,
		"t upper_50": 10, "t upper_90": 10, "t upper_99_9": 10, "a b count": 1, "a b upper": 7,
	} {
		r.check(name, want)
	}
	s.send("g:+1|g", "a.b:5|c|#host:x", "u:x|s", "t:4|ms")
	flush()
	for name, want := range map[string]float64{
		"a b counter host=x": 5, "a b counter": math.NaN(), "g gauge": 15, "u set": 1, "t count": 1,
		"t upper_50": 4,
	} {
		r.check(name, want)
	}
	flush()
	r.check("g gauge", math.NaN()) // what was not sent is not repeated
	if got := st.Account().Requests(); got["statsd_bad_line"] != 4 || len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// Counters, and values of distributions, are what the naive way makes of them.
func TestSumsAndRanks(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	s := newServer(t, st)
	rng := rand.New(rand.NewPCG(1, 2))
	sums, values := map[string]int{}, map[string][]int{}
	for range 20_000 {
		name := fmt.Sprint("n", rng.IntN(50))
		v, times := rng.IntN(1000), 1+rng.IntN(4)
		s.send(fmt.Sprintf("%s:%d|c|@%v", name, v, 1/float64(times)),
			fmt.Sprintf("%s:%d|ms|@%v", name, v, 1/float64(times)))
		sums[name] += v * times
		for range times {
			values[name] = append(values[name], v)
		}
	}
	r := reader{t, st, time.Now().Unix() - 100}
	if err := s.flush(time.Unix(r.at, 0)); err != nil {
		t.Fatal(err)
	}
	for name, list := range values {
		sort.Ints(list)
		r.check(name+" counter", float64(sums[name]))
		r.check(name+" count", float64(len(list)))
		r.check(name+" upper", float64(slices.Max(list)))
		for i, p := range []float64{50, 90, 99.9} {
			rank := int(math.Ceil(p*float64(len(list))/100 - 1e-9))
			r.check(name+" "+string(s.writer.upper[i]), float64(list[rank-1]))
		}
	}
}

// Integers stay integers up to 63 bits, and become doubles beyond.
func TestTotals(t *testing.T) {
	for _, c := range []struct {
		add  []number
		rate rate
		want uint64
	}{
		{[]number{{1 << 40, 1 << 40, true}, {-1, -1, true}}, rate{3, 3}, point.FromInt(3<<40 - 3)},
		{[]number{{math.MaxInt64, math.MaxInt64, true}, {1, 1, true}}, rate{1, 1},
			point.FromInt(math.MaxInt64)},
		{[]number{{0, 0.1, false}, {0, 0.2, false}}, rate{1, 1}, point.FromFloat(0.30000000000000004)},
		{[]number{{1, 1, true}}, rate{0, 2.5}, point.FromFloat(2.5)},
	} {
		var sum total
		for _, n := range c.add {
			sum.add(n, c.rate)
		}
		if got := sum.word(); got != c.want {
			t.Errorf("%v: %x, want %x", c.add, got, c.want)
		}
	}
}

// What is beyond a limit is counted, and costs nobody else anything; silent series make room.
func TestLimits(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	s := newServer(t, st)
	s.table.limits.kept = 10
	for i := range 1010 {
		s.send(fmt.Sprintf("c%d:1|c", i))
	}
	for i := range 20 {
		s.send(fmt.Sprintf("c0:%d|c", i), "c1:1|ms")
	}
	if err := s.flush(time.Now()); err != nil {
		t.Fatal(err)
	}
	for range s.table.limits.idle + 1 {
		if err := s.flush(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		s.send(fmt.Sprintf("t:%d|ms", i), fmt.Sprintf("u:%d|s", i))
	}
	at := time.Now().Add(time.Second)
	if err := s.flush(at); err != nil {
		t.Fatal(err)
	}
	r := reader{t, st, at.Unix()}
	r.check("t count", 20)
	r.check("t sum", 190)
	r.check("t upper", 19)
	got := st.Account().Requests()
	if got["statsd_series_limit"] != 30 || got["statsd_value_not_kept"] == 0 || s.Series() != 2 {
		t.Errorf("%v, %d series", got, s.Series())
	}
}

// Lines with a time are stored at once, and events as events.
func TestQueue(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	s := newServer(t, st)
	r := reader{t, st, time.Now().Unix() - 50}
	s.send(fmt.Sprintf("a:2:3|c|@0.5|#h:x|T%d", r.at), fmt.Sprintf("g:1:7|g|T%d", r.at),
		fmt.Sprintf(`_e{5,10}:title|text\nmore|d:%d|h:web|p:low|t:error|#a:b,c`, r.at),
		"_sc|Redis connection|2|#env:dev|m:timed out|after 10s",
		"_e{5,4}:title", "_e{9,9}:x|y", "_sc|x|7", "_sc|x")
	if err := s.storeQueue(); err != nil {
		t.Fatal(err)
	}
	r.check("a counter h=x", 10)
	r.check("g gauge", 7)
	var o occurrence
	for line, want := range map[string]string{
		`_e{5,10}:title|text\nmore|d:7|h:web|p:low|t:error|#a:b,c`: `{"host":"web","priority":"low",` +
			`"alert_type":"error","title":"title","message":"text\nmore","tags":{"a":"b","c":"true"}}`,
		"_sc|Redis connection|2|#env:dev|m:timed out|after 10s": `{"check":"Redis connection",` +
			`"level":"critical","message":"timed out|after 10s","status":2,"tags":{"env":"dev"}}`,
	} {
		if err := o.parse([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if got := termJSON(o.appendTerm(nil)); got != want {
			t.Errorf("%s\nis   %s,\nwant %s", line, got, want)
		}
	}
	if got := st.Account().Requests(); got["statsd_bad_event"] != 4 || len(got) != 1 {
		t.Errorf("%v", got)
	}
	b, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Events().Account().Total(b.ID); got.Accepted != 2 {
		t.Errorf("events: %+v", got)
	}
	big := strings.Repeat("x", 10_000)
	for range 600 {
		s.send(fmt.Sprintf("a:1|c|#h:%s|T%d", big, r.at))
	}
	if got := st.Account().Requests()["statsd_queue_full"]; got == 0 || got > 300 {
		t.Errorf("%d lines are beyond the queue", got)
	}
}

// heldBack is a store that holds senders back until it is told to go on.
type heldBack struct {
	write.Target
	waits, goes chan struct{}
}

func (h *heldBack) EnsureBucket(name string, form buckets.Form) (buckets.Info, error) {
	h.waits <- struct{}{}
	<-h.goes
	return h.Target.EnsureBucket(name, form)
}

// While the store holds the writer back, samples go on being added up, and none is lost.
func TestBackpressure(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	h := &heldBack{st.Intake(), make(chan struct{}), make(chan struct{})}
	s := New(Options{Points: h, Tags: tagstore.Tagger{Of: st.Tags()}, Events: st.Events(),
		Memory: st.Memory(), Account: st.Account(), Now: st.Now, Bucket: "b",
		Logger: slog.New(slog.DiscardHandler)})
	r := reader{t, st, time.Now().Unix() - 100}
	for i := range 2 {
		s.send("a:1|c", "t:1|ms")
		flushed := make(chan error)
		go func() { flushed <- s.flush(time.Unix(r.at+int64(i), 0)) }()
		<-h.waits
		for range 1000 {
			s.send("a:1|c", "t:2|ms")
		}
		h.goes <- struct{}{}
		if err := <-flushed; err != nil {
			t.Fatal(err)
		}
	}
	r.check("a counter", 1)
	r.at++
	r.check("a counter", 1001)
	r.check("t sum", 2001)
	if err := s.writer.to.Close(); err != nil {
		t.Fatal(err)
	}
}

// Samples whose bucket cannot be are counted one by one.
func TestNoBucket(t *testing.T) {
	o := storetest.Options()
	o.UnknownBuckets.Create = false
	st := storetest.Open(t, o)
	s := newServer(t, st)
	s.send("a:1|c", "a:2:3|c", "b:1|ms", "_sc|x|0", "c:1|c|T1656581400")
	if err := s.storeQueue(); err != nil {
		t.Fatal(err)
	}
	if err := s.flush(time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := st.Account().Requests(); got["statsd_unknown_bucket"] != 5 {
		t.Errorf("%v", got)
	}
}

// Intervals end at multiples of them, and the first one in a later second than the start.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		interval         time.Duration
		now, first, next string
	}{
		{10 * time.Second, "10:00:09.9", "10:00:10", "10:00:10"},
		{10 * time.Second, "10:00:10", "10:00:20", "10:00:20"},
		{time.Second, "10:00:10.2", "10:00:11", "10:00:11"},
		{1500 * time.Millisecond, "10:00:10.2", "10:00:12", "10:00:10.5"},
		{time.Hour, "10:00:10.2", "11:00:00", "11:00:00"},
	} {
		at := func(text string) time.Time {
			v, err := time.Parse("15:04:05", text)
			if err != nil {
				t.Fatal(err)
			}
			return v.AddDate(2026, 0, 0)
		}
		s := &Server{o: Options{Interval: c.interval}}
		if first, next := s.firstEnd(at(c.now)), s.nextEnd(at(c.now)); first != at(c.first) ||
			next != at(c.next) {
			t.Errorf("%v at %s: %v and %v", c.interval, c.now, first, next)
		}
	}
}

// After the last flush everything is refused, and counted.
func TestFinish(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	s := newServer(t, st)
	s.send("a:1|c")
	at := time.Now()
	if err := s.flush(at); err != nil {
		t.Fatal(err)
	}
	s.send("a:2|c")
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	s.send("a:3|c", "_sc|x|0")
	r := reader{t, st, at.Unix()}
	r.check("a counter", 1)
	r.at = s.writer.last.Unix()
	r.check("a counter", 2) // in another slot, however soon the stop came
	if got := st.Account().Requests(); got["statsd_shutdown"] != 2 {
		t.Errorf("%v", got)
	}
}

// FuzzLines: no line stops the server, and each is taken or counted.
func FuzzLines(f *testing.F) {
	for _, line := range []string{"a.b:1:2|c|@0.1|#h:x,y|c:1|T1", "_e{1,2}:a|bc|d:1|#a",
		"_sc|a|1|m:x"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		table := newTable(limits{series: 10, kept: 10, idle: 1, idleGauge: 1})
		var m sample
		var o occurrence
		switch {
		case isOccurrence(line):
			if o.parse(line) == nil {
				o.appendTerm(nil)
			}
		case m.parse(line) == nil:
			reason := table.add(&m)
			list, skipped := table.take(nil)
			if (reason == "") != (len(list) == 1) || skipped > len(line) {
				t.Errorf("%q: %s, %d results", line, reason, len(list))
			}
		}
	})
}
