package wire

import (
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/model/metric"
)

// Request is a request of the framed mode. Op says which of the other fields have a meaning.
// The slices of a parsed one are part of the payload.
type Request struct {
	Op     Op
	Bucket []byte // name of the bucket, of all but OpBuckets
	Key    []byte // OpGet: the metric's key; OpListPrefix: the prefix of a key

	Slot    uint64     // OpGet: the first slot
	Count   uint32     // OpGet: the number of slots, may be 0
	Options GetOptions // OpGet

	Resolution    uint64 // OpAdd: milliseconds per slot
	PointsPerFile uint64 // OpAdd, see Info
	TTL           uint64 // OpAdd, OpTTL: lifetime in points, 0 is infinite

	Coded      []byte // OpEvents: a list of events, compressed; see DecodeEvents
	Start, End uint64 // OpGetEvents, OpGetEventsFiltered: first ns, and the one behind the last
	Filter     []byte // OpGetEventsFiltered: for package filter

	// OpStream, OpStream2, OpAckStream: slots after which points are written without a flush
	Delay uint8
	HPTS  bool // OpStream2, OpAckStream: points carry timestamps; OpAdd: those of the bucket do

	// Traced says that the request is wrapped with two trace ids, as the original's clients
	// send every GET. An id of 0 is none.
	Traced          bool
	TraceID, Parent uint64
}

// OptionForm says which option fields a GET carries (docs/protocol.md, "Requests").
type OptionForm uint8

// The forms of GET options.
const (
	OptionsNone OptionForm = iota // read repair and R are the server's defaults
	OptionsPair                   // rr, r: clients of 2017-02 to 2018-03
	OptionsFull                   // flags, rr, r
	OptionsAggr                   // flags, rr, r and an aggregation the server may apply
)

// The flags of GET options. Clients of the original know the first one.
const (
	flagHPTS  = 1
	flagExact = 2
)

// Values of GetOptions.ReadRepair.
const (
	RepairOff     uint8 = 0
	RepairOn      uint8 = 1
	RepairDefault uint8 = 2
)

// GetOptions are the options of a GET. Parsed fields that its form does not carry are 0, but
// ReadRepair, which is RepairDefault.
type GetOptions struct {
	Form       OptionForm
	HPTS       bool   // the reply is to have timestamps
	Exact      bool   // the reply is to have all bits of floats, and stale markers
	ReadRepair uint8  // RepairOff, RepairOn, RepairDefault
	R          uint8  // replies to wait for: 0 the default, 255 all
	Aggr       []byte // name of the aggregation asked for
	AggrCount  uint32 // slots per aggregated point, at least 1
}

// ParseRequest decodes the payload of a request frame. The slices of the Request are part of
// payload. The error wraps ErrMalformed, ErrUnknownOpcode, or ErrUnsupported for what the
// protocol has and this server does not (UDP, versions). The Request has what was
// read before the error.
func ParseRequest(payload []byte) (Request, error) {
	r := reader{src: payload}
	req := Request{Op: Op(r.u8())}
	if req.Op == OpTraced && !r.short {
		req.Traced, req.TraceID, req.Parent = true, r.u64(), r.u64()
		req.Op = Op(r.u8())
		if req.Op == OpTraced && !r.short {
			return req, fmt.Errorf("%w: a traced request inside a traced request", ErrMalformed)
		}
	}
	if r.short {
		return req, fmt.Errorf("%w: a request of %d bytes has no opcode", ErrMalformed, len(payload))
	}
	if err := req.parseBody(&r); err != nil {
		return req, err
	}
	switch {
	case r.short:
		return req, fmt.Errorf("%w: opcode %d ends after %d bytes, inside a field", ErrMalformed, req.Op,
			len(payload))
	case len(r.src) > 0:
		return req, fmt.Errorf("%w: opcode %d has %d bytes too many", ErrMalformed, req.Op, len(r.src))
	case req.Op != OpBuckets && len(req.Bucket) == 0:
		return req, fmt.Errorf("%w: opcode %d names no bucket", ErrMalformed, req.Op)
	}
	return req, nil
}

