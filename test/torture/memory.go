package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/flood"
	"dalmatiner/test/torture/subject"
)

const (
	memoryLimit = 256 << 20
	memoryMost  = memoryLimit + memoryLimit/10
	goodWait    = 20 * time.Second // for a good sender's or a query's whole exchange
)

// memory gives a node of 256 MB input that does not end, on every listener, and
// clients that do not read, while a good sender goes on and queries are asked.
func memory(r *round) {
	for _, c := range flood.Cases() {
		if r.cfg.only != "" && !strings.Contains(c.Name, r.cfg.only) {
			continue
		}
		r.flooded(c)
		r.out.events++
	}
}

func (r *round) flooded(c flood.Case) {
	r.data = fmt.Sprintf("%s/%s", r.base, strings.ReplaceAll(c.Name, " ", "-"))
	r.flags = []string{
		"--set", "self_monitor=off", "--set", "memory.limit=256MB", "--set", "storage.min_free=0",
		"--set", "wal.interval=20ms", "--set", "wal.max_size=64MB",
		"--set", "bucket.auto_create=on",
		"--set", "graphite.addr=127.0.0.1:0", "--set", "graphite.pickle_addr=127.0.0.1:0",
		"--set", "udp.addr=127.0.0.1:0", "--set", "udp.listeners=2",
	}
	if !r.start() {
		return
	}
	defer r.node.Kill()
	good := &goodClient{node: r.node, now: time.Now().Unix() - 7200}
	if err := good.prepare(); err != nil {
		r.violate("%s: before anything: %v", c.Name, err)
		return
	}
	target := flood.Target{
		TCP:      r.node.TCP,
		HTTP:     r.node.HTTP,
		Graphite: r.node.Graphite,
		Pickle:   r.node.Pickle,
		UDP:      r.node.UDP,
		Bucket:   goodBucket,
		First:    good.now,
	}
	w := watchMemory(r.node)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { good.serve(stop) })
	release := make(chan struct{})
	wg.Go(func() {
		good.watch(r.cfg.quick)
		close(release)
	})
	refused, wrong := c.Run(target, release)
	<-release
	close(stop)
	wg.Wait()
	peak := w.end()
	r.out.peak = max(r.out.peak, peak)
	r.out.compared.Slots += good.compared.Load()
	fmt.Printf("memory  %-34s peak %d MiB, good exchanges %d, the longest took %v%s\n", c.Name,
		peak>>20, good.count.Load(), good.longest().Round(time.Millisecond), refused)
	select {
	case <-r.node.Done():
		r.violate("%s: the node ended\n%s", c.Name, r.node.Log.Tail(6))
		return
	default:
	}
	if peak > memoryMost {
		r.violate("%s: %d MiB of anonymous memory, the limit is %d MiB and a tenth", c.Name, peak>>20,
			memoryLimit>>20)
	}
	if wrong != nil {
		r.violate("%s: %v", c.Name, wrong)
	}
	if c.Refused && refused == "" {
		r.violate("%s: was answered", c.Name)
	}
	if text := good.problem(); text != "" {
		r.violate("%s: %s", c.Name, text)
	}
	r.givenBack(c)
}

// givenBack waits until no pool of input has anything of what is gone.
func (r *round) givenBack(c flood.Case) {
	var held []string
	for end := time.Now().Add(goodWait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if held, err = r.node.Held(); err != nil {
			r.violate("%s: pools: %v", c.Name, err)
			return
		}
		if len(held) == 0 {
			return
		}
	}
	r.violate("%s: all clients are gone, and pools hold %v", c.Name, held)
}

// watch samples the memory of a process.
type watch struct {
	stop, done chan struct{}
	peak       int64
}

