package flood

import (
	"errors"
	"fmt"
	"math/rand/v2"
	nethttp "net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

const (
	perFrame = 40 // events of 64 KiB in a frame of 2.5 MiB
	perBody  = 15 // in a body of less than 1 MiB
	bulk     = 64 << 10
)

// lists counts lists of events and what became of them.
type lists struct {
	sent, taken, refused atomic.Int64 // taken: events
	wrong                atomic.Pointer[string]
}

func (l *lists) judge(events int, err error, refusal bool) {
	switch {
	case err == nil:
		l.taken.Add(int64(events))
	case refusal:
		l.refused.Add(1)
	default: // the node may close at any time
	}
}

// events sends whole frames of 2.5 MiB and bodies of 1 MiB, of each several at once, until it is
// told to stop. What was taken is stored, nothing more than was sent, and refusals are counted.
func events(t Target, release <-chan struct{}) (string, error) {
	const bucket = "flooded"
	c, err := dwire.Dial(t.TCP, 20*time.Second)
	if err != nil {
		return "", err
	}
	err = c.Add(bucket, 1000, 0, false)
	c.Close()
	if err != nil {
		return "", err
	}
	var wg sync.WaitGroup
	var l lists
	for k := range 24 {
		send := l.frame
		if k%2 == 1 {
			send = l.body
		}
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 2))
			for {
				select {
				case <-release:
					return
				default:
					send(t, bucket, rng)
				}
			}
		})
	}
	wg.Wait()
	said := fmt.Sprintf(", %d events sent, %d taken, %d lists refused", l.sent.Load(), l.taken.Load(),
		l.refused.Load())
	if text := l.wrong.Load(); text != nil {
		return said, errors.New(*text)
	}
	a, err := (&subject.Node{HTTP: t.HTTP}).Account()
	if err != nil {
		return said, err
	}
	stored, _ := a.Events.Of(bucket)
	counted := uint64(0)
	for _, n := range a.RefusedRequests {
		counted += n
	}
	if stored < uint64(l.taken.Load()) || stored > uint64(l.sent.Load()) ||
		counted < uint64(l.refused.Load()) {
		return said, fmt.Errorf("the account has %d events stored, and %d refused requests%s", stored,
			counted, said)
	}
	return said, nil
}

// noise is text that does not compress to less than three quarters.
func noise(rng *rand.Rand) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	b := make([]byte, bulk)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}

func (l *lists) frame(t Target, bucket string, rng *rand.Rand) {
	c, err := dwire.Dial(t.TCP, 30*time.Second)
	if err != nil {
		return
	}
	defer c.Close()
	term := oracle.Term("0", noise(rng))
	list := make([]dwire.Event, perFrame)
	for i := range list {
		list[i] = dwire.Event{Time: t.First*1e9 + rng.Int64N(1e12), Term: term}
	}
	l.sent.Add(perFrame)
	err = c.Events(bucket, list)
	var refusal dwire.ServerError
	l.judge(perFrame, err, errors.As(err, &refusal))
}

func (l *lists) body(t Target, bucket string, rng *rand.Rand) {
	var b strings.Builder
	for range perBody {
		fmt.Fprintf(&b, "{\"time\":%d,\"n\":\"0\",\"text\":%q}\n", t.First*1e9+rng.Int64N(1e12),
			noise(rng))
	}
	l.sent.Add(perBody)
	var answer struct{ Accepted, Late int }
	err := (&subject.Node{HTTP: t.HTTP}).PostLines("/events/"+bucket, []byte(b.String()), &answer)
	var refusal *subject.StatusError
	if errors.As(err, &refusal) && refusal.Code != nethttp.StatusServiceUnavailable {
		text := refusal.Error()
		l.wrong.Store(&text)
	}
	l.judge(answer.Accepted+answer.Late, err, refusal != nil)
}
