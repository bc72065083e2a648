package ddbtcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/wire"
)

// monitored are the requests whose latency the node reports.
var monitored = map[wire.Op]monitor.Op{
	wire.OpGet: monitor.Get, wire.OpBuckets: monitor.ListBuckets,
	wire.OpList: monitor.ListMetrics, wire.OpListPrefix: monitor.ListMetrics,
}

// yield lets everybody run who is ready. Who asks for more and more would else keep a
// processor for 10 ms at a time: among 200 who do, a sender waited a second for each
// of its rows.
func yield() { runtime.Gosched() }

// yieldNames is how many names a list takes between two yields: some 50 µs.
const yieldNames = 1024

// request answers one frame.
func (c *conn) request(payload []byte) error {
	q, err := wire.ParseRequest(payload)
	if err != nil {
		return refuse(err)
	}
	if op, ok := monitored[q.Op]; ok {
		start := time.Now()
		defer func() { c.s.o.Monitor.Observe(op, time.Since(start)) }()
	}
	switch q.Op {
	case wire.OpBuckets:
		return c.buckets()
	case wire.OpList, wire.OpListPrefix:
		err = c.list(string(q.Bucket), q.Key)
	case wire.OpInfo:
		err = c.info(string(q.Bucket))
	case wire.OpGet:
		err = c.get(&q)
	case wire.OpAdd:
		err = c.add(&q)
	case wire.OpDelete:
		err = c.s.o.Store.DeleteBucket(string(q.Bucket))
	case wire.OpTTL:
		err = c.ttl(&q)
	case wire.OpEvents:
		err = c.writeEvents(&q)
	case wire.OpGetEvents, wire.OpGetEventsFiltered:
		err = c.readEvents(&q)
	case wire.OpStream, wire.OpStream2, wire.OpAckStream:
		err = c.open(&q)
	default:
		err = fmt.Errorf("%w: opcode %d outside a stream", wire.ErrUnsupported, q.Op)
	}
	if err != nil {
		return refuse(err)
	}
	return nil
}

func (c *conn) buckets() error {
	dst, mark := wire.BeginFrame(c.out[:0])
	dst, list := wire.BeginNames(dst)
	for _, b := range c.s.o.Store.Buckets() {
		dst = wire.AppendName(dst, []byte(b.Name))
	}
	wire.EndNames(dst, list)
	wire.EndFrame(dst, mark)
	c.out = dst
	return c.write(dst)
}

// listPiece is what a list is charged for at a time.
const listPiece = 256 << 10

func (c *conn) list(bucket string, prefix []byte) error {
	info, err := c.s.o.Store.BucketByName(bucket)
	if err != nil {
		return err
	}
	lease := c.s.o.Memory.LeaseFor(c.ctx)
	defer lease.Release()
	dst, mark := wire.BeginFrame(c.out[:0])
	dst, list := wire.BeginNames(dst)
	charged, names, refused := 0, 0, error(nil)
	err = c.s.o.Store.Metrics(c.ctx, info, prefix, func(key []byte) bool {
		if len(dst) >= charged {
			// Twice: a buffer that grows is there two times for a moment.
			refused = lease.Grow(2 * listPiece)
			charged += listPiece
		}
		if names++; names%yieldNames == 0 {
			yield()
		}
		dst = wire.AppendName(dst, key)
		return refused == nil && len(dst) < math.MaxUint32/2
	})
	if err = errors.Join(err, refused); err != nil {
		return err
	}
	wire.EndNames(dst, list)
	wire.EndFrame(dst, mark)
	return c.deliver(dst, c.lease)
}

func (c *conn) info(bucket string) error {
	b, err := c.s.o.Store.BucketByName(bucket)
	if err != nil {
		return err
	}
	return c.reply(wire.AppendInfo(nil, wire.Info{
		Resolution: uint64(b.Resolution), PointsPerFile: uint64(b.PPF), Grace: uint64(b.Grace),
		HPTS: b.HPTS, TTL: uint64(b.TTL),
	}))
}

// add creates a bucket. The protocol has no reply to it: a client that wants
// to know asks for the bucket's properties next.
func (c *conn) add(q *wire.Request) error {
	_, err := c.s.o.Store.CreateBucket(buckets.Info{
		Name: string(q.Bucket), Resolution: clampInt(q.Resolution), PPF: clampInt(q.PointsPerFile),
		TTL: clampInt(q.TTL), HPTS: q.HPTS,
	})
	return err
}

func (c *conn) ttl(q *wire.Request) error {
	return c.s.o.Store.SetTTL(string(q.Bucket), clampInt(q.TTL))
}

