package guard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/haggar"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/store"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write/intake"
)

// operation is a piece of a point's way that is measured by itself.
type operation struct {
	name   string
	points int // of a run
	run    func() error
}

// operations are all of them, and the store behind some.
type operations struct {
	list  []operation
	store *store.Store
	keys  [][]byte // of a group
}

// epoch is when the data of the guard begins: a multiple of every window,
// so that the same bytes are written whenever it runs.
const epoch = 1_699_920_000

// newOperations opens a store in a directory and prepares the operations. The
// first of them does nothing.
func newOperations(ctx context.Context, dir string) (*operations, error) {
	o, err := openStore(filepath.Join(dir, "operations"))
	if err != nil {
		return nil, err
	}
	ops := &operations{store: o, list: []operation{{"nothing", 1, func() error { return nil }}}}
	ops.list = append(ops.list, decodeBatch(), decodeEntries())
	for i := range load.GroupWidth {
		ops.keys = append(ops.keys, seriesKey(i))
	}
	err = errors.Join(
		ops.appends(),
		ops.chunks(haggar.Uniform, "uniform"), ops.chunks(haggar.Counter, "counter"),
		ops.reads(ctx),
	)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	const text = "SELECT max('agent'.'     3'.'metrics'.'    17' BUCKET metrics, 10m) LAST 1h"
	ops.list = append(ops.list, operation{"parse a query", 1, func() error {
		_, err := dql.Parse(text)
		return err
	}})
	return ops, nil
}

// openStore opens a store that flushes and merges only when told, in a time
// that stands still.
func openStore(dir string) (*store.Store, error) {
	o := store.DefaultOptions(dir)
	o.Now = clock
	o.MinFree, o.BackgroundMerge = 0, false
	o.MaxFuture = 365 * 24 * time.Hour
	o.FlushBytes, o.FlushInterval = 1<<40, 24*time.Hour
	return store.Open(o)
}

// pointCounter is a sink of decoded messages that keeps nothing.
type pointCounter struct {
	wire.PointByPoint
	points int
}

func (c *pointCounter) Point([]byte, uint64, uint64) { c.points++ }
func (c *pointCounter) Points(_ []byte, _ uint64, data []byte) {
	c.points += len(data) / point.Size
}
func (c *pointCounter) Flush()          {}
func (c *pointCounter) FlushAck(uint64) {}

// decoded is the number of points of a message.
const decoded = 64

func decodeBatch() operation   { return decode("decode a batch", batchOf(decoded)) }
func decodeEntries() operation { return decode("decode entries", entriesOf(decoded)) }

// batchOf is a row of points as one batch.
func batchOf(points int) []byte {
	msg := wire.AppendBatchStart(nil, epoch)
	for i := range points {
		msg = wire.AppendBatchPoint(msg, seriesKey(i), point.FromInt(int64(i)))
	}
	return wire.AppendFlush(wire.AppendBatchEnd(msg))
}

// entriesOf is the same as entries.
func entriesOf(points int) []byte {
	var msg []byte
	for i := range points {
		msg = wire.AppendEntry(msg, seriesKey(i), epoch, point.FromInt(int64(i)))
	}
	return wire.AppendFlush(msg)
}

func decode(name string, msg []byte) operation {
	p := wire.NewStreamParser(&wire.Request{Op: wire.OpStream}, wire.MinStreamLimit)
	var sink pointCounter
	return operation{name, decoded, func() error {
		sink.points = 0
		n, err := p.Parse(msg, &sink, &sink)
		if err == nil && (n != len(msg) || sink.points != decoded) {
			err = errors.New("the message was not decoded whole")
		}
		return err
	}}
}

func seriesKey(i int) []byte { return haggar.Data{}.AppendKey(nil, 3, i) }

// sessionSink hands what is decoded to a session.
type sessionSink struct{ *intake.Session }

// its error comes back from the next Commit
func (s sessionSink) Flush()          { _, _ = s.Commit() }
func (s sessionSink) FlushAck(uint64) {}

