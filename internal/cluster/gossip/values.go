package gossip

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/grafana/dskit/kv/memberlist"
)

// Value is something that all nodes hold and any of them may change. Merge has to give the same
// for a and b in any order, any grouping and any repetition; it may be called concurrently and
// must not change what it gets. Its error refuses b.
type Value struct {
	Name  string
	Merge func(a, b []byte) ([]byte, error)
}

// valueState is a value as dskit holds it. Its bytes never change.
type valueState struct {
	of    *Value
	bytes []byte
}

// Merge is part of memberlist.Mergeable. A change is the whole value.
func (h *valueState) Merge(other memberlist.Mergeable, _ bool) (memberlist.Mergeable, error) {
	o, ok := other.(*valueState)
	if !ok || o == nil {
		return nil, nil
	}
	merged, err := h.of.Merge(h.bytes, o.bytes)
	if err != nil {
		return nil, fmt.Errorf("merging %s: %w", h.of.Name, err)
	}
	if len(merged) > maxValue {
		return nil, fmt.Errorf("%s has %d bytes after a merge, at most %d are gossiped", h.of.Name,
			len(merged), maxValue)
	}
	if bytes.Equal(merged, h.bytes) {
		return nil, nil
	}
	h.bytes = merged
	return &valueState{h.of, merged}, nil
}

// MergeContent is part of memberlist.Mergeable.
func (h *valueState) MergeContent() []string { return []string{h.of.Name} }

// RemoveTombstones is part of memberlist.Mergeable: those of a value are the business of its merge.
func (h *valueState) RemoveTombstones(time.Time) (total, removed int) { return 0, 0 }

// Clone is part of memberlist.Mergeable.
func (h *valueState) Clone() memberlist.Mergeable { return &valueState{h.of, h.bytes} }

func (s *secrets) valueCodec(v *Value) *sealedCodec {
	return &sealedCodec{id: "value/" + v.Name, aead: s.aead,
		encode: func(h any) ([]byte, error) { return h.(*valueState).bytes, nil },
		decode: func(b []byte) (memberlist.Mergeable, error) { return &valueState{v, b}, nil },
	}
}

// Get returns a value as it is here; nil, if no node has put it yet. It must not be changed.
func (n *Node) Get(name string) ([]byte, error) {
	c, ok := n.values[name]
	if !ok {
		return nil, fmt.Errorf("no value %s is gossiped", name)
	}
	v, err := n.kv.Get(c.id, c)
	if h, ok := v.(*valueState); ok {
		return h.bytes, err
	}
	return nil, err
}

// Put merges b into a value, here at once and on the other nodes as gossip gets there. Values are
// in memory only: who starts again puts what it has kept.
func (n *Node) Put(ctx context.Context, name string, b []byte) error {
	c, ok := n.values[name]
	if !ok {
		return fmt.Errorf("no value %s is gossiped", name)
	}
	if len(b) > maxValue {
		return fmt.Errorf("%s of %d bytes is too long, at most %d are gossiped", name, len(b), maxValue)
	}
	decoded, err := c.decode(bytes.Clone(b))
	if err != nil {
		return err
	}
	return n.kv.CAS(ctx, c.id, c, func(in any) (any, bool, error) {
		if old, ok := in.(*valueState); ok {
			change, err := old.Merge(decoded.Clone(), true)
			if err != nil || change == nil {
				return nil, false, err
			}
		}
		return decoded, true, nil
	})
}
