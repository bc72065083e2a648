package series

import (
	"slices"
	"sync"

	"dalmatiner/internal/write/head"
)

// Groups finds a column group of the node by its id. Its methods may be called
// concurrently.
type Groups struct {
	mu     sync.RWMutex
	list   []*head.Group // by id; nil where there is none
	nextID uint32
}

// Get returns a group, nil where there is none of that id.
func (t *Groups) Get(id uint32) *head.Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if int(id) < len(t.list) {
		return t.list[id]
	}
	return nil
}

// Column returns where the head has a series, no group where it holds nothing of it.
func (t *Groups) Column(ref Ref) (g *head.Group, col int) {
	if ref.Inactive() {
		return nil, 0
	}
	return t.Get(ref.Group()), ref.Column()
}

// Put adds a group under its id.
func (t *Groups) Put(g *head.Group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if need := int(g.ID) + 1 - len(t.list); need > 0 {
		t.list = append(t.list, make([]*head.Group, need)...)
	}
	t.list[g.ID] = g
	t.nextID = max(t.nextID, g.ID+1)
}

// Remove takes a group out. Its id is not used again.
func (t *Groups) Remove(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if int(id) < len(t.list) {
		t.list[id] = nil
	}
}

// Reserve returns an id that no group has or had. It is false when all are used up.
func (t *Groups) Reserve() (uint32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nextID >= MaxGroups {
		return 0, false
	}
	t.nextID++
	return t.nextID - 1, true
}

// Next returns the lowest id that no group has had.
func (t *Groups) Next() uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.nextID
}

// Skip makes Reserve return no id below next.
func (t *Groups) Skip(next uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nextID = max(t.nextID, next)
}

// All returns the groups in the order of their ids.
func (t *Groups) All() []*head.Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := slices.Clone(t.list)
	return slices.DeleteFunc(out, func(g *head.Group) bool { return g == nil })
}
