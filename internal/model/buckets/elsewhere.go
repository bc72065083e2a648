package buckets

import (
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/model/metric"
)

// Adopt is Create for a bucket that another node has created: its id follows from deleted, the
// clock of the last deletion of its name that was known there. Where the bucket is here already it
// is returned as it is, without a call of add. The error wraps ErrUnknown where the name was
// deleted behind it, or is one of Create.
func (r *Registry[B]) Adopt(info Info, deleted uint64, add func(Info) error) (Info, error) {
	r.creating.Lock()
	defer r.creating.Unlock()
	info.ID = r.Hash(info.Name, info.Resolution, info.HPTS, deleted)
	if here, err := r.updateAdopted(&info, deleted); here || err != nil {
		return info, err
	}
	return info, add(info)
}

// updateAdopted reports whether an adopted bucket is here already, and sets its properties. The
// error says why it cannot be.
func (r *Registry[B]) updateAdopted(info *Info, deleted uint64) (bool, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if b, ok := r.byID[info.ID]; ok && b.Info().Name == info.Name {
		*info = b.Info()
		return true, nil
	}
	if last := r.deleted.last[info.Name].Clock; last > deleted {
		return false, fmt.Errorf("%w %s with the id %016x: the name was deleted at %d, behind its "+
			"creation",
			ErrUnknown, metric.Quote(info.Name), info.ID, last)
	}
	if b, ok := r.byName[info.Name]; ok {
		return false, fmt.Errorf("%w: %s, with the id %016x and not %016x", ErrExists,
			metric.Quote(info.Name), b.Info().ID, info.ID)
	}
	return false, r.checkID(info.Name, info.ID)
}

// DeleteAt calls remove for the deletion of a name at a clock given by another node, with the
// bucket that has the name. Where no bucket has it, remove gets the zero B, and the deletion has an
// id that no bucket can have. It does nothing where a deletion of the name at that clock or a
// higher one is known. No bucket is created meanwhile.
func (r *Registry[B]) DeleteAt(name string, clock uint64,
	remove func(b B, d Deletion) error) error {
	r.creating.Lock()
	defer r.creating.Unlock()
	if clock <= r.LastDeletion(name) {
		return nil
	}
	var none B
	b := r.Get(name)
	d := Deletion{Name: name, Clock: clock}
	if b != none {
		d.ID = b.Info().ID
	} else {
		d.ID = r.Hash(name, 0, false, clock) // no bucket has a resolution of 0
	}
	return remove(b, d)
}

// LastDeletion returns the clock of the last deletion of a name, 0 for none.
func (r *Registry[B]) LastDeletion(name string) uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.deleted.last[name].Clock
}

// Deletions returns the last deletion of each name, sorted by name. The slice is the caller's.
func (r *Registry[B]) Deletions() []Deletion {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Deletion, 0, len(r.deleted.last))
	for _, d := range r.deleted.last {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Deletion) int { return strings.Compare(a.Name, b.Name) })
	return out
}
