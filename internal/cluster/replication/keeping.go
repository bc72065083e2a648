package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// hintRegistry is what a node tells the others: the partitions in which it keeps hints, and the
// ring it knows. So reads anywhere meet what the node acknowledges. A copy that is a hint is on no
// disk of an owner yet, so reads also need its keeper (Holders). Hence the first hint of a
// partition is acknowledged only when all nodes that are up have heard of it. And a node that knows
// an older ring asks the owners of that one. So nothing is acknowledged under a ring before all
// nodes that are up know it, or a later one.
type hintRegistry struct {
	*Core
	count map[int]int // hints of this node, by partition
	// of the list of this node: grows when a partition comes or goes, and with the ring
	number uint64
	ring   uint64 // the number that the list had when the ring became what it is
	agreed bool   // all who are up know the ring
	told   map[ring.ID]peerProgress
	waits  []onTold // by number
	others map[ring.ID]peerHints
	turn   uint64 // grows when HintView may return something else
}

// peerProgress is how far a peer has heard of the list of this node.
type peerProgress struct {
	heard uint64 // number of the list; 0: none since the peer came up
	sent  int64  // when it was sent last
}

// onTold is what happens once all who are up have heard of a list.
type onTold struct {
	number uint64
	do     func()
}

// peerHints is what a node has said of its hints.
type peerHints struct {
	boot, number uint64
	partitions   []byte // a bit for each
	fresh        bool   // it has said so itself, since it came up
	// it knows this ring and waits for an answer, and this node does not; zero: no
	ahead ring.Version
}

func newKeeping(c *Core) *hintRegistry {
	k := &hintRegistry{
		Core:   c,
		count:  make(map[int]int),
		number: 1,
		ring:   1,
		agreed: true,
		told:   make(map[ring.ID]peerProgress),
		others: make(map[ring.ID]peerHints),
	}
	for _, h := range c.store.Hints() {
		k.count[h.Partition]++
	}
	return k
}

// add counts a hint of this node.
func (k *hintRegistry) add(partition int) {
	if k.count[partition]++; k.count[partition] == 1 {
		k.change()
		k.tell()
	}
}

// remove takes a hint that is delivered out of the count. Nobody has to know at once.
func (k *hintRegistry) remove(partition int) {
	if k.count[partition]--; k.count[partition] == 0 {
		delete(k.count, partition)
		k.change()
	}
}

func (k *hintRegistry) change() {
	k.number++
	k.turn++
}

// list returns what this node says.
func (k *hintRegistry) list() Keeps {
	m := Keeps{Node: k.config.Self, Boot: k.config.Boot, Number: k.number, Version: k.view.Version()}
	if len(k.count) > 0 {
		m.Partitions = make([]byte, (k.view.Partitions()+7)/8)
		for p := range k.count {
			m.Partitions[p/8] |= 1 << (p % 8)
		}
	}
	return m
}

// peers are the members beside this one that are up.
func (k *hintRegistry) peers() (list []ring.ID) {
	for _, m := range k.view.Members() {
		if m.ID != k.config.Self && m.State != ring.Removed && k.up[m.ID] {
			list = append(list, m.ID)
		}
	}
	return list
}

// tell sends the list to all who have not heard it.
func (k *hintRegistry) tell() {
	m := k.list()
	for _, id := range k.peers() {
		if t := k.told[id]; t.heard < k.number {
			k.told[id] = peerProgress{t.heard, k.now.Steady}
			k.send(id, m)
		}
	}
}

// tick tells those again who have not answered, and asks those who have said nothing.
func (k *hintRegistry) tick() {
	for _, id := range k.peers() {
		t := k.told[id]
		due := k.now.Steady >= t.sent+k.config.Resend
		if due && t.heard < k.number {
			k.send(id, k.list())
		}
		if due && !k.others[id].fresh {
			k.send(id, AskKeeps{})
		}
		if due {
			k.told[id] = peerProgress{t.heard, k.now.Steady}
		}
	}
	k.settle()
}

// peer notes that a node came up or is gone. What it heard before may be lost with its process.
func (k *hintRegistry) peer(id ring.ID, up bool) {
	delete(k.told, id)
	if of, ok := k.others[id]; ok {
		of.fresh = false
		k.others[id] = of
	}
	k.turn++
	if up {
		k.tell()
	}
	k.settle()
}

// whenTold does something once all who are up have heard of the list as it is now.
func (k *hintRegistry) whenTold(do func()) {
	k.waits = append(k.waits, onTold{k.number, do})
	k.settle()
}