// appends adds rows of known series in the order of their sender: decoded,
// predicted, put into the head, counted, logged. One is not decoded but handed
// over point by point, as those are that come in another order.
func (ops *operations) appends() error {
	info, err := ops.store.EnsureBucket("append")
	if err != nil {
		return err
	}
	x, err := ops.store.NewSession(info)
	if err != nil {
		return err
	}
	slot := uint64(epoch)
	ops.list = append(ops.list, operation{"append point by point", load.GroupWidth, func() error {
		slot++
		for i := range load.GroupWidth {
			x.Point(ops.keys[i], slot, point.FromInt(int64(i*7919+int(slot))%1000))
		}
		_, err := x.Commit()
		return err
	}})
	p := wire.NewStreamParser(&wire.Request{Op: wire.OpStream}, wire.MinStreamLimit)
	row := func(name string, msg []byte, slots ...int) operation {
		return operation{name, load.GroupWidth, func() error {
			slot++
			for _, at := range slots {
				binary.BigEndian.PutUint64(msg[at:], slot)
			}
			if n, err := p.Parse(msg, sessionSink{x}, sessionSink{x}); err != nil || n != len(msg) {
				return fmt.Errorf("%d of %d bytes were decoded: %w", n, len(msg), err)
			}
			_, err := x.Commit()
			return err
		}}
	}
	entries := entriesOf(load.GroupWidth)
	size := (len(entries) - len(wire.AppendFlush(nil))) / load.GroupWidth // names have one length
	var slots []int
	for at := range load.GroupWidth {
		slots = append(slots, at*size+1)
	}
	ops.list = append(ops.list, row("append a batch", batchOf(load.GroupWidth), 1),
		row("append entries", entries, slots...))
	return nil
}

// chunks adds encoding and decoding of whole chunks of a kind of values.
func (ops *operations) chunks(kind haggar.Kind, name string) error {
	words := make([]uint64, chunk.Slots)
	it := haggar.Series(kind, 1, 0, 0)
	for i := range words {
		words[i] = it.Word(epoch + int64(i))
	}
	e := new(chunk.Encoder)
	dst := e.Append(nil, 0, words)
	src, out := append([]byte(nil), dst...), make([]uint64, chunk.Slots)
	ops.list = append(ops.list,
		operation{"encode a chunk, " + name, chunk.Slots, func() error {
			dst = e.Append(dst[:0], 0, words)
			return nil
		}},
		operation{"decode a chunk, " + name, chunk.Slots, func() error {
			return chunk.DecodeRange(out, src, 0)
		}})
	return nil
}

// reads adds reads out of a merged window.
func (ops *operations) reads(ctx context.Context) error {
	const slots = 600
	info, err := fill(ctx, ops.store, "reads", haggar.Data{Seed: 1, Walk: true}, 20)
	if err != nil {
		return err
	}
	key := seriesKey(18)
	words, minutes := make([]uint64, slots), make([]chunk.Header, slots/60)
	ops.list = append(ops.list,
		operation{"read ten minutes", slots, func() error {
			err := ops.store.Read(ctx, info, key, epoch+720, words)
			if err == nil && words[0] == point.Unset {
				err = errors.New("the point is not there")
			}
			return err
		}},
		operation{"aggregate ten minutes by the minute", slots, func() error {
			_, err := ops.store.Series(info, key).Aggregate(ctx, epoch+720, 60, minutes)
			if err == nil && minutes[0].Count != 60 {
				err = errors.New("the points are not there")
			}
			return err
		}})
	return nil
}

// fill writes a window of series into a bucket, and flushes and merges it.
func fill(ctx context.Context, s *store.Store, bucket string, data haggar.Data,
	series int) (buckets.Info, error) {
	info, err := write(s, bucket, data, series)
	if err != nil {
		return info, err
	}
	if _, err := s.Flush(ctx); err != nil {
		return info, err
	}
	if err := goOn(s, info); err != nil {
		return info, err
	}
	if _, err := s.Flush(ctx); err != nil {
		return info, err
	}
	_, err = s.Merge(ctx)
	return info, err
}
