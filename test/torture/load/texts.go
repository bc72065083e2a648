package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// texts is the sender of events and of tags.
type texts struct {
	load    *Load
	rng     *rand.Rand
	events  *oracle.Events
	tags    *oracle.Tags
	conn    *dwire.Conn // nil until the node has both buckets
	refused uint64      // what the account had when it was asked last
}

func newTexts(l *Load, seed uint64, now time.Time) *texts {
	var metrics [][]string
	for i := range 24 {
		metrics = append(metrics,
			[]string{"host", fmt.Sprintf("%03d", i), strings.Repeat("m", min(255, 1+i*i))})
	}
	l.Book.Texts(now.Add(-48*time.Hour).UnixNano(), metrics)
	return &texts{
		load:   l,
		rng:    rand.New(rand.NewPCG(seed, 9)),
		events: l.Book.Events,
		tags:   l.Book.Tags,
	}
}

// run sends until it is told to stop, or the node is gone.
func (x *texts) run(n *subject.Node, stop chan struct{}) {
	defer x.hangUp()
	for {
		pause := 10 * time.Millisecond
		if err := x.step(n); err != nil {
			x.hangUp()
			pause = 50 * time.Millisecond
		}
		select {
		case <-stop:
			return
		case <-n.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (x *texts) hangUp() {
	if x.conn != nil {
		x.conn.Close()
		x.conn = nil
	}
}

func (x *texts) connect(n *subject.Node) error {
	for _, name := range []string{x.events.Bucket, x.tags.Bucket} {
		if err := ensure(n, name); err != nil {
			return err
		}
	}
	c, err := dwire.Dial(n.TCP, streamTO)
	if err != nil {
		return err
	}
	x.conn = c
	_, err = x.newlyRefused(n)
	return err
}

// ensure makes a bucket unless it is there.
func ensure(n *subject.Node, bucket string) error {
	c, err := dwire.Dial(n.TCP, streamTO)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Add(bucket, 1000, 0, false)
	var refusal dwire.ServerError
	if errors.As(err, &refusal) && strings.Contains(string(refusal), "the bucket exists") {
		return nil
	}
	return err
}

// newlyRefused counts the events that were refused since it was asked last.
func (x *texts) newlyRefused(n *subject.Node) (uint64, error) {
	a, err := n.Account()
	if err != nil {
		return 0, err
	}
	_, refused := a.Events.Of(x.events.Bucket)
	before := x.refused
	x.refused = refused
	return refused - before, nil
}

// step sends some frames of events, then a body, and then changes of tags. A frame that was taken
// is durable when a later body is, because they are in one log.
func (x *texts) step(n *subject.Node) error {
	if x.conn == nil {
		if err := x.connect(n); err != nil {
			return err
		}
	}
	first := x.events.Sent() + 1
	for range x.rng.IntN(3) {
		if err := x.conn.Events(x.events.Bucket, x.frame()); err != nil {
			return fmt.Errorf("a frame of events: %w", err)
		}
	}
	var answer struct{ Received, Accepted, Late, Refused, Bad int }
	body, last := x.body()
	if err := n.PostLines("/events/"+x.events.Bucket+"?unit=ns", body, &answer); err != nil {
		return err
	}
	refused, err := x.newlyRefused(n)
	if err != nil {
		return err
	}
	if answer.Bad > 0 || answer.Refused+answer.Accepted+answer.Late != answer.Received {
		x.load.problem("the answer to a body of events: %+v", answer)
	}
	if refused == 0 {
		x.events.Ack(first, last)
	}
	return x.change(n)
}

// size is how many events go together: some, and now and then some MiB.
func (x *texts) size() int {
	if x.rng.IntN(40) == 0 {
		return 2000
	}
	return 1 + x.rng.IntN(50)
}

const (
	maxFrame = 16 << 20 // of events, before compression
	maxBody  = 1 << 20  // http.max_body
	beside   = 100      // what an event has beside its text, at most
)

func (x *texts) frame() []dwire.Event {
	var out []dwire.Event
	room := maxFrame
	for range x.size() {
		n, at, text := x.events.Next(room - beside)
		if n == 0 {
			break
		}
		out, room = append(out, dwire.Event{Time: at, Term: oracle.Term(strconv.Itoa(int(n)), text)}),
			room-len(text)-beside
	}
	return out
}

// body returns lines of JSON and the number of the last of their events.
func (x *texts) body() (out []byte, last uint32) {
	for range x.size() {
		n, at, text := x.events.Next(maxBody - beside - len(out))
		if n == 0 {
			break
		}
		out, last = fmt.Appendf(out, "{\"time\":%d,\"n\":\"%d\",\"text\":%q}\n", at, n, text), n
	}
	return out, last
}

// change sets tags of some series.
func (x *texts) change(n *subject.Node) error {
	var body bytes.Buffer
	first, last := uint32(0), uint32(0)
	lines := json.NewEncoder(&body)
	for range 1 + x.rng.IntN(8) {
		i, j := x.rng.IntN(len(x.tags.Metrics)), x.rng.IntN(len(oracle.TagNames))
		number, value := x.tags.Next(i, j)
		if first == 0 {
			first = number
		}
		last = number
		if err := lines.Encode(map[string]any{"bucket": x.tags.Bucket, "metric": x.tags.Metrics[i],
			"tags": map[string]string{oracle.TagNames[j]: value}}); err != nil {
			return err
		}
	}
	var answer struct{ Lines, Refused int }
	if err := n.PostLines("/tags", body.Bytes(), &answer); err != nil {
		return err
	}
	if answer.Refused == 0 {
		x.tags.Ack(first, last)
	}
	return nil
}
