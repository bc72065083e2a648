package rows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
)

const (
	eventBucket = "web"
	eventAsked  = 9                // times that each question is repeated, of which the median counts
	eventWait   = time.Minute      // for syslog messages that are under way
	eventIdle   = time.Second / 20 // of processor time in a second: merges of files of events are over
)

// failing is what the filters look for.
func failing(r *load.Request) bool { return r.Status == 503 }

func everything(*load.Request) bool { return true }

// eventIntake is a way for events to come.
type eventIntake struct {
	name   string
	note   string
	filter string // for failing
	format string // name of what size compares with
	told   func(event []byte) (load.Request, error)
	send   func(ctx context.Context, e *load.Events, s *server.Server) error
	asked  bool // queries are measured, too
}

var eventIntakes = []eventIntake{
	{name: "syslog", filter: "data.'req@32473'.status == '503'", format: "a message",
		told: load.ToldBySyslog, send: sendSyslog,
		note: fmt.Sprintf("%d connections over TCP, RFC 5424 behind lengths; until the account has all",
			load.Connections)},
	{name: "opcode 13", filter: "status == 503", format: "JSON", told: load.Told,
		send: func(ctx context.Context, e *load.Events, s *server.Server) error {
			return e.Write(ctx, s, eventBucket)
		},
		note: fmt.Sprintf("%d connections, each waits until 1,000 events are stored", load.Connections)},
	{name: "HTTP", filter: "status == 503", format: "JSON", told: load.Told, asked: true,
		send: func(ctx context.Context, e *load.Events, s *server.Server) error {
			return e.Post(ctx, s, eventBucket)
		},
		note: fmt.Sprintf("JSON lines, %d posts of %d at once, each durable when it is answered",
			load.EventPosts, load.EventLines)},
}

// eventRun is a server that gets events one way.
type eventRun struct {
	*bench
	*eventIntake
	e    *load.Events
	s    *server.Server
	area string
}

