package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/eventstest"
)

// TestQueriesAreChargedForMemory: a query that can never fit is refused for
// good, one that others leave no room for is told to come again, and what a
// query was lent is given back when its answer is out.
func TestQueriesAreChargedForMemory(t *testing.T) {
	s := newFakeStore(t)
	o := testOptions(s)
	b := memory.New(1<<30, time.Now, nil)
	o.Memory = b.NewLeases(memory.LeaseOptions{Name: "queries", Holds: "results", Limit: 4 << 20,
		Small: 1 << 20})
	h := New(o)
	const text = "SELECT t BUCKET b BETWEEN 100 AND 150"
	check := func(what string, status int, texts ...string) {
		t.Helper()
		w := ask(text).send(h)
		if w.Code != status {
			t.Errorf("%s: got %d %s", what, w.Code, w.Body)
		}
		for _, want := range append(texts, "") {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %q does not say %q", what, w.Body, want)
			}
		}
	}
	check("there is room", http.StatusOK)
	if used := b.Pools()[0].Use; used != 0 {
		t.Errorf("%d bytes stay charged after the answer", used)
	}
	other := o.Memory.Lease()
	if err := other.Grow(4 << 20); err != nil {
		t.Fatal(err)
	}
	check("others have it", http.StatusServiceUnavailable, "the query is refused",
		"other queries have 4 MiB", "try again later", "memory.limit")
	other.Release()
	check("there is room again", http.StatusOK)
	o = testOptions(s)
	o.Memory = b.NewLeases(memory.LeaseOptions{Name: "queries", Holds: "results", Limit: 1000,
		Small: 1})
	h = New(o)
	check("never", http.StatusRequestEntityTooLarge, "ask for less", "memory.limit")
	if n := s.ledger.Requests()[reasonMemory]; n != 2 {
		t.Errorf("%d refusals are counted", n)
	}
}

// deadlines records the write deadlines of an answer.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// Each piece of an answer has its own time, all of them together have one too.
func TestSlowReadersAreCutOff(t *testing.T) {
	const stall = time.Minute
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	w := &patientWriter{ResponseWriter: d, control: http.NewResponseController(d), stall: stall,
		end: time.Now().Add(time.Hour)}
	began := time.Now()
	if _, err := w.Write(make([]byte, replyPiece+1)); err != nil {
		t.Fatal(err)
	}
	w.end = began
	if _, err := w.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if len(d.set) != 3 || d.set[0].Before(began.Add(stall)) || d.set[1].Before(d.set[0]) ||
		d.set[1].After(time.Now().Add(stall)) || !d.set[2].Equal(began) {
		t.Errorf("the pieces had until %v", d.set)
	}
}

// inTurns is a body that comes in pieces, each when others have had theirs.
type inTurns struct{ io.Reader }

func (r inTurns) Read(p []byte) (int, error) {
	runtime.Gosched()
	return r.Reader.Read(p[:min(len(p), 8<<10)])
}

// TestLargeBodiesComeOneAfterTheOther: many bodies that do not fit memory together are all taken,
// and what they were lent comes back. The clock stands still: nobody is cut off to make room.
func TestLargeBodiesComeOneAfterTheOther(t *testing.T) {
	const mib = 1 << 20
	line := `{"time":1,"text":"` + strings.Repeat("x", 1000) + "\"}\n"
	lines := strings.Repeat(line, mib/len(line))
	for name, c := range map[string]struct {
		target, body string
		status       int
	}{
		"events":  {"/events/b", lines, http.StatusOK},
		"a query": {"/", strings.Repeat("x", mib), http.StatusBadRequest},
	} {
		for _, senders := range []int{8, 32} {
			budget := memory.New(256<<20, func() time.Time { return now }, nil)
			o := testOptions(newFakeStore(t))
			o.Events, o.Points, o.Bodies, o.MaxBody = new(eventstest.Store), new(durableNow),
				NewBodies(budget, time.Minute, mib), mib
			h := New(o)
			var all sync.WaitGroup
			for range senders {
				all.Go(func() {
					r := httptest.NewRequest("POST", c.target, inTurns{strings.NewReader(c.body)})
					r.Header.Set("Content-Type", "text/plain")
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, r); w.Code != c.status {
						t.Errorf("%s: one of %d got %d %.200s", name, senders, w.Code, w.Body)
					}
				})
			}
			all.Wait()
			if p := budget.Pools()[0]; p.Use != 0 || p.Leases.Waiting != 0 || p.Leases.Refused != 0 {
				t.Errorf("%s: after %d bodies the pool is %+v, %+v", name, senders, p, p.Leases)
			}
		}
	}
}
