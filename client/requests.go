package client

import (
	"context"
	"fmt"

	"dalmatiner/internal/wire"
)

// Buckets returns the names of the store's buckets, in no particular order.
func (c *Client) Buckets(ctx context.Context) ([]string, error) {
	return c.names(ctx, wire.Request{Op: wire.OpBuckets})
}

// List returns the keys of all metrics of a bucket, in no particular order.
func (c *Client) List(ctx context.Context, bucket string) ([]string, error) {
	return c.names(ctx, wire.Request{Op: wire.OpList, Bucket: []byte(bucket)})
}

// ListPrefix returns the keys of a bucket that begin with the bytes of prefix, in no
// particular order.
func (c *Client) ListPrefix(ctx context.Context, bucket string, prefix []byte) ([]string, error) {
	return c.names(ctx, wire.Request{Op: wire.OpListPrefix, Bucket: []byte(bucket), Key: prefix})
}

func (c *Client) names(ctx context.Context, q wire.Request) ([]string, error) {
	payload, err := c.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	raw, err := wire.ParseNames(payload)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(raw))
	for i, n := range raw {
		names[i] = string(n)
	}
	return names, nil
}

// Info returns the properties of a bucket.
func (c *Client) Info(ctx context.Context, bucket string) (wire.Info, error) {
	payload, err := c.ask(ctx, wire.Request{Op: wire.OpInfo, Bucket: []byte(bucket)})
	if err != nil {
		return wire.Info{}, err
	}
	return wire.ParseInfo(payload)
}

// AddBucket creates a bucket and returns its properties. resolutionMs is the length of a slot
// in milliseconds. ttl is the lifetime of points in slots, 0 for ever. pointsPerFile says at
// which multiples of slots a reply to Get is cut into frames. It is an error, a *ServerError,
// if the bucket exists. The protocol answers nothing to a creation, so the client asks for
// the properties behind it.
func (c *Client) AddBucket(ctx context.Context, bucket string, resolutionMs, pointsPerFile,
	ttl uint64) (wire.Info, error) {
	return c.addBucket(ctx, wire.Request{
		Op: wire.OpAdd, Bucket: []byte(bucket), Resolution: resolutionMs, PointsPerFile: pointsPerFile,
		TTL: ttl,
	})
}

// AddTimestampedBucket is AddBucket for a bucket whose points have timestamps. Servers of the
// original do not know this request.
func (c *Client) AddTimestampedBucket(ctx context.Context, bucket string, resolutionMs,
	pointsPerFile, ttl uint64) (wire.Info, error) {
	return c.addBucket(ctx, wire.Request{
		Op: wire.OpAdd, Bucket: []byte(bucket), Resolution: resolutionMs, PointsPerFile: pointsPerFile,
		TTL: ttl, HPTS: true,
	})
}

func (c *Client) addBucket(ctx context.Context, q wire.Request) (wire.Info, error) {
	payload, err := c.ask(ctx, q, wire.Request{Op: wire.OpInfo, Bucket: q.Bucket})
	if err != nil {
		return wire.Info{}, err
	}
	return wire.ParseInfo(payload)
}

// DeleteBucket deletes a bucket with all its points. When it returns nil, the server has
// handled the deletion: the client asks for the list of buckets behind it.
func (c *Client) DeleteBucket(ctx context.Context, bucket string) error {
	_, err := c.ask(ctx, wire.Request{Op: wire.OpDelete, Bucket: []byte(bucket)},
		wire.Request{Op: wire.OpBuckets})
	return err
}

// SetTTL sets the lifetime of the points of a bucket, in slots, 0 for ever, and returns the
// properties that the bucket has then.
func (c *Client) SetTTL(ctx context.Context, bucket string, ttl uint64) (wire.Info, error) {
	name := []byte(bucket)
	payload, err := c.ask(ctx, wire.Request{
		Op:     wire.OpTTL,
		Bucket: name,
		TTL:    ttl,
	}, wire.Request{Op: wire.OpInfo, Bucket: name})
	if err != nil {
		return wire.Info{}, err
	}
	return wire.ParseInfo(payload)
}

// Get returns the words of count slots of a series, from slot on, normalised. Slots without a
// point, and all slots of an unknown series, are point.Unset. A slot in which the series has ended
// is point.Stale. More than MaxGet slots are an
// error before anything is sent.
func (c *Client) Get(ctx context.Context, bucket string, key []byte, slot int64,
	count int) ([]uint64, error) {
	return get(ctx, c, getRequest(bucket, key, slot, count), count, c.dec.AppendWords)
}

// GetTimestamped is Get with the timestamps of the points, in nanoseconds since 1970. In a bucket
// without timestamps, and of stale markers, they are the begin of the slot. Slots without a point
// have neither a value nor a timestamp.
func (c *Client) GetTimestamped(ctx context.Context, bucket string, key []byte, slot int64,
	count int) ([]wire.Timestamped, error) {
	q := getRequest(bucket, key, slot, count)
	q.Options.HPTS = true
	return get(ctx, c, q, count, c.dec.AppendTimestamped)
}

func getRequest(bucket string, key []byte, slot int64, count int) wire.Request {
	return wire.Request{
		Op: wire.OpGet, Bucket: []byte(bucket), Key: key, Slot: uint64(slot), Count: uint32(count),
		Options: wire.GetOptions{Form: wire.OptionsFull, Exact: true, ReadRepair: wire.RepairDefault},
	}
}

// appendFrame appends the points of a data frame, at most limit of them.
type appendFrame[P any] func(dst []P, f wire.GetFrame, limit int) ([]P, error)

func get[P any](ctx context.Context, c *Client, q wire.Request, count int,
	appendTo appendFrame[P]) ([]P, error) {
	if count < 0 || count > MaxGet {
		return nil, fmt.Errorf("get of %d slots, the limit is %d: ask in pieces", count, MaxGet)
	}
	done, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	points, err := frames(c, q, count, appendTo)
	if err != nil {
		return nil, c.wrap(ctx, []wire.Request{q}, err)
	}
	return points, nil
}

// frames sends a GET and reads the frames of its reply.
func frames[P any](c *Client, q wire.Request, count int, appendTo appendFrame[P]) ([]P, error) {
	if err := c.send(q); err != nil {
		return nil, err
	}
	var points []P
	for first := true; ; first = false {
		payload, err := c.reply()
		if err != nil {
			return nil, err
		}
		f, err := wire.ParseGetFrame(payload)
		if err != nil {
			return nil, err
		}
		switch f.Kind {
		case wire.GetEnd:
			if len(points) != count {
				return nil, fmt.Errorf("%w: the reply has %d slots, asked were %d", wire.ErrMalformed,
					len(points), count)
			}
			return points, nil
		case wire.GetHeader:
			if !first || f.Aggr != nil {
				return nil, fmt.Errorf("%w: a get header of aggregation %q that nobody asked for",
					wire.ErrMalformed, f.Aggr)
			}
		case wire.GetData:
			if points, err = appendTo(points, f, count-len(points)); err != nil {
				return nil, err
			}
		}
	}
}