// clampInt keeps a number beyond int64 beyond every limit.
func clampInt(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

// get streams the slots of a series: cut where the original's files were cut,
// and at wire.MaxGetSlots. Frames in which nothing can be are made without a read.
func (c *conn) get(q *wire.Request) error {
	st := c.s.o.Store
	info, err := st.BucketByName(string(q.Bucket))
	if err != nil {
		return err
	}
	if r := q.Options.R; r > 1 && r != 255 {
		return fmt.Errorf("%w: r is %d, and this node keeps one replica (n = 1)", wire.ErrMalformed, r)
	}
	if int64(q.Count) > c.s.o.MaxSlots {
		return fmt.Errorf("%w: a get of %d slots, the limit is %d (tcp.max_slots): ask in pieces",
			wire.ErrTooLarge, q.Count, c.s.o.MaxSlots)
	}
	if q.Slot > math.MaxInt64-uint64(q.Count) {
		return fmt.Errorf("%w: slot %d is beyond all time", wire.ErrMalformed, q.Slot)
	}
	key := append([]byte(nil), q.Key...)
	slot, end := int64(q.Slot), int64(q.Slot)+int64(q.Count)
	first, past, err := st.Extent(c.ctx, info, key, slot, end-slot)
	if err != nil {
		return err
	}
	if err := c.reply(wire.AppendGetHeader(nil)); err != nil {
		return err
	}
	g := c.s.gets.Get().(*getBuffers)
	g.enc.Exact = q.Options.Exact
	lease := c.s.replies.LeaseFor(c.ctx)
	defer func() {
		c.s.gets.Put(g)
		lease.Release() // behind the buffers: they are nobody's now
	}()
	n, err := g.lend(c.ctx, lease, end-slot, q.Options.HPTS)
	if err != nil {
		return err
	}
	words, timestamps := g.words[:n], []uint64(nil)
	if q.Options.HPTS {
		timestamps = g.timestamps[:n]
	}
	cut := cutOf(info.PPF)
	empty := int64(0) // slots of the frame in g.out, if nothing is in them
	for slot < end {
		yield()
		n := min(end-slot, int64(len(words)), cut-slot%cut)
		nothing := slot+n <= first || slot >= past
		if !nothing || n != empty {
			if err := c.piece(g, info, key, slot, words[:n], timestamps, nothing); err != nil {
				return err
			}
			empty = 0
			if nothing {
				empty = n
			}
		}
		if err := c.deliver(g.out, c.lease); err != nil {
			return err
		}
		slot += n
	}
	return c.reply(wire.AppendGetEnd(nil))
}

// getBuffers are the memory of a GET that is answered.
type getBuffers struct {
	words, timestamps []uint64
	out               []byte
	enc               wire.GetEncoder
}

// Pieces of a GET while memory is short: slower, and in little memory.
const (
	shortPiece = 16384
	leastPiece = 4096
)

// lend leases the memory for pieces of a GET of n slots and returns how many slots
// each may have.
func (g *getBuffers) lend(ctx context.Context, lease *memory.Lease, n int64,
	hpts bool) (int64, error) {
	each := int64(4 * point.Size) // a word, as bytes, and compressed, which may be a sixth more
	if hpts {
		each *= 2
	}
	var err error
	for _, piece := range []int64{wire.MaxGetSlots, shortPiece, leastPiece} {
		piece = min(n, piece)
		if err = lease.Grow(piece * each); err == nil {
			n = piece
			break
		}
	}
	if err != nil {
		n = min(n, leastPiece)
		if err := lease.GrowWhenFree(ctx, n*each); err != nil {
			return 0, err
		}
	}
	if int64(len(g.words)) < n {
		g.words = make([]uint64, n)
	}
	if hpts && int64(len(g.timestamps)) < n {
		g.timestamps = make([]uint64, n)
	}
	return n, nil
}

// leastCut is the least distance of two cuts: a bucket of a point a file would
// have a frame for each slot.
const leastCut = 4096

// cutOf returns the slots at whose multiples the frames of a bucket end: whole
// files of the original, as many as it takes.
func cutOf(ppf int64) int64 { return ppf * ((leastCut + ppf - 1) / ppf) }

// piece makes the frame of some slots in g.out; timestamps is not nil for a reply with
// timestamps. Where nothing can be it does not look.
func (c *conn) piece(g *getBuffers, info buckets.Info, key []byte, slot int64, words,
	timestamps []uint64, nothing bool) error {
	dst, mark := wire.BeginFrame(g.out[:0])
	if timestamps != nil {
		timestamps = timestamps[:len(words)]
	}
	var err error
	switch {
	case nothing:
		clear(words)
		clear(timestamps)
	case g.enc.Exact:
		err = c.s.o.Store.ReadWithStale(c.ctx, info, key, slot, words, timestamps)
	case timestamps == nil:
		err = c.s.o.Store.Read(c.ctx, info, key, slot, words)
	default:
		err = c.s.o.Store.ReadTimestamped(c.ctx, info, key, slot, words, timestamps)
	}
	if err != nil {
		return err
	}
	if timestamps == nil {
		dst = g.enc.AppendData(dst, words)
	} else {
		dst = g.enc.AppendTimestampedData(dst, words, timestamps)
	}
	wire.EndFrame(dst, mark)
	g.out = dst
	return nil
}