// events sends 1 M events each way that they come, and asks for those that came over HTTP.
func (b *bench) events(ctx context.Context) error {
	n := 1_000_000
	if b.Quick {
		n /= 10
	}
	for i := range eventIntakes {
		r := &eventRun{
			bench:       b,
			eventIntake: &eventIntakes[i],
			e:           load.NewEvents(n),
			area:        fmt.Sprintf("events, %d k", n/1000),
		}
		if err := r.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (r *eventRun) run(ctx context.Context) (err error) {
	if r.s, err = r.Start(filepath.Join(r.Dir, "events"), "syslog.addr=127.0.0.1:0",
		"syslog.bucket="+eventBucket); err != nil {
		return err
	}
	defer func() { r.s.Remove() }()
	if err := r.ingest(ctx); err != nil {
		return err
	}
	if err := r.disk(ctx); err != nil {
		return err
	}
	if err := r.counts(ctx); err != nil {
		return err
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	return r.s.Stop()
}

// restart stops the server and starts it again: nothing that it keeps in memory answers then.
func (r *eventRun) restart() error {
	if err := r.s.Stop(); err != nil {
		return err
	}
	again, err := r.Start(r.s.Data)
	if err == nil {
		r.s = again
	}
	return err
}

// ingest adds what an event costs, and the rate.
func (r *eventRun) ingest(ctx context.Context) error {
	before, err := r.s.CPU()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := r.send(ctx, r.e, r.s); err != nil {
		return errors.Join(err, errors.New(r.s.LastLines()))
	}
	took := time.Since(begun)
	if _, err := r.s.Client().Flush(ctx); err != nil {
		return err
	}
	after, err := r.s.CPU()
	if err != nil {
		return err
	}
	if n, err := storedEvents(ctx, r.s); err != nil || n != uint64(r.e.N) {
		return errors.Join(err, fmt.Errorf("%d events were sent, the account has %d", r.e.N, n))
	}
	used := after.Sub(before)
	per := func(d time.Duration) float64 { return float64(d) / float64(r.e.N) / 1000 }
	r.table.Add(report.Figure{
		Area:  r.area,
		What:  "intake, " + r.name,
		Unit:  "µs/event",
		Value: per(used.Sum()),
	}.
		Because("processor time, with flushes; %.2f of it in the kernel", per(used.Sys)))
	r.table.Add(report.Figure{
		Area:  r.area,
		What:  "rate, " + r.name,
		Unit:  "k events/s",
		Value: float64(r.e.N) / took.Seconds() / 1000,
	}.
		Because("%s; senders share the cores", r.note))
	return nil
}

// storedEvents returns the events that the account has as stored. It is an error when it has
// others.
func storedEvents(ctx context.Context, s *server.Server) (uint64, error) {
	a, err := s.Client().Account(ctx, "", 0)
	if err != nil {
		return 0, err
	}
	for _, row := range a.Events.Rows {
		if row.Bucket != eventBucket {
			continue
		}
		if row.Accepted+row.Late != row.Received {
			return 0, fmt.Errorf("events are not stored: %+v", row)
		}
		return row.Received, nil
	}
	return 0, nil
}

var syslogLine = regexp.MustCompile(`msg="syslog messages" addr=(\S+)`)

// sendSyslog sends events as syslog messages and waits until the server has them.
func sendSyslog(ctx context.Context, e *load.Events, s *server.Server) error {
	addr := ""
	for _, line := range s.Lines() {
		if m := syslogLine.FindStringSubmatch(line); m != nil {
			addr = m[1]
		}
	}
	if err := e.Syslog(ctx, addr); err != nil {
		return err
	}
	for left := time.Now().Add(eventWait); ; {
		n, err := storedEvents(ctx, s)
		if err != nil || n == uint64(e.N) {
			return err
		}
		if time.Now().After(left) {
			return fmt.Errorf("%d events were sent, %d came within %v", e.N, n, eventWait)
		}
		if err := measure.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// disk adds the size of an event once its files are merged as far as they are by themselves.
func (r *eventRun) disk(ctx context.Context) error {
	for before := time.Duration(-time.Hour); ; {
		now, err := r.s.CPU()
		if err != nil {
			return err
		}
		if now.Sum()-before < eventIdle {
			break
		}
		before = now.Sum()
		if err := measure.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	var stat [4]float64
	for i, name := range []string{"event_file_bytes", "event_file_events", "event_files",
		"event_merges_total"} {
		var err error
		if stat[i], err = r.s.Stat(ctx, name); err != nil {
			return err
		}
	}
	if stat[1] != float64(r.e.N) {
		return fmt.Errorf("files have %.0f events of %d", stat[1], r.e.N)
	}
	r.table.Add(report.Figure{
		Area:  r.area,
		What:  "size, " + r.name,
		Unit:  "B/event",
		Value: stat[0] / float64(r.e.N),
	}.
		Because("files after a flush: %.0f, merges: %.0f; %d B as %s, 16 of them a random id", stat[2],
			stat[3], r.sentBytes(), r.format))
	return nil
}

// sentBytes returns the size of an event as it was sent, the mean of some.
func (r *eventRun) sentBytes() int {
	sent, some := 0, 1000
	for i := range some {
		switch {
		case r.format != "JSON":
			sent += len(r.e.AppendSyslog(nil, i))
		default:
			sent += len(r.e.AppendLine(nil, i))
		}
	}
	return sent / some
}

// counts asks for the number of events of each minute, of all and of those that a filter picks.
func (r *eventRun) counts(ctx context.Context) error {
	start, end := r.e.Range()
	over := load.Over(start.Unix(), end.Unix(), 60)
	for _, q := range []load.Query{
		{
			What: "count",
			Text: fmt.Sprintf("count(EVENTS FROM %s, 1m)", eventBucket),
			Want: [][]float64{r.e.PerMinute(everything)},
		},
		{
			What: "count with a filter",
			Text: fmt.Sprintf("count(EVENTS FROM %s WHERE %s, 1m)", eventBucket, r.filter),
			Want: [][]float64{r.e.PerMinute(failing)},
		},
	} {
		if err := r.restart(); err != nil {
			return err
		}
		note := fmt.Sprintf("`%s`, %d steps", q.Text, len(q.Want[0]))
		q.Text = "SELECT " + q.Text + " " + over.DQL()
		ms, _, err := ask(ctx, r.s, false, slices.Repeat([]load.Query{q}, r.times())...)
		if err != nil {
			return fmt.Errorf("%s: %w", q.What, err)
		}
		r.asking(q.What, ms, note)
	}
	return nil
}

// list asks for all events, and for those that a filter picks, as the page does.
func (r *eventRun) list(ctx context.Context) error {
	if _, _, err := r.get(ctx, "", everything); err != nil {
		return fmt.Errorf("all events: %w", err)
	}
	if err := r.restart(); err != nil {
		return err
	}
	var ms []float64
	found := 0
	for range r.times() {
		n, took, err := r.get(ctx, r.filter, failing)
		if err != nil {
			return err
		}
		found, ms = n, append(ms, float64(took)/float64(time.Millisecond))
	}
	r.asking("GET /events with a filter", ms,
		fmt.Sprintf("%d of %d events, over HTTP to the last byte", found, r.e.N))
	return nil
}

// get reads the events of the range that a filter picks. It returns how many they are, and how long
// the answer took. They must be those that are wanted.
func (r *eventRun) get(ctx context.Context, filter string, want func(*load.Request) bool) (
	found int, took time.Duration, err error) {
	start, end := r.e.Range()
	form := url.Values{
		"bucket": {eventBucket}, "filter": {filter}, "limit": {"1000000"},
		"start": {strconv.FormatInt(start.UnixMilli(), 10)},
		"end":   {strconv.FormatInt(end.UnixMilli(), 10)},
	}
	begun := time.Now()
	body, err := get(ctx, "http://"+r.s.HTTP+"/events?"+form.Encode())
	took = time.Since(begun)
	if err != nil {
		return 0, 0, err
	}
	found, err = r.e.CheckList(body, want, r.told)
	return found, took, err
}

// times is how often a question is asked.
func (r *eventRun) times() int {
	if r.asked {
		return 1 + eventAsked
	}
	return 1
}

// asking adds how long a question took, at first and again, unless it was asked only to check the
// answer.
func (r *eventRun) asking(what string, ms []float64, note string) {
	if !r.asked {
		return
	}
	r.table.Add(report.Median(r.area, what+", first", "ms", ms[:1]).Because("process just started, "+
		"page cache as it is; %s", note))
	r.table.Add(report.Median(r.area, what+", repeated", "ms", ms[1:]).Because("%s", note))
}

// get returns the answer to a request.
func get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", resp.Status, body)
	}
	return body, err
}