func watchMemory(n *subject.Node) *watch {
	w := &watch{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			w.peak = max(w.peak, n.Anonymous())
			select {
			case <-w.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w *watch) end() int64 {
	close(w.stop)
	<-w.done
	return w.peak
}

const (
	goodBucket = "good"
	goodSeries = 400
	goodSlots  = 3600
)

// goodClient is a sender and a reader that do nothing wrong.
type goodClient struct {
	node     *subject.Node
	now      int64 // first slot
	row      int64
	count    atomic.Int64
	compared atomic.Int64
	mu       sync.Mutex
	most     time.Duration
	err      error
}

func goodKey(i int64) []byte { return dwire.Key("good", fmt.Sprintf("%04d", i)) }

func goodPoint(i, row int64) []byte {
	v := i<<32 | row
	return []byte{1, byte(v >> 48), byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16),
		byte(v >> 8), byte(v)}
}

// prepare sends what large queries ask for.
func (g *goodClient) prepare() error {
	c, err := dwire.Dial(g.node.TCP, subject.Patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Add(goodBucket, 1000, 0, false); err != nil {
		return err
	}
	return g.send(goodSlots)
}

// send opens a stream and sends rows until they are acknowledged.
func (g *goodClient) send(rows int64) error {
	s, err := dwire.OpenStream(g.node.TCP, goodBucket, false, goodWait)
	if err != nil {
		return err
	}
	defer s.Close()
	for end := g.row + rows; g.row < end; g.row++ {
		s.BeginBatch(g.now + g.row)
		for i := range int64(goodSeries) {
			s.BatchPoint(goodKey(i), goodPoint(i, g.row))
		}
		s.EndBatch()
	}
	if err := s.Ask(1); err != nil {
		return err
	}
	ack, err := s.ReadAck()
	if err == nil && ack.Refused > 0 {
		err = fmt.Errorf("%d points of a known series refused", ack.Refused)
	}
	return err
}

// watch returns when the flood has lasted for a while and some exchanges have
// succeeded in it, or when none has for too long.
func (g *goodClient) watch(quick bool) {
	ramp, hold := 1500*time.Millisecond, 1500*time.Millisecond
	if !quick {
		ramp, hold = 8*time.Second, 20*time.Second
	}
	time.Sleep(ramp)
	before, begin := g.count.Load(), time.Now()
	for time.Since(begin) < hold || g.count.Load() < before+3 && time.Since(begin) < goodWait+hold {
		time.Sleep(50 * time.Millisecond)
	}
	if n := g.count.Load() - before; n < 3 {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.err == nil {
			g.err = fmt.Errorf("%d exchanges of a good client in %v", n,
				time.Since(begin).Round(time.Second))
		}
	}
}

// serve sends a row and asks for it, over new connections, until it is told to
// stop.
func (g *goodClient) serve(stop chan struct{}) {
	for {
		begin := time.Now()
		var err error
		for {
			if err = g.exchange(); err == nil || time.Since(begin) > goodWait {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		g.mu.Lock()
		g.most = max(g.most, time.Since(begin))
		if err != nil && g.err == nil {
			g.err = fmt.Errorf("a good sender or a query was not served for %v: %w", goodWait, err)
		}
		g.mu.Unlock()
		if err == nil {
			g.count.Add(1)
		}
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (g *goodClient) exchange() error {
	if err := g.send(1); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	i := g.row % goodSeries
	q := fmt.Sprintf("SELECT 'good'.'%04d' BUCKET '%s' AFTER %d FOR 60s", i, goodBucket,
		(g.now+g.row-60)*1000)
	res, err := g.node.Query(q)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	if len(res) != 1 || len(res[0].Values) != 60 {
		return fmt.Errorf("asking: %s: %d results", q, len(res))
	}
	for k, v := range res[0].Values {
		if want := float64(i<<32 | (g.row - 60 + int64(k))); v == nil || *v != want {
			return fmt.Errorf("%s: value %d is %v, want %v", q, k, v, want)
		}
	}
	g.compared.Add(60)
	return nil
}

func (g *goodClient) longest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

func (g *goodClient) problem() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return g.err.Error()
	}
	return ""
}
