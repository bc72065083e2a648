package compare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"go.uber.org/goleak"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/report"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two is a block of two rows of two metrics.
func two() *block { return &block{slot: 1_700_000_000, rows: 2, values: []int64{1, -2, 30, 40}} }

func TestLines(t *testing.T) {
	for _, c := range []struct {
		encode encoder
		want   string
	}{
		{graphiteLines(7, 2), `agent.000007.metrics.000000 1 1700000000
agent.000007.metrics.000001 -2 1700000000
agent.000007.metrics.000000 30 1700000001
agent.000007.metrics.000001 40 1700000001
`},
		{influxLines(7, 2), `metrics,agent=000007,metric=000000 value=1i 1700000000000000000
metrics,agent=000007,metric=000001 value=-2i 1700000000000000000
metrics,agent=000007,metric=000000 value=30i 1700000001000000000
metrics,agent=000007,metric=000001 value=40i 1700000001000000000
`},
		{csvLines(7, 2), `000007,000000,1,1700000000
000007,000001,-2,1700000000
000007,000000,30,1700000001
000007,000001,40,1700000001
`},
	} {
		if got := string(c.encode(nil, two())); got != c.want {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
	}
}

func TestBatches(t *testing.T) {
	encoded := batches(7, 2)(nil, two())
	var want []byte
	for r, slot := range []uint64{1_700_000_000, 1_700_000_001} {
		want = wire.AppendBatchStart(want, slot)
		for i := range 2 {
			want = wire.AppendBatchPoint(want, key(7, i), point.FromInt(two().values[2*r+i]))
		}
		want = wire.AppendBatchEnd(want)
	}
	if want = wire.AppendFlush(want); string(encoded) != string(want) {
		t.Errorf("got % x, want % x", encoded, want)
	}
}

// message reads the fields of a protobuf message: of varints and doubles the
// number, of the others the bytes.
func message(t *testing.T, b []byte) (keys []uint64, fields [][]byte, numbers []uint64) {
	t.Helper()
	for len(b) > 0 {
		k, n := binary.Uvarint(b)
		b = b[n:]
		var field []byte
		var number uint64
		switch k & 7 {
		case 0:
			number, n = binary.Uvarint(b)
			b = b[n:]
		case 1:
			number, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			field, b = b[n:n+int(size)], b[n+int(size):]
		default:
			t.Fatalf("field key %d", k)
		}
		keys, fields, numbers = append(keys, k>>3), append(fields, field), append(numbers, number)
	}
	return keys, fields, numbers
}

func TestRemoteWrite(t *testing.T) {
	raw, err := s2.Decode(nil, remoteWrite(7, 2)(make([]byte, 0, 10), two()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	_, series, _ := message(t, raw)
	for _, s := range series {
		keys, fields, _ := message(t, s)
		for i, f := range fields {
			if keys[i] == 1 {
				_, label, _ := message(t, f)
				got = append(got, string(label[0])+"="+string(label[1]))
				continue
			}
			_, _, sample := message(t, f)
			got = append(got, fmt.Sprint(math.Float64frombits(sample[0]), " ", sample[1]))
		}
	}
	want := []string{
		"__name__=metrics", "agent=000007", "metric=000000", "1 1700000000000", "30 1700000001000",
		"__name__=metrics", "agent=000007", "metric=000001", "-2 1700000000000", "40 1700000001000",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// sink is a server that keeps what it reads, as one message.
type sink struct{ got strings.Builder }

func (k *sink) send(_ context.Context, message []byte) error { k.got.Write(message); return nil }
func (k *sink) finish(context.Context) error                 { return nil }
func (k *sink) abandon()                                     {}

// A sender sends every point of its span once, in the order of time.
func TestSpan(t *testing.T) {
	k := &sink{}
	p := &protocol{encoder: csvLines, dial: func(context.Context, *instance) (conn, error) {
		return k, nil
	}}
	s, err := newSender(context.Background(), nil, p, 3, 40)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = 1_700_000_000, 1_700_000_005
	if err := s.span(context.Background(), from, to, 2); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for at := int64(from); at < to; at++ {
		for i := range 40 {
			it := mix().Series(3, i)
			fmt.Fprintf(&want, "000003,%06d,%d,%d\n", i, it.At(at), at)
		}
	}
	if k.got.String() != want.String() {
		t.Errorf("%d bytes differ from the %d expected", k.got.Len(), want.Len())
	}
}

// testServer is a server of which only the ports are there.
func testServer(t *testing.T, addr net.Addr) *instance {
	t.Helper()
	return &instance{ports: map[string]int{"p": addr.(*net.TCPAddr).Port}}
}

// finish over TCP waits until the other side has read everything.
func TestFinishWaits(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	read := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		text, _ := io.ReadAll(c)
		read <- string(text)
		c.Close()
	}()
	c, err := overTCP("p")(context.Background(), testServer(t, ln.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.send(context.Background(), []byte("a ")),
		c.send(context.Background(), []byte("b")), c.finish(context.Background())); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-read:
		if got != "a b" {
			t.Errorf("got %q", got)
		}
	default:
		t.Error("finish returned before the other side had read")
	}
}

// An answer that is no success fails a load, with its text.
func TestRefusalsAreErrors(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("A") != "b" {
			t.Errorf("header is %v", r.Header)
		}
		http.Error(w, "out of order", http.StatusBadRequest)
	}))
	defer srv.Close()
	c, err := overHTTP("p", "/write", "A", "b")(context.Background(),
		testServer(t, srv.Listener.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.abandon()
	if err := c.send(context.Background(), []byte("x")); err == nil ||
		!strings.Contains(err.Error(), "out of order") {
		t.Errorf("got %v", err)
	}
}

func TestUntil(t *testing.T) {
	asked := 0
	if err := until(context.Background(), "x", func() (bool, error) {
		asked++
		return asked == 2, nil
	}); err != nil || asked != 2 {
		t.Errorf("got %v after %d times", err, asked)
	}
	failure := errors.New("no connection")
	if err := until(context.Background(), "x", func() (bool, error) {
		return false, failure
	}); err != failure {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := until(ended, "x", func() (bool, error) { return true, nil }); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// The questions are over what was sent, and a wrong answer is noticed.
func TestQuestions(t *testing.T) {
	d := day{begin: 1_700_006_400 - 1_700_006_400%3600, long: 100, wide: 30}
	for _, q := range d.questions() {
		if q.from < d.begin || q.to != d.end() || q.agent == hourAgent && q.from < d.end()-hourSeconds {
			t.Errorf("%s is from %d to %d", q.what, q.from, q.to)
		}
		for _, i := range q.metrics {
			if q.agent == dayAgent && i >= quick().day.long {
				t.Errorf("%s asks for metric %d, which is not sent with -quick", q.what, i)
			}
		}
		want := q.want(&d, false)
		if err := q.check(want, want); err != nil {
			t.Error(err)
		}
		for name, values := range want {
			if len(values) != q.steps() {
				t.Errorf("%s: %d values of %q, want %d", q.what, len(values), name, q.steps())
			}
			for _, wrong := range []answer{{}, {name: values[1:]},
				{name: append([]float64{values[0] * 1.001}, values[1:]...)},
				{name: append([]float64{math.NaN()}, values[1:]...)}} {
				for other, v := range want {
					if _, there := wrong[other]; !there && len(wrong) > 0 {
						wrong[other] = v
					}
				}
				if q.check(wrong, want) == nil {
					t.Errorf("%s: a wrong answer is taken", q.what)
				}
			}
		}
	}
	q := question{agent: 2, metrics: []int{9}, from: 1000, to: 1004, every: 2}
	it := mix().Series(2, 9)
	if got, want := q.want(&d, false)[metricName(9)],
		float64(max(it.At(1002), it.At(1003))); len(got) != 2 || got[1] != want {
		t.Errorf("got %v, want %v as the second", got, want)
	}
	if got, want := q.want(&d, true)[metricName(9)],
		float64(max(it.At(1003), it.At(1004))); len(got) != 2 || got[1] != want {
		t.Errorf("behind their begin: got %v, want %v as the second", got, want)
	}
	last := d.questions()[0]
	if begin, end := last.seconds(&d, last.steps()-1, true); begin != d.end()-last.every+1 ||
		end != d.end() {
		t.Errorf("the last step is from %d to %d, the day ends at %d", begin, end, d.end())
	}
}

// Each language's answers are read to the same.
func TestAnswers(t *testing.T) {
	q := &question{metrics: []int{4, 18}}
	want := answer{"000004": {1, 2.5}, "000018": {3, 4}}
	for _, c := range []struct {
		name string
		read func([]byte, *question) (answer, error)
		body string
	}{
		{"DQL", readDQL, `{"results":[{"values":[1,2.5],"coverage":1},{"values":[3,4],"coverage":1}]}`},
		{"PromQL", readPromQL,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"agent":"x","metric":"000018"},"values":[[1,"3"],[2,"4"]]},{"metric":{"metric":"000004"},"values":[[1,"1"],[2,"2.5"]]}]}}`},
		{"InfluxQL", readInfluxQL,
			`{"results":[{"statement_id":0,"series":[{"name":"metrics","tags":{"metric":"000004"},"columns":["time","max"],"values":[[1,1],[2,2.5]]},{"tags":{"metric":"000018"},"values":[[1,3],[2,4]]}]}]}`},
		{"Graphite", readGraphite,
			`[{"target":"a","datapoints":[[1,60],[2.5,120]]},{"target":"b","datapoints":[[3.0,60],[4,120]]}]`},
		{"QuestDB", readQuest,
			`{"columns":[],"dataset":[["2026","000004",1],["2026","000018",3],["2026","000004",2.5],["2026","000018",4]]}`},
		{"ClickHouse", readClickHouse,
			`{"meta":[],"data":[["2026","000004",1],["2026","000004",2.5],["2026","000018",3],["2026","000018",4]]}`},
	} {
		got, err := c.read([]byte(c.body), q)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, want)
		}
		if _, err := c.read([]byte(c.body[:len(c.body)/2]), q); err == nil {
			t.Errorf("%s: half an answer is taken", c.name)
		}
	}
	if _, err := readInfluxQL([]byte(`{"results":[{"error":"no such thing"}]}`), q); err == nil {
		t.Error("an error of InfluxDB is taken for an answer")
	}
}

// What has the wrong checksum is not kept.
func TestChecksums(t *testing.T) {
	c := &cache{t.TempDir()}
	f := file{"a", "1", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
	fetch := func(text string) error {
		_, err := c.have("a-1", func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "a_1.deb"), []byte(text), 0o644); err != nil {
				return err
			}
			_, err := f.check(dir, "a_*.deb")
			return err
		})
		return err
	}
	if err := fetch("hallo"); err == nil || !strings.Contains(err.Error(), f.sum) {
		t.Errorf("got %v, want the checksum that was expected", err)
	}
	if left, err := os.ReadDir(c.dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left", left, err)
	}
	if err := fetch("hello"); err != nil {
		t.Error(err)
	}
	if err := fetch("never looked at again"); err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"data/wal/1", "data/a", "b/wal7/x", "b/c"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 8192), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := usage(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := usage(dir, []string{"data/wal", "b/wal*"})
	if err != nil || kept*2 != all || kept == 0 {
		t.Errorf("%d, %v without logs, %d with them; want half", kept, err, all)
	}
}

func TestChoose(t *testing.T) {
	all := competitors("bin")
	chosen, err := choose(all, "victoria")
	if err != nil || len(chosen) != 2 || chosen[0] != all[0] || chosen[1].name != "VictoriaMetrics" {
		t.Errorf("got %v, %v", chosen, err)
	}
	if chosen, err := choose(all, ""); err != nil || len(chosen) != len(all) {
		t.Errorf("got %v, %v", chosen, err)
	}
	if _, err := choose(all, "nothing of that name"); err == nil ||
		!strings.Contains(err.Error(), "QuestDB") {
		t.Errorf("got %v, want the names there are", err)
	}
}

// aTable is a table with outcomes of every kind: good ones, failed ones and skipped ones.
func aTable() *Table {
	all := competitors("bin")
	return &Table{head: report.Head{Begun: time.Unix(0, 0)}, loadAfter: "Load average 0.1",
		sizes: quick(), quick: true, corpora: []*corpus.Corpus{{Name: "busy"}, {Name: "self"}},
		bounds: []bound{{"xz", "busy", 0.1}, {"xz", "self", 0.4}, {"zstd", "busy", 0.15}},
		outcomes: []*outcome{
			{competitor: all[0], version: "1", cores: 0.01, share: 1, resting: 100 << 20, space: 0.4,
				timings: []timing{{2, 1, 0.5}, {4, 2, 1}, {8, 4, 2}},
				recorded: []recorded{{"slots", "busy", 0.4, nil}, {"timestamps (hpts)", "busy", 0.5, nil},
					{"slots", "self", 0, errors.New("half of it")}},
				loads: []loaded{
					{protocol: all[0].protocols[0].name, rows: 180, cpu: 0.1, rate: 3, peak: 200 << 20},
					{protocol: graphiteProtocol, rows: 180, cpu: 0.2, rate: 2, peak: 200 << 20},
				}},
			{competitor: all[1], version: "2", cores: 0.04, share: 1, resting: 50 << 20, space: 0.5,
				timings:  []timing{{9, 3, 2}},
				recorded: []recorded{{"", "busy", 0.2, nil}, {"", "self", 0.8, nil}},
				askErr:   errors.New("cut off"),
				loads: []loaded{
					{protocol: remoteWriteProtocol, rows: 60, cpu: 1, rate: 1, peak: 300 << 20},
					{protocol: graphiteProtocol, rows: 60, cpu: 0.5, rate: 1, peak: 1 << 20},
				}},
			{competitor: all[3], cores: 0.5, share: 0.45, resting: 50 << 20, dayErr: errors.New("gone"),
				loads: []loaded{{protocol: influxProtocol, rows: 60, cpu: 1, rate: 1, peak: 300 << 20}}},
			{competitor: all[2], skipped: errors.New("no network")},
			{competitor: all[4], liveErr: errors.New("lost"), dayErr: errors.New("gone"),
				loads: []loaded{{protocol: graphiteProtocol, rows: 10, err: errors.New("too slow")}}},
		}}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	aTable().Render(&out)
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	text := strings.Join(rows, "\n")
	for _, want := range []string{
		"Measured with -quick",
		"| Dalmatiner | 0.100 | 0.0100 | 100 | 2.00 / 1.00 / 0.500 | 4.00 / 2.00 / 1.00 | " +
			"8.00 / 4.00 / 2.00 |",
		"| bytes / point | generated | busy | self |",
		"| Dalmatiner, slots | 0.400 | 0.400 | |",
		"| VictoriaMetrics | 0.500 | 0.200 | 0.800 |",
		"| VictoriaMetrics | remote write | 60 | 1.00 | 1.00 | 300 | 0.500 | 0.0400 | 50 | " +
			"9.00 / 3.00 / 2.00 | FAILED | FAILED | | 10.0 × | 1.50 × | 1.25 × | 4.00 × | " +
			"3.00 × / 4.00 × | | |",
		"| VictoriaMetrics | Graphite lines | 60 | 0.500 | 1.00 | 1 | | | | | | | 2.50 × | | | | | | | |",
		"| InfluxDB | InfluxDB lines | 60 | 1.00 | 1.00 | 300 | FAILED | 0.500 (45 %) | 50 | FAILED | " +
			"FAILED | FAILED | | 10.0 × | 1.50 × | | | | | |",
		"| Prometheus | SKIPPED | | | | | | | | | | | | | | | | | | |",
		"| Graphite (carbon-cache) | Graphite lines | 10 | FAILED | | | FAILED | FAILED | | FAILED | " +
			"FAILED | FAILED | | | | | | | | |",
		"| store | keeps | busy | self | busy × | self × |",
		"| dalmatiner | slots | 0.400 | FAILED | 2.00 × | |",
		"| dalmatiner | timestamps (hpts) | 0.500 | | 2.50 × | |",
		"| VictoriaMetrics | | 0.200 | 0.800 | 1.00 × | 1.00 × |",
		"| bound | xz | 0.100 | 0.400 | 0.500 × | 0.500 × |", "| bound: xz | | 0.100 | 0.400 |",
		"| bound | zstd | 0.150 | | 0.750 × | |",
		"recordings FAILED: recording self: half of it",
		"SKIPPED, it cannot be had: no network",
		"Graphite lines FAILED: too slow; live FAILED: lost; day FAILED: gone",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestBenchmarksOfATable(t *testing.T) {
	var named []string
	for _, l := range aTable().Benchmarks() {
		named = append(named, l.Name)
	}
	if want := []string{
		"Compare/store=dalmatiner/protocol=own_stream_batches",
		"Compare/store=dalmatiner/protocol=Graphite_lines",
		"Compare/store=dalmatiner/live", "Compare/store=dalmatiner/space", "Compare/store=dalmatiner/Q1",
		"Compare/store=dalmatiner/Q2", "Compare/store=dalmatiner/Q3",
		"Compare/store=dalmatiner/recording=busy_slots",
		"Compare/store=dalmatiner/recording=busy_timestamps_hpts",
		"Compare/store=VictoriaMetrics/protocol=remote_write",
		"Compare/store=VictoriaMetrics/protocol=Graphite_lines",
		"Compare/store=VictoriaMetrics/live", "Compare/store=VictoriaMetrics/space",
		"Compare/store=VictoriaMetrics/Q1",
		"Compare/store=VictoriaMetrics/recording=busy", "Compare/store=VictoriaMetrics/recording=self",
		"Compare/store=InfluxDB/protocol=InfluxDB_lines", "Compare/store=InfluxDB/live",
	}; !reflect.DeepEqual(named, want) {
		t.Errorf("in Go's format are %q, want %q", named, want)
	}
}

func TestFailuresOfATable(t *testing.T) {
	err := aTable().Failures()
	for _, want := range []string{"cut off", "too slow", "lost", "gone", "half of it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("failures are %v, without %q", err, want)
		}
	}
	if strings.Contains(fmt.Sprint(err), "no network") {
		t.Error("what is skipped counts as failed")
	}
}
