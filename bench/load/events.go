package load

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/model/term"
	"dalmatiner/internal/wire"
)

// EventSpan is how long the events of a load last, whatever their number.
const EventSpan = 1000 * time.Second

// Events is a load of events, lines of a web server's log. Each event follows from its number, so
// answers can be computed again.
type Events struct {
	Start time.Time // of a minute
	N     int       // EventSpan is a multiple of N µs
}

// NewEvents returns a load of n events that end some minutes ago.
func NewEvents(n int) *Events {
	return &Events{time.Now().Add(-EventSpan - 5*time.Minute).Truncate(time.Minute), n}
}

// Request is what an event tells.
type Request struct {
	Host   string `json:"host"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	Bytes  int    `json:"bytes"`
	Micros int    `json:"us"`
	User   string `json:"user"`
	ID     string `json:"id"`
}

// mixed returns a number that looks like chance (splitmix64).
func mixed(i int) uint64 {
	x := uint64(i) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Time returns the time of an event in nanoseconds, which is a multiple of a microsecond: syslog
// has no finer ones. A later event has a later time.
func (e *Events) Time(i int) int64 {
	step := int64(EventSpan) / int64(e.N)
	return e.Start.UnixNano() + int64(i)*step + int64(mixed(i)%uint64(step/1000))*1000
}

// At returns an event. One of 100 has status 503.
func (e *Events) At(i int) Request {
	h := mixed(i + e.N)
	status := 200
	switch d := h % 100; {
	case d == 0:
		status = 503
	case d < 8:
		status = 404
	case d < 20:
		status = 302
	}
	method := "GET"
	if h>>8%8 == 0 {
		method = "POST"
	}
	return Request{
		Host: "web-" + strconv.Itoa(int(h>>12%50)), Method: method, Path: "/shop/item/" +
			strconv.Itoa(int(h>>20%20_000)), Status: status,
		Bytes: int(h >> 36 % 50_000), Micros: int(h >> 40 % 1_000_000), User: "user-" +
			strconv.Itoa(int(h>>16%10_000)), ID: fmt.Sprintf("%016x", mixed(int(h>>1))),
	}
}

// AppendLine appends an event as a line of JSON.
func (e *Events) AppendLine(dst []byte, i int) []byte {
	r := e.At(i)
	return fmt.Appendf(dst,
		`{"time":%d,"host":%q,"method":%q,"path":%q,"status":%d,"bytes":%d,"us":%d,"user":%q,"id":%q}`+"\n",
		e.Time(i), r.Host, r.Method, r.Path, r.Status, r.Bytes, r.Micros, r.User, r.ID)
}

// Term returns an event as opcode 13 carries it.
func (e *Events) Term(i int) wire.Event {
	r := e.At(i)
	t, mark := term.BeginMap(term.Begin(nil))
	text := func(key, value string) { t = term.AppendText(term.AppendText(t, key), value) }
	number := func(key string, value int) { t = term.AppendInt(term.AppendText(t, key), int64(value)) }
	text("host", r.Host)
	text("method", r.Method)
	text("path", r.Path)
	number("status", r.Status)
	number("bytes", r.Bytes)
	number("us", r.Micros)
	text("user", r.User)
	text("id", r.ID)
	term.EndMap(t, mark, 8)
	return wire.Event{Time: uint64(e.Time(i)), Term: t}
}

// AppendSyslog appends an event as a message of RFC 5424 behind its length.
func (e *Events) AppendSyslog(dst []byte, i int) []byte {
	r := e.At(i)
	m := fmt.Sprintf(
		`<134>1 %s %s web 4711 - [req@32473 status="%d" bytes="%d" us="%d" user="%s" id="%s"] %s %s`,
		time.Unix(0, e.Time(i)).UTC().Format("2006-01-02T15:04:05.000000Z"), r.Host, r.Status, r.Bytes,
		r.Micros, r.User, r.ID, r.Method, r.Path)
	return fmt.Appendf(dst, "%d %s", len(m), m)
}

// Range returns the range of whole minutes that has all events.
func (e *Events) Range() (start, end time.Time) {
	return e.Start, e.Start.Add((EventSpan + time.Minute - 1).Truncate(time.Minute))
}

// PerMinute returns the number of events of each minute of the range that are wanted.
func (e *Events) PerMinute(want func(*Request) bool) []float64 {
	start, end := e.Range()
	n := make([]float64, end.Sub(start)/time.Minute)
	for i := range e.N {
		if r := e.At(i); want(&r) {
			n[(e.Time(i)-start.UnixNano())/int64(time.Minute)]++
		}
	}
	return n
}

// Told returns what an event of an answer tells that came as JSON or as a term.
func Told(event []byte) (r Request, err error) {
	err = json.Unmarshal(event, &r)
	return r, err
}

// ToldBySyslog returns what an event of an answer tells that came as a syslog message.
func ToldBySyslog(event []byte) (Request, error) {
	var m struct {
		Host, Message string
		Data          struct {
			Req struct {
				Status int `json:",string"`
				Bytes  int `json:",string"`
				Micros int `json:"us,string"`
				User   string
				ID     string
			} `json:"req@32473"`
		}
	}
	if err := json.Unmarshal(event, &m); err != nil {
		return Request{}, err
	}
	method, path, _ := strings.Cut(m.Message, " ")
	q := &m.Data.Req
	return Request{
		Host:   m.Host,
		Method: method,
		Path:   path,
		Status: q.Status,
		Bytes:  q.Bytes,
		Micros: q.Micros,
		User:   q.User,
		ID:     q.ID,
	}, nil
}

// CheckList compares an answer of GET /events with the events that are wanted: their times and what
// they tell, by told. It returns how many there are.
func (e *Events) CheckList(body []byte, want func(*Request) bool,
	told func(event []byte) (Request, error)) (found int, err error) {
	var got struct {
		E []struct {
			Timestamp int64
			Event     json.RawMessage
		}
		More    bool
		Damaged json.RawMessage
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return 0, err
	}
	if got.More || got.Damaged != nil {
		return 0, fmt.Errorf("events are missing from the answer: more %v, damaged %s", got.More,
			got.Damaged)
	}
	for i := range e.N {
		r := e.At(i)
		if !want(&r) {
			continue
		}
		if found == len(got.E) {
			return 0, fmt.Errorf("the answer ends after %d events, before event %d", found, i)
		}
		g := got.E[found]
		found++
		if g.Timestamp != e.Time(i) {
			return 0, fmt.Errorf("event %d has time %d, the one of the answer %d", i, e.Time(i), g.Timestamp)
		}
		if got, err := told(g.Event); err != nil {
			return 0, err
		} else if got != r {
			return 0, fmt.Errorf("event %d is %+v, in the answer %s", i, r, g.Event)
		}
	}
	if found != len(got.E) {
		return 0, fmt.Errorf("%d events in the answer, want %d", len(got.E), found)
	}
	return found, nil
}
