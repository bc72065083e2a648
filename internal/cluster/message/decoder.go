package message

import (
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/metric"
)

// Decoder reads the frames of one peer, whatever connection they come over. It is not for
// concurrent use.
type Decoder struct {
	names   *names.Registry
	epoch   epoch
	known   *pages
	groups  *groups
	buckets []numberedBucket
	lacks   epoch // of the last frame that needed names which are not here
	fresh   []definition
	deleted []deletionKey
}

// numberedBucket is a bucket in the table; an id of 0 is that of none.
type numberedBucket struct {
	id         uint64
	timestamps bool
}

// NewDecoder returns one that knows no names. It notes those that come in a registry.
func NewDecoder(names *names.Registry) *Decoder {
	return &Decoder{names: names, known: new(pages), groups: new(groups)}
}

// Decode reads a frame. news are the buckets that the peer has told of for the first time since it
// began anew: they are to be known before the message is. Nothing that is returned is part of b.
// A frame with an error changes nothing, and its message is lost: the error wraps ErrRenew if
// names are missing, else ErrMalformed.
func (d *Decoder) Decode(b []byte) (m replication.Message, news []replication.Bucket, err error) {
	f := frame{reader: reader{Reader: fields.Reader{Src: b}, deleted: d.deleted[:0]}}
	r := &f.reader
	r.lookup = lookup{fresh: d.fresh[:0], names: d.names, period: d.names.Period()}
	if v := r.U8(); v != version {
		return nil, nil, fmt.Errorf("%w: version %d of the encoding, want %d", ErrMalformed, v, version)
	}
	kind := r.U8()
	of := epoch{r.uvarint(), r.uvarint()}
	if of == d.epoch {
		r.known, r.groups, f.buckets = d.known, d.groups, d.buckets
	}
	f.readDefinitions()
	m = r.message(kind)
	d.fresh, d.deleted = r.fresh, r.deleted
	switch {
	case r.missing:
		d.lacks = of
		return nil, nil, fmt.Errorf("%w: they came with a frame that was lost", ErrRenew)
	case !r.IsDone():
		return nil, nil, fmt.Errorf("%w of kind %d with %d bytes", ErrMalformed, kind, len(b))
	}
	d.take(of, &f)
	return m, f.news, nil
}

// take keeps what a good frame has brought.
func (d *Decoder) take(of epoch, f *frame) {
	if of != d.epoch {
		d.epoch, d.known, d.groups, d.buckets = of, new(pages), new(groups), nil
	}
	if n := f.firstBucket + len(f.news) - len(d.buckets); n > 0 && len(f.news) > 0 {
		d.buckets = append(d.buckets, make([]numberedBucket, n)...)
	}
	for i, b := range f.news {
		d.buckets[f.firstBucket+i] = numberedBucket{b.ID(), b.Timestamps}
	}
	for i, n := range f.fresh {
		d.names.Note(n.id, n.bucket, n.key)
		d.known.set(f.first+uint32(i), knownName{n.id, f.period})
	}
	for _, of := range f.deleted {
		d.names.NoteBucket(of.series, of.bucket)
	}
	clear(d.fresh) // the keys are the frame's
}

// frame is what is in front of a message.
type frame struct {
	reader
	buckets     []numberedBucket
	firstBucket int
	news        []replication.Bucket
}

// readDefinitions reads buckets and names. A number that stands for something already must stand
// for the same: else the tables have nothing to do with each other.
func (f *frame) readDefinitions() {
	r := &f.reader
	if n := r.count(minBucket); n > 0 {
		f.firstBucket = int(r.upTo(uint64(MaxBuckets - min(n, MaxBuckets))))
		r.Check(n <= MaxBuckets)
		for i := 0; i < n && !r.Bad; i++ {
			b := r.bucket()
			f.news = append(f.news, b)
			if at := f.firstBucket + i; !r.Bad && at < len(f.buckets) && f.buckets[at].id != 0 &&
				f.buckets[at].id != b.ID() {
				r.lacks()
			}
		}
	}
	if n := r.count(2); n > 0 {
		r.first = uint32(r.upTo(uint64(MaxNames - min(n, MaxNames))))
		r.Check(n <= MaxNames)
		for i := 0; i < n && !r.Bad; i++ {
			f.name(r.first + uint32(i))
		}
	}
}

func (f *frame) name(number uint32) {
	r := &f.reader
	bucket := f.bucketOf(r.upTo(MaxBuckets - 1))
	key := r.key()
	if r.Bad {
		return
	}
	id := metric.ValuesOf(bucket.id, key, bucket.timestamps)
	if r.lookup.known != nil {
		if k := r.lookup.known.nameAt(number); k != nil && k.period != 0 && k.id != id {
			r.lacks()
			return
		}
	}
	r.fresh = append(r.fresh, definition{id, bucket.id, key})
}

// bucketOf returns a bucket of this frame or of an earlier one.
func (f *frame) bucketOf(number uint64) (b numberedBucket) {
	if i := int(number) - f.firstBucket; i >= 0 && i < len(f.news) {
		return numberedBucket{f.news[i].ID(), f.news[i].Timestamps}
	}
	if int(number) < len(f.buckets) {
		b = f.buckets[number]
	}
	if b.id == 0 {
		f.reader.lacks()
	}
	return b
}

const requestSize = 1 + 16

// AppendRequest appends what the peer's encoder is to be told (Encoder.HandleRequest) after an
// error that wraps ErrRenew.
func (d *Decoder) AppendRequest(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, version), d.lacks.boot)
	return binary.BigEndian.AppendUint64(dst, d.lacks.number)
}

func readRequest(b []byte) (epoch, error) {
	if len(b) != requestSize || b[0] != version {
		return epoch{}, fmt.Errorf("%w: a request for names of %d bytes", ErrMalformed, len(b))
	}
	return epoch{binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])}, nil
}