func (q *Request) parseBody(r *reader) error {
	if q.Op == OpBuckets {
		return nil
	}
	switch q.Op {
	case OpStream:
		q.Delay = r.u8()
	case OpStream2:
		flag := r.u8()
		q.HPTS = flag == 1
		if flag > 1 {
			return fmt.Errorf("%w: hpts flag %d, it is 0 or 1", ErrMalformed, flag)
		}
		q.Delay = r.u8()
	case OpAckStream:
		v := r.u8()
		q.HPTS = v == AckTimestamped
		if v != AckVersion && v != AckTimestamped && !r.short {
			return fmt.Errorf("%w: version %d of the acknowledged stream, this server speaks %d and %d",
				ErrUnsupported, v, AckVersion, AckTimestamped)
		}
		q.Delay = r.u8()
	case OpList, OpGet, OpInfo, OpAdd, OpDelete, OpListPrefix, OpTTL, OpEvents, OpGetEvents,
		OpGetEventsFiltered:
	case OpPut:
		return fmt.Errorf("%w: opcode 0 (UDP put): open a stream with opcode 4", ErrUnsupported)
	default:
		return fmt.Errorf("%w: %d (0x%02x) is no request", ErrUnknownOpcode, q.Op, uint8(q.Op))
	}
	q.Bucket = r.b8()
	switch q.Op {
	case OpListPrefix:
		q.Key = r.b16()
	case OpAdd:
		q.Resolution, q.PointsPerFile, q.TTL = r.u64(), r.u64(), r.u64()
		if len(r.src) == 1 {
			if flag := r.u8(); flag != 1 {
				return fmt.Errorf("%w: hpts flag %d behind a creation, it is 1 or left out", ErrMalformed, flag)
			}
			q.HPTS = true
		}
	case OpTTL:
		q.TTL = r.u64()
	case OpGet:
		q.Key, q.Slot, q.Count = r.b16(), r.u64(), r.u32()
		return q.Options.parse(r)
	case OpEvents:
		q.Coded = r.rest()
	case OpGetEvents:
		q.Start, q.End = r.u64(), r.u64()
	case OpGetEventsFiltered:
		q.Start, q.End = r.u64(), r.u64()
		q.Filter = r.rest()
	}
	return nil
}

// parse tells the forms apart by what is left of the request.
func (o *GetOptions) parse(r *reader) error {
	o.ReadRepair = RepairDefault
	if r.short {
		return nil
	}
	switch n := len(r.src); {
	case n == 0:
		return nil
	case n == 2:
		o.Form = OptionsPair
	case n == 3:
		o.Form = OptionsFull
	case n >= 8:
		o.Form = OptionsAggr
	default:
		return fmt.Errorf("%w: get options of %d bytes, they have 0, 2, 3, or 8 and more", ErrMalformed,
			n)
	}
	if o.Form != OptionsPair {
		flags := r.u8()
		o.HPTS, o.Exact = flags&flagHPTS != 0, flags&flagExact != 0
		if flags > flagHPTS|flagExact {
			return fmt.Errorf("%w: flags %d of a get, they are 0 to 3", ErrMalformed, flags)
		}
	}
	o.ReadRepair, o.R = r.u8(), r.u8()
	if o.ReadRepair > RepairDefault {
		return fmt.Errorf("%w: read repair option %d, it is 0, 1 or 2", ErrMalformed, o.ReadRepair)
	}
	if o.Form == OptionsAggr {
		o.Aggr, o.AggrCount = r.b8(), r.u32()
		if o.AggrCount == 0 && !r.short {
			return fmt.Errorf("%w: aggregation over 0 points, the least is 1", ErrMalformed)
		}
	}
	return nil
}