// settle does what nobody has to hear any more.
func (k *hintRegistry) settle() {
	least := k.number
	for _, id := range k.peers() {
		least = min(least, k.told[id].heard)
	}
	if agreed := least >= k.ring; agreed != k.agreed {
		k.agreed = agreed
		k.turn++
		k.coordinator.judgeAll()
	}
	for len(k.waits) > 0 && k.waits[0].number <= least {
		do := k.waits[0].do
		k.waits = k.waits[1:]
		do()
	}
}

// hear takes what a node says of its own hints, or of those of one that it does not reach.
func (k *hintRegistry) hear(from ring.ID, m Keeps) {
	of, known := k.others[m.Node]
	if m.Node == k.config.Self || known &&
		(m.Boot < of.boot || m.Boot == of.boot && m.Number < of.number) {
		return
	}
	if _, member := k.view.Member(m.Node); !member || len(m.Partitions) != 0 &&
		len(m.Partitions) != (k.view.Partitions()+7)/8 {
		return
	}
	k.others[m.Node] = peerHints{m.Boot, m.Number, m.Partitions, of.fresh || m.Node == from &&
		k.up[from],
		of.ahead}
	k.turn++
	if m.Node == from {
		k.answerTo(from, m.Version)
	}
}

// answerTo says that this node has heard what a peer said last, if it knows the ring that the peer
// knows, or a later one.
func (k *hintRegistry) answerTo(peer ring.ID, knows ring.Version) {
	of, here := k.others[peer], k.view.Version()
	if of.ahead = knows; here == knows || here.Number > knows.Number {
		of.ahead = ring.Version{}
		k.send(peer, KeepsReply{Boot: of.boot, Number: of.number})
	}
	k.others[peer] = of
}

// handleKeepsReply notes that a peer knows of the list of this node.
func (k *hintRegistry) handleKeepsReply(from ring.ID, m KeepsReply) {
	if t := k.told[from]; m.Boot == k.config.Boot && m.Number > t.heard && m.Number <= k.number {
		k.told[from] = peerProgress{m.Number, t.sent}
		k.settle()
	}
}

// answer tells a peer what this node keeps, and what it has heard of those that are down.
func (k *hintRegistry) answer(to ring.ID) {
	k.send(to, k.list())
	for _, m := range k.view.Members() {
		if of, ok := k.others[m.ID]; ok && !k.up[m.ID] && m.ID != to {
			k.send(to, Keeps{Node: m.ID, Boot: of.boot, Number: of.number, Partitions: of.partitions})
		}
	}
}

// restart tells the others of another ring, answers those that know it already, and lets what
// nobody needs under it go.
func (k *hintRegistry) restart() {
	for id := range k.others {
		if _, member := k.view.Member(id); !member {
			delete(k.others, id)
		}
	}
	k.change()
	k.ring = k.number
	k.tell()
	for _, id := range k.peers() {
		if ahead := k.others[id].ahead; ahead != (ring.Version{}) {
			k.answerTo(id, ahead)
		}
	}
	k.settle()
}

// Holders appends to dst the members that may keep hints of a partition for anybody, this node
// among them. These are the members that said so last, up or not, and the members that are up and
// have said nothing yet. A read that wants to meet every acknowledged point hears so many more
// nodes than R, these before any owner: hints that are delivered in between are then at the owners.
func (c *Core) Holders(dst []ring.ID, partition int) []ring.ID {
	k := c.keeping
	for _, m := range c.view.Members() {
		switch of, known := k.others[m.ID]; {
		case m.State == ring.Removed:
		case m.ID == c.config.Self:
			if k.count[partition] > 0 {
				dst = append(dst, m.ID)
			}
		case c.up[m.ID] && !of.fresh, known && len(of.partitions) > 0 &&
			of.partitions[partition/8]>>(partition%8)&1 != 0:
			dst = append(dst, m.ID)
		}
	}
	return dst
}

// HintView is what this node has heard of the others, as far as reads and events need it. Nobody
// changes it.
type HintView struct {
	Holders [][]ring.ID  // of each partition
	Version ring.Version // of the ring that this node was told last
	Agreed  bool         // all who are up know that ring, or a later one
	turn    uint64
}

// HintView returns what this node has heard of the others, nil if that is what it was.
func (c *Core) HintView(before *HintView) *HintView {
	k := c.keeping
	if before != nil && before.turn == k.turn {
		return nil
	}
	h := &HintView{
		Holders: make([][]ring.ID, c.view.Partitions()),
		Version: c.view.Version(),
		Agreed:  k.agreed,
		turn:    k.turn,
	}
	for p := range h.Holders {
		h.Holders[p] = c.Holders(nil, p)
	}
	return h
}

// except returns those of a list that are not in another one.
func except(list, besides []ring.ID) []ring.ID {
	return slices.DeleteFunc(list, func(id ring.ID) bool { return slices.Contains(besides, id) })
}
