package collectd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"dalmatiner/internal/codec/point"
)

// The types of parts (collectd.org/wiki, Binary protocol).
const (
	partHost         = 0x0000
	partTime         = 0x0001 // s
	partPlugin       = 0x0002
	partInstance     = 0x0003
	partKind         = 0x0004
	partKindInstance = 0x0005
	partValues       = 0x0006
	partTimeHR       = 0x0008 // 2^-30 s
	partMessage      = 0x0100
	partSeverity     = 0x0101
	partSignature    = 0x0200
	partEncrypted    = 0x0210
)

const (
	partHeader = 4 // type and length, the header included
	valueBytes = 9 // of a value, its type included
)

// The types of values.
const (
	typeCounter  = 0
	typeGauge    = 1
	typeDerive   = 2
	typeAbsolute = 3
)

var (
	errPart     = errors.New("a part of the packet is cut off or malformed")
	errValues   = errors.New("a part of values whose numbers do not agree with its length")
	errTime     = errors.New("a time before 1970, or beyond 2262")
	errNested   = errors.New("an encrypted part within another one")
	errInsecure = errors.New("not as safe as collectd.security_level asks for")
)

// sink takes what a packet has.
type sink interface {
	// values and notice take what they are given during the call only. An error is of this part, and
	// the packet goes on.
	values(r *reading) error
	notice(n *notice) error
}

// notice is a notification.
type notice struct {
	identity
	ns       int64 // 0 where the sender gave none
	severity uint64
	text     []byte
}

// packet is what the parts of a packet have said so far.
type packet struct {
	users    *Users // nil: nobody can sign or encrypt
	required Security
	secure   Security // of the parts under way
	read     reading
	severity uint64
	nested   bool
}

// parse hands over what a packet has. Its bytes may be changed. refuse is told of each part that
// is not taken; an error ends the packet.
func (p *packet) parse(src []byte, to sink, refuse func(err error)) error {
	p.secure, p.nested = None, false
	p.forget()
	return p.parts(src, to, refuse)
}

// forget makes the parts that follow say everything themselves: what stands ahead of a signature
// may be anybody's.
func (p *packet) forget() {
	p.severity, p.read.identity, p.read.ns = 0, identity{}, 0
}

func (p *packet) parts(src []byte, to sink, refuse func(err error)) error {
	for len(src) > 0 {
		if len(src) < partHeader {
			return errPart
		}
		kind, n := binary.BigEndian.Uint16(src), int(binary.BigEndian.Uint16(src[2:]))
		if n < partHeader || n > len(src) {
			return errPart
		}
		part, rest := src[partHeader:n], src[n:]
		src = rest
		var err error
		switch kind {
		case partSignature:
			err = p.signed(part, rest)
		case partEncrypted:
			err = p.encrypted(part, to, refuse)
		case partValues:
			if err := p.values(part, to); err != nil {
				refuse(err)
			}
		case partMessage:
			if err := p.message(part, to); err != nil {
				refuse(err)
			}
		default:
			err = p.field(kind, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// field takes a part that says something of those that follow. Others, such as the interval, are
// skipped.
func (p *packet) field(kind uint16, part []byte) (err error) {
	r := &p.read
	var n uint64
	switch kind {
	case partHost:
		r.host, err = text(part)
	case partPlugin:
		r.plugin, err = text(part)
	case partInstance:
		r.instance, err = text(part)
	case partKind:
		r.kind, err = text(part)
	case partKindInstance:
		r.kindInstance, err = text(part)
	case partSeverity:
		p.severity, err = number(part)
	case partTime:
		if n, err = number(part); n > math.MaxInt64/1_000_000_000 {
			return errTime
		}
		r.ns = int64(n) * 1e9
	case partTimeHR:
		const fraction = 30
		if n, err = number(part); n>>fraction >= math.MaxInt64/1_000_000_000 {
			return errTime
		}
		r.ns = int64(n>>fraction)*1e9 + int64((n&(1<<fraction-1))*1_000_000_000>>fraction)
	}
	return err
}

// text returns the text of a part, which ends in a zero byte.
func text(part []byte) ([]byte, error) {
	if n := bytes.IndexByte(part, 0); n >= 0 {
		return part[:n], nil
	}
	return nil, errPart
}

func number(part []byte) (uint64, error) {
	if len(part) != 8 {
		return 0, errPart
	}
	return binary.BigEndian.Uint64(part), nil
}

// values takes a part of values: their number, their types, and 8 bytes of each.
func (p *packet) values(part []byte, to sink) error {
	if p.secure < p.required {
		return errInsecure
	}
	if len(part) < 2 {
		return errValues
	}
	n, types := int(binary.BigEndian.Uint16(part)), part[2:]
	if n == 0 || len(types) != n*valueBytes {
		return errValues
	}
	r := &p.read
	r.words = r.words[:0]
	for i := range n {
		value := types[n+8*i:]
		var word uint64
		switch types[i] {
		case typeGauge: // of all numbers only this one has the order of x86
			word = gauge(math.Float64frombits(binary.LittleEndian.Uint64(value)))
		case typeCounter, typeAbsolute:
			word = counter(binary.BigEndian.Uint64(value))
		case typeDerive:
			word = point.FromInt(int64(binary.BigEndian.Uint64(value)))
		default:
			return errValues
		}
		r.words = append(r.words, word)
	}
	return to.values(r)
}

// message takes the text of a notification, with what was said ahead of it.
func (p *packet) message(part []byte, to sink) error {
	if p.secure < p.required {
		return errInsecure
	}
	message, err := text(part)
	if err != nil {
		return err
	}
	return to.notice(&notice{p.read.identity, p.read.ns, p.severity, message})
}

// signed takes a signature of the rest of the packet. Where no users are known, it says nothing.
func (p *packet) signed(part, rest []byte) error {
	if p.users == nil {
		return nil
	}
	if err := p.users.verify(part, rest); err != nil {
		return err
	}
	p.forget()
	p.secure = max(p.secure, Sign)
	return nil
}

// encrypted takes the parts of an encrypted one.
func (p *packet) encrypted(part []byte, to sink, refuse func(err error)) error {
	if p.users == nil {
		return errUser
	}
	if p.nested {
		return errNested
	}
	parts, err := p.users.decrypt(part)
	if err != nil {
		return err
	}
	outside := p.secure
	p.forget()
	p.secure, p.nested = Encrypt, true
	err = p.parts(parts, to, refuse)
	p.forget()
	p.secure, p.nested = outside, false
	return err
}