// AppendRequest appends the payload of q, without a frame. It refuses an opcode that is no
// request, and names that are empty or too long (metric.MaxBucket, metric.MaxKey). dst is
// unchanged then.
func AppendRequest(dst []byte, q *Request) ([]byte, error) {
	if err := q.check(); err != nil {
		return dst, err
	}
	if q.Traced {
		dst = append(dst, byte(OpTraced))
		dst = binary.BigEndian.AppendUint64(dst, q.TraceID)
		dst = binary.BigEndian.AppendUint64(dst, q.Parent)
	}
	dst = append(dst, byte(q.Op))
	switch q.Op {
	case OpBuckets:
		return dst, nil
	case OpStream:
		dst = append(dst, q.Delay)
	case OpStream2:
		dst = append(dst, flagByte(q.HPTS), q.Delay)
	case OpAckStream:
		version := byte(AckVersion)
		if q.HPTS {
			version = AckTimestamped
		}
		dst = append(dst, version, q.Delay)
	}
	dst = append(dst, byte(len(q.Bucket)))
	dst = append(dst, q.Bucket...)
	switch q.Op {
	case OpListPrefix:
		dst = appendB16(dst, q.Key)
	case OpAdd:
		dst = binary.BigEndian.AppendUint64(dst, q.Resolution)
		dst = binary.BigEndian.AppendUint64(dst, q.PointsPerFile)
		dst = binary.BigEndian.AppendUint64(dst, q.TTL)
		if q.HPTS {
			dst = append(dst, flagByte(true)) // a form without it is what clients of the original send
		}
	case OpTTL:
		dst = binary.BigEndian.AppendUint64(dst, q.TTL)
	case OpGet:
		dst = appendB16(dst, q.Key)
		dst = binary.BigEndian.AppendUint64(dst, q.Slot)
		dst = binary.BigEndian.AppendUint32(dst, q.Count)
		dst = q.Options.append(dst)
	case OpEvents:
		dst = append(dst, q.Coded...)
	case OpGetEvents, OpGetEventsFiltered:
		dst = binary.BigEndian.AppendUint64(dst, q.Start)
		dst = binary.BigEndian.AppendUint64(dst, q.End)
		dst = append(dst, q.Filter...)
	}
	return dst, nil
}

func (q *Request) check() error {
	switch q.Op {
	case OpList, OpGet, OpBuckets, OpStream, OpStream2, OpAckStream, OpInfo, OpAdd, OpDelete,
		OpListPrefix, OpTTL,
		OpEvents, OpGetEvents, OpGetEventsFiltered:
	default:
		return fmt.Errorf("%w: %d is no request", ErrUnknownOpcode, q.Op)
	}
	if q.Op != OpBuckets && (len(q.Bucket) == 0 || len(q.Bucket) > metric.MaxBucket) {
		return fmt.Errorf("a bucket's name has %d bytes, it needs 1 to %d", len(q.Bucket),
			metric.MaxBucket)
	}
	if q.Op == OpGetEvents && len(q.Filter) > 0 {
		return fmt.Errorf("a filter stands in opcode %d, not in %d", OpGetEventsFiltered, OpGetEvents)
	}
	if len(q.Key) > metric.MaxKey {
		return fmt.Errorf("a metric's key has %d bytes, the limit is %d", len(q.Key), metric.MaxKey)
	}
	if len(q.Options.Aggr) > 255 {
		return fmt.Errorf("an aggregation's name has %d bytes, the limit is 255", len(q.Options.Aggr))
	}
	return nil
}

func (o *GetOptions) append(dst []byte) []byte {
	if o.Form == OptionsNone {
		return dst
	}
	if o.Form != OptionsPair {
		dst = append(dst, flagByte(o.HPTS)*flagHPTS|flagByte(o.Exact)*flagExact)
	}
	dst = append(dst, o.ReadRepair, o.R)
	if o.Form == OptionsAggr {
		dst = append(dst, byte(len(o.Aggr)))
		dst = append(dst, o.Aggr...)
		dst = binary.BigEndian.AppendUint32(dst, o.AggrCount)
	}
	return dst
}
