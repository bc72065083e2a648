package overload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// visiblePatience is how long a point may take until it can be read.
const visiblePatience = time.Minute

const visibleBucket = "visible"

// Visible measures how long a point takes from its sender until a reader has
// it: a stream sends it, another connection asks for it until it is there. The
// last question is in that time.
type Visible struct {
	stream *client.Stream
	reader *client.Client
	key    []byte
	slot   int64
}

// NewVisible opens its two connections. Slots count up from first.
func NewVisible(ctx context.Context, addr string, first int64) (*Visible, error) {
	writer, err := client.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	v := &Visible{slot: first}
	if v.reader, err = client.Dial(ctx, addr); err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	// The reader may ask before the stream's opening has made the bucket.
	if _, err = v.reader.AddBucket(ctx, visibleBucket, 1000, 604_800, 0); err == nil {
		v.stream, err = writer.OpenStream(visibleBucket, 1)
	}
	if err == nil {
		v.key, err = metric.Key("visible")
	}
	if err != nil {
		return nil, errors.Join(err, writer.Close(), v.reader.Close())
	}
	return v, nil
}

// Measure sends one point and returns how long it took.
func (v *Visible) Measure(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	v.slot++
	if err := v.stream.Point(v.key, v.slot, point.FromInt(v.slot)); err != nil {
		return 0, err
	}
	if err := v.stream.Flush(); err != nil {
		return 0, err
	}
	for {
		words, err := v.reader.Get(ctx, visibleBucket, v.key, v.slot, 1)
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		if words[0] == point.FromInt(v.slot) {
			return took, nil
		}
		if took > visiblePatience {
			return 0, fmt.Errorf("after %v a point that was sent cannot be read", took)
		}
	}
}

// Close ends the connections.
func (v *Visible) Close() error { return errors.Join(v.stream.Close(), v.reader.Close()) }
