package graphite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
)

const (
	// tagBatch is how many series are given their tags at once.
	tagBatch = 256

	// tagPause is how long, in ms, no tags are given after some could not be stored. Their
	// points are, and bring them again.
	tagPause = 1000
)

// tagger gives series their tags: those that it does not know to have them. It is shared by all
// connections.
type tagger struct {
	to     write.Tagger // nil gives none
	known  known
	paused atomic.Int64 // until then, in ms since 1970
}

// pending are the tags of series on their way.
type pending struct {
	losses uint64 // of the time when the batch began
	ids    []metric.SeriesID
	list   []tags.Change
}

// tag notes the tags of a series, unless it has them. Its key begins with the name, of so many
// bytes.
func (a *appender) tag(key []byte, name int) error {
	t := &a.s.tags
	if t.to == nil || a.dec.now < t.paused.Load() {
		return nil
	}
	bucket := a.bucket.Info()
	id := metric.Series(bucket.ID, key)
	if t.known.has(id, a.tags.losses) {
		return nil
	}
	t.known.add(id, a.tags.losses)
	key = bytes.Clone(key)
	c := tags.Change{Bucket: bucket.ID, Key: key, Collection: []byte(bucket.Name), Name: key[:name]}
	for rest := key[name:]; len(rest) > 0; {
		end := 1 + int(rest[0])
		tag, value, _ := bytes.Cut(rest[1:end], []byte("="))
		c.Set = append(c.Set, tags.Tag{TagName: tags.TagName{Name: tag}, Value: value})
		rest = rest[end:]
	}
	a.tags.ids, a.tags.list = append(a.tags.ids, id), append(a.tags.list, c)
	if len(a.tags.list) < tagBatch {
		return nil
	}
	return a.giveTags()
}

// giveTags gives series the tags that were noted. What cannot be stored is counted; their points
// are stored. An error means that nothing can be stored any more.
func (a *appender) giveTags() error {
	p, t := &a.tags, &a.s.tags
	if len(p.list) == 0 {
		return nil
	}
	defer func() {
		clear(p.list)
		p.list, p.ids = p.list[:0], p.ids[:0]
	}()
	done, err := t.to.Tag(a.s.ctx, p.list, a.neverWait)
	if done.Refused > 0 {
		reason, ok := unacked.Refused(done.Why)
		if !ok {
			reason = "limit"
		}
		a.refuseTags(reason, done.Refused, done.Why)
	}
	if err == nil {
		return nil
	}
	reason, ok := unacked.Refused(err)
	if errors.Is(err, context.Canceled) {
		reason, ok = "shutdown", true
	}
	if !ok {
		return fmt.Errorf("storing tags: %w", err)
	}
	for _, id := range p.ids {
		t.known.remove(id)
	}
	t.paused.Store(a.dec.now + tagPause)
	a.refuseTags(reason, len(p.list), err)
	return nil
}

func (a *appender) refuseTags(reason string, n int, why error) {
	for range n {
		a.s.refusals.Count("tags_"+reason, a.peer, []byte(why.Error()))
	}
}

// known is which series have their tags, as far as it is remembered: up to 2^20 series, 16 bytes
// each. A series that is not remembered is looked up again where the tags are.
type known struct {
	shards [knownShards]knownShard
	bytes  atomic.Int64
}

const (
	knownShards = 16
	knownFirst  = 64      // slots of a shard at first
	knownMost   = 1 << 16 // slots of a shard
	knownWays   = 4       // slots that an id may be in
	idBytes     = len(metric.SeriesID{})
)

type knownShard struct {
	mu     sync.Mutex
	losses uint64 // what is remembered holds as long as there were no more
	ids    []metric.SeriesID
	n      int // slots in use
}

// pool is the memory of what is known.
func (k *known) pool() memory.Pool {
	return memory.Pool{
		Name:  "graphite-tags",
		Holds: "which tagged series are known; at most 16 MiB",
		Use:   k.bytes.Load,
	}
}

func (k *known) shard(id metric.SeriesID) *knownShard { return &k.shards[id[0]%knownShards] }

// slots returns the slots that an id may be in.
func (s *knownShard) slots(id metric.SeriesID) []metric.SeriesID {
	at := int(binary.LittleEndian.Uint32(id[4:])) & (len(s.ids) - 1) &^ (knownWays - 1)
	return s.ids[at : at+knownWays]
}

// has reports whether a series is known to have its tags, where there were so many losses.
func (k *known) has(id metric.SeriesID, losses uint64) bool {
	s := k.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if losses > s.losses { // what is known may hold no more
		clear(s.ids)
		s.losses, s.n = losses, 0
	}
	if losses < s.losses || s.n == 0 {
		return false
	}
	for _, other := range s.slots(id) {
		if other == id {
			return true
		}
	}
	return false
}

// add notes that a series has its tags. It may take the place of another one.
func (k *known) add(id metric.SeriesID, losses uint64) {
	s := k.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if losses != s.losses {
		return
	}
	if 2*s.n >= len(s.ids) && len(s.ids) < knownMost {
		old := s.ids
		s.ids, s.n = make([]metric.SeriesID, max(knownFirst, 2*len(old))), 0
		k.bytes.Add(int64(idBytes * (len(s.ids) - len(old))))
		for _, id := range old {
			if id != (metric.SeriesID{}) {
				s.put(id)
			}
		}
	}
	s.put(id)
}

func (s *knownShard) put(id metric.SeriesID) {
	slots := s.slots(id)
	for i, other := range slots {
		if other == (metric.SeriesID{}) {
			slots[i] = id
			s.n++
			return
		}
	}
	slots[id[1]%knownWays] = id
}

// remove forgets a series.
func (k *known) remove(id metric.SeriesID) {
	s := k.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return
	}
	slots := s.slots(id)
	for i, other := range slots {
		if other == id {
			slots[i] = metric.SeriesID{}
			s.n--
		}
	}
}
