package replica

import (
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/disk/wal"
)

// priorResult is what a write returned, for when it is sent again.
type priorResult struct {
	key     replication.Key
	counts  replication.Counts
	at      replication.Position // 0 after a start
	lsn     wal.LSN              // of its record; 0: it has none of its own
	settled bool
}

// keys are what was written, by the coordinators that may send it again.
type keys struct {
	of    map[ring.ID]*sender
	count int
}

// sender is the keys of a coordinator.
type sender struct {
	boot, below uint64 // numbers below of that boot, and all boots before, are settled
	batches     map[uint64][]*priorResult
	lowest      uint64 // no batch has a number below
}

func (k *keys) sender(id ring.ID) *sender {
	if k.of == nil {
		k.of = make(map[ring.ID]*sender)
	}
	s := k.of[id]
	if s == nil {
		s = &sender{batches: make(map[uint64][]*priorResult)}
		k.of[id] = s
	}
	return s
}

// find returns what is known of a key.
func (k *keys) find(key replication.Key) *priorResult {
	s := k.of[key.Batch.Coordinator]
	if s == nil || s.boot != key.Batch.Boot {
		return nil
	}
	for _, e := range s.batches[key.Batch.Number] {
		if e.key == key {
			return e
		}
	}
	return nil
}

// add notes a key, unless it is settled.
func (k *keys) add(e *priorResult) {
	b := e.key.Batch
	s := k.sender(b.Coordinator)
	k.settle(s, b.Boot, 0)
	if b.Boot < s.boot || b.Number < s.below {
		e.settled = true
		return
	}
	if len(s.batches) == 0 {
		s.lowest = b.Number
	}
	s.lowest = min(s.lowest, b.Number)
	s.batches[b.Number] = append(s.batches[b.Number], e)
	k.count++
}

// settle lets the keys of older boots go, and of this one those with numbers below.
func (k *keys) settle(s *sender, boot, below uint64) {
	if boot < s.boot || boot == s.boot && below <= s.below {
		return
	}
	newer := boot > s.boot
	if !newer && below > s.lowest && below-s.lowest <= uint64(len(s.batches)) {
		for n := s.lowest; n < below; n++ {
			k.drop(s, n)
		}
	} else if newer || below > s.lowest {
		for n := range s.batches {
			if newer || n < below {
				k.drop(s, n)
			}
		}
	}
	s.boot, s.below, s.lowest = boot, below, max(s.lowest, below)
}

func (k *keys) drop(s *sender, number uint64) {
	for _, e := range s.batches[number] {
		e.settled = true
		k.count--
	}
	delete(s.batches, number)
}

// PriorResult returns what a Write or KeepHint with the key returned.
func (j *journal) PriorResult(key replication.Key) (replication.Counts, replication.Position,
	bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.keys.find(key); e != nil {
		return e.counts, e.at, true
	}
	return replication.Counts{}, 0, false
}

// Settle lets keys of a coordinator go: see replication.Store. The log learns of it with the next
// key of that coordinator; after a crash less may be settled than before.
func (j *journal) Settle(batch replication.BatchID, below uint64) (old bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.keys.sender(batch.Coordinator)
	if batch.Boot < s.boot || batch.Boot == s.boot && batch.Number < s.below {
		return true
	}
	j.keys.settle(s, batch.Boot, below)
	return false
}

// note keeps what became of a key. mu is held.
func (j *journal) note(key replication.Key, counts replication.Counts) *priorResult {
	e := &priorResult{key: key, counts: counts}
	j.keys.add(e)
	return e
}
