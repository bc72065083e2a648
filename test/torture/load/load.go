// Package load writes to a node what an oracle keeps: rows in their order, late
// points and rewrites, new and deleted series, buckets that come and go, and what
// an operator does meanwhile.
package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// Load is the senders of one directory, over all starts of its node.
type Load struct {
	Book   *oracle.Book
	lanes  []*lane
	texts  *texts
	rng    *rand.Rand
	points atomic.Int64

	mu       sync.Mutex
	problems []string
	ops      chan string // begun admin operations, for those who want to meet them
}

// Size says how large a load is.
type Size struct {
	Series int // of the larger buckets
	Slots  int // of a series

	Forever bool   // no bucket has a lifetime
	Salt    uint32 // of the book
}

// Of is a load that sends nothing, of what another one has sent.
func Of(book *oracle.Book) *Load { return &Load{Book: book, ops: make(chan string)} }

// New plans the buckets. Synthetic time begins two days ago, where a chunk
// begins.
func New(seed uint64, now time.Time, size Size) *Load {
	rng := rand.New(rand.NewPCG(seed, 3))
	l := &Load{Book: &oracle.Book{}, rng: rng, ops: make(chan string, 64)}
	l.Book.Salt(size.Salt)
	first := func(ms int64) int64 {
		s := now.Add(-48*time.Hour).UnixMilli() / ms
		return s - s%7200
	}
	const ttl = 3600
	l.lane(seed, oracle.Bucket{
		Name:       "rows",
		Resolution: 1000,
		First:      first(1000),
		Slots:      size.Slots,
	}, size.Series, habits{rows: 60, late: 3})
	l.lane(seed, oracle.Bucket{
		Name:       "rewrites",
		Resolution: 1000,
		First:      first(1000),
		Slots:      size.Slots / 2,
	}, size.Series/2, habits{rows: 60, late: 8, deletes: true})
	l.lane(seed, oracle.Bucket{
		Name:       "stamps",
		Resolution: 1000,
		HPTS:       true,
		First:      first(1000),
		Slots:      size.Slots / 2,
	}, size.Series/4, habits{rows: 60, late: 4})
	l.lane(seed, oracle.Bucket{
		Name:       "fine",
		Resolution: 100,
		First:      first(100),
		Slots:      size.Slots / 2,
	}, size.Series/4, habits{rows: 60, late: 2, grows: true})
	if !size.Forever {
		l.lane(seed, oracle.Bucket{
			Name:       "short",
			Resolution: 1000,
			TTL:        ttl,
			First:      now.Unix() - ttl - 60,
			Slots:      ttl,
		}, size.Series/8+1, habits{rows: 60, late: 8})
	}
	l.lane(seed, oracle.Bucket{
		Name:       "scratch",
		Resolution: 1000,
		First:      first(1000),
		Slots:      2880,
	}, size.Series/8+1, habits{rows: 60, late: 2, bucketDies: true})
	// 65 KB a row
	l.lane(seed, oracle.Bucket{
		Name:       "long",
		Resolution: 1000,
		First:      first(1000),
		Slots:      1440,
	}, 0, habits{rows: 3, late: 1, deletes: true})
	l.lanes[len(l.lanes)-1].longNames()
	l.texts = newTexts(l, seed, now)
	return l
}

func (l *Load) lane(seed uint64, b oracle.Bucket, series int, h habits) {
	a := &lane{
		load: l, habits: h, bucket: l.Book.Add(b),
		rng: rand.New(rand.NewPCG(seed, uint64(10+len(l.lanes)))),
	}
	for range series {
		a.newSeries()
	}
	l.lanes = append(l.lanes, a)
}

func (a *lane) newSeries() {
	i := len(a.bucket.Series)
	a.bucket.NewSeries(dwire.Key("host", fmt.Sprintf("%03d", i/4), fmt.Sprintf("cpu%d", i%4)))
}

// longNames makes series whose names are as long as they may be: a part, and a key of 65,535 bytes.
func (a *lane) longNames() {
	part := strings.Repeat("p", 255)
	for i := range 4 {
		parts := []string{fmt.Sprintf("%03d", i), part}
		if i == 0 {
			parts = slices.Concat(parts[:1], slices.Repeat([]string{part}, 255), []string{part[:250]})
		}
		a.bucket.NewSeries(dwire.Key(parts...))
	}
}

// Points counts the points sent.
func (l *Load) Points() int64 { return l.points.Load() }

// Problems returns what went wrong that a sound node on a sound disk does not
// do.
func (l *Load) Problems() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.problems
	l.problems = nil
	return p
}

func (l *Load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// Run is a load that is running on a node.
type Run struct {
	l    *Load
	stop chan struct{}
	wg   sync.WaitGroup
}

// Start lets all senders go on, on this node; with admin there is an operator.
func (l *Load) Start(n *subject.Node, admin bool) *Run {
	r := &Run{l: l, stop: make(chan struct{})}
	for _, a := range l.lanes {
		r.wg.Go(func() { a.run(n, r.stop) })
	}
	r.wg.Go(func() { l.texts.run(n, r.stop) })
	if admin {
		seed := l.rng.Uint64()
		r.wg.Go(func() { l.operate(n, r.stop, rand.New(rand.NewPCG(seed, 1))) })
	}
	return r
}

// Begun tells of the operator's operations as they begin.
func (l *Load) Begun() <-chan string { return l.ops }

// End stops the senders, who wait for their acknowledgements unless the node is
// gone, and returns when they have stopped.
func (r *Run) End() {
	close(r.stop)
	r.wg.Wait()
}

// Rounds lets every sender send n lots and wait for their acknowledgement,
// without chance in their order.
func (l *Load) Rounds(node *subject.Node, n int) error {
	for _, a := range l.lanes {
		if err := a.lots(node, n); err != nil {
			return fmt.Errorf("bucket %s: %w", a.bucket.Name, err)
		}
	}
	defer l.texts.hangUp()
	for range (n + 9) / 10 {
		if err := l.texts.step(node); err != nil {
			return fmt.Errorf("events and tags: %w", err)
		}
	}
	return nil
}

// operate does what operators do, all the time.
func (l *Load) operate(n *subject.Node, stop chan struct{}, rng *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-n.Done():
			return
		case <-time.After(time.Duration(20+rng.IntN(200)) * time.Millisecond):
		}
		op, path, body := "flush", "/admin/flush", any(nil)
		switch rng.IntN(8) {
		case 0, 1, 2:
			op, path = "merge", "/admin/merge"
		case 3:
			op, path, body = "snapshot", "/admin/snapshots/create",
				map[string]string{"name": fmt.Sprintf("s%d", rng.IntN(2))}
		case 4:
			op, path, body = "snapshot delete", "/admin/snapshots/delete",
				map[string]string{"name": fmt.Sprintf("s%d", rng.IntN(2))}
		}
		select {
		case l.ops <- op:
		default:
		}
		_, _ = n.Post(path, body) // under attack anything may fail; what was acknowledged is compared
	}
}
