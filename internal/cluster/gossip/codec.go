package gossip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/fields"
)

// The bounds of what is decoded.
const (
	layout       = 3 // version of the encoding
	maxText      = 255
	maxAddresses = 16
	maxNodes     = 2 * ring.MaxMembers // members, and those that want to be
	maxRegister  = 12 << 20            // bytes: all members with all their tokens and texts
)

var errMalformed = errors.New("malformed members of a cluster")

func appendState(b []byte, s *state) []byte {
	b = append(b, layout, flag(s.ring != nil))
	if s.ring != nil {
		encoded := appendRegister(nil, s.ring)
		b = append(binary.AppendUvarint(b, uint64(len(encoded))), encoded...)
	}
	ids := make([]ring.ID, 0, len(s.nodes))
	for id := range s.nodes {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(x, y ring.ID) int { return slices.Compare(x[:], y[:]) })
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = appendPresence(b, s.nodes[id])
	}
	return b
}

// parser reads states. It remembers the ring that it read last: a ring comes from many nodes, again
// and again, and takes milliseconds to build where there are a hundred members. It may be used
// concurrently.
type parser struct {
	last atomic.Pointer[decodedRing]
}

// decodedRing is a ring, and the bytes that it was read from. It never changes.
type decodedRing struct {
	bytes []byte
	ring  *register
}

func (p *parser) state(b []byte) (*state, error) {
	r := &fields.Reader{Src: b}
	r.Check(r.U8() == layout)
	s := &state{nodes: make(map[ring.ID]*presence)}
	var err error
	if r.UpTo(1) == 1 {
		if s.ring, err = p.register(r.Bytes(maxRegister)); err != nil {
			return nil, err
		}
	}
	var last ring.ID
	for n := r.UpTo(maxNodes); n > 0 && !r.Bad; n-- {
		p := readPresence(r)
		// in order: one encoding of each state
		r.Check(slices.Compare(p.node.ID[:], last[:]) > 0 && p.node.Name != "")
		s.nodes[p.node.ID], last = p, p.node.ID
	}
	if !r.IsDone() {
		return nil, errMalformed
	}
	return s, nil
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func appendRegister(b []byte, g *register) []byte {
	b = append(append(b, g.origin[:]...), flag(g.firm))
	members := g.view.Members()
	for _, n := range []uint64{g.view.Version().Number, uint64(g.view.Partitions()),
		uint64(g.view.Copies(ring.Current)),
		uint64(g.view.Copies(ring.Future)), uint64(len(members))} {
		b = binary.AppendUvarint(b, n)
	}
	for i := range members {
		m := &members[i]
		b = appendWho(b, m.ID, m.Name, m.Zone, m.Addresses, m.Protocol)
		b = append(append(b, byte(m.State)), m.Replaces[:]...)
		b = binary.AppendUvarint(b, uint64(len(m.Tokens)))
		for _, t := range m.Tokens {
			b = binary.AppendUvarint(b, uint64(t))
		}
	}
	return b
}

func (p *parser) register(b []byte) (*register, error) {
	if last := p.last.Load(); last != nil && bytes.Equal(last.bytes, b) {
		return last.ring, nil
	}
	g, err := parseRegister(b)
	if err == nil {
		p.last.Store(&decodedRing{slices.Clone(b), g})
	}
	return g, err
}

func parseRegister(b []byte) (*register, error) {
	r := &fields.Reader{Src: b}
	g := &register{origin: readID(r), firm: r.UpTo(1) == 1}
	c := ring.Config{Number: r.Uvarint(), Partitions: int(r.UpTo(ring.MaxPartitions)),
		Copies:     int(r.UpTo(ring.MaxCopies)),
		NextCopies: int(r.UpTo(ring.MaxCopies))}
	for n := r.UpTo(ring.MaxMembers); n > 0 && !r.Bad; n-- {
		var m ring.Member
		m.ID, m.Name, m.Zone, m.Addresses, m.Protocol = readWho(r)
		m.State, m.Replaces = ring.State(r.U8()), readID(r)
		for t := r.UpTo(ring.TokensPerMember); t > 0 && !r.Bad; t-- {
			m.Tokens = append(m.Tokens, uint32(r.UpTo(math.MaxUint32)))
		}
		c.Members = append(c.Members, m)
	}
	if !r.IsDone() {
		return nil, errMalformed
	}
	var err error
	if g.view, err = ring.New(c); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return g, nil
}

func appendPresence(b []byte, p *presence) []byte {
	n := &p.node
	b = appendWho(b, n.ID, n.Name, n.Zone, n.Addresses, n.Protocol)
	b = appendText(binary.AppendUvarint(b, uint64(n.Partitions)), p.gossip)
	b = append(append(b, flag(n.HasData), flag(p.firm)), p.origin[:]...)
	b = binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, p.ring.Number), p.ring.Sum)
	return binary.AppendUvarint(b, p.beat)
}

func readPresence(r *fields.Reader) *presence {
	p := &presence{}
	n := &p.node
	n.ID, n.Name, n.Zone, n.Addresses, n.Protocol = readWho(r)
	n.Partitions, p.gossip = int(r.UpTo(ring.MaxPartitions)), readText(r)
	n.HasData, p.firm = r.UpTo(1) == 1, r.UpTo(1) == 1
	p.origin, p.ring, p.beat = readID(r), ring.Version{Number: r.Uvarint(), Sum: r.U64()}, r.Uvarint()
	return p
}

// appendWho appends what members and nodes have in common.
func appendWho(b []byte, id ring.ID, name, zone string, addresses []string,
	p ring.Protocol) []byte {
	b = appendText(appendText(append(b, id[:]...), name), zone)
	b = binary.AppendUvarint(b, uint64(len(addresses)))
	for _, a := range addresses {
		b = appendText(b, a)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.Min)), uint64(p.Max))
}

func readWho(r *fields.Reader) (id ring.ID, name, zone string, addresses []string,
	p ring.Protocol) {
	id, name, zone = readID(r), readText(r), readText(r)
	for n := r.UpTo(maxAddresses); n > 0 && !r.Bad; n-- {
		addresses = append(addresses, readText(r))
	}
	p = ring.Protocol{Min: uint16(r.UpTo(math.MaxUint16)), Max: uint16(r.UpTo(math.MaxUint16))}
	return id, name, zone, addresses, p
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func readText(r *fields.Reader) string { return string(r.Bytes(maxText)) }

func readID(r *fields.Reader) (id ring.ID) {
	copy(id[:], r.Take(len(id)))
	return id
}
