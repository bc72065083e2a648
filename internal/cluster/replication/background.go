package replication

import "slices"

// Background is the work of a store beside the protocol, and its waiters. Adopted chunks go into
// files past the log of the store, so nobody waits for them with the log. Digests of a large share
// take longer than other callers may wait.
type Background struct {
	core     *Core
	adopted  uint64      // the last chunk that is in a file
	stored   []onFile    // ascending
	prepared []onDigests // as they came
}

// onFile is what happens once the chunks up to one are in files.
type onFile struct {
	last uint64
	do   func()
}

// onDigests is what happens once the digests of a share are there, or since long were not.
type onDigests struct {
	question
	since int64 // Time.Steady
	do    func()
}

// question is one that this node asks another, or that other asks. There is one at a time.
type question struct {
	pair
	own bool
}

// Background returns what the store is to do beside the protocol.
func (c *Core) Background() *Background { return c.background }

// whenStored does something once all is on disk that this node has now.
func (b *Background) whenStored(do func()) {
	last, _ := b.core.store.AdoptProgress()
	if last <= b.adopted {
		b.core.whenSynced(b.core.noted, do)
		return
	}
	b.stored = append(b.stored, onFile{last, do})
}

// AwaitsFiles reports whether somebody waits for chunks that the store has to adopt.
func (b *Background) AwaitsFiles() bool { return len(b.stored) > 0 }

// MovedPoints returns how many points comparisons have brought to this node and to others since it
// started.
func (b *Background) MovedPoints() uint64 { return b.core.stats.Moved + b.core.stats.Repaired }

// Pace says which part of Config.ComparePoints comparisons move in a tick from now on: above 0, at
// most 1.
func (b *Background) Pace(share float64) { b.core.compare.pace = share }

// AdoptedUpTo says that the chunks up to one are in files, on disk.
func (b *Background) AdoptedUpTo(t Time, upTo uint64) {
	b.core.now = t
	b.adopted = max(b.adopted, upTo)
	for len(b.stored) > 0 && b.stored[0].last <= upTo {
		do := b.stored[0].do
		b.stored = b.stored[1:]
		b.core.whenSynced(b.core.noted, do)
	}
}

// isCrowded reports whether so many chunks wait to be adopted that no more are asked for.
func (b *Background) isCrowded() bool {
	_, waiting := b.core.store.AdoptProgress()
	return waiting > maxAdopting
}

// whenPrepared does something for a question once the store has the digests of its share at hand,
// mostly at once. When a question comes again that waits, only the last one is done.
func (b *Background) whenPrepared(q question, do func()) {
	if b.core.store.Prepare(q.Share) {
		do()
		return
	}
	if i := slices.IndexFunc(b.prepared, func(o onDigests) bool { return o.question == q }); i >= 0 {
		b.prepared[i].do = do
		return
	}
	b.prepared = append(b.prepared, onDigests{q, b.core.now.Steady, do})
}

// AwaitsDigests reports whether somebody waits for digests.
func (b *Background) AwaitsDigests() bool { return len(b.prepared) > 0 }

// PrepareSome lets the store make some of the digests that somebody waits for. What waits for all
// of a share is done in the same input, before others change it. Where more is written meanwhile
// than is made, it is done after half of the time that a question has: the store then makes all
// that are left while everybody waits.
func (b *Background) PrepareSome(t Time) {
	b.core.now = t
	if len(b.prepared) == 0 {
		return
	}
	share, late := b.prepared[0].Share, t.Steady >= b.prepared[0].since+b.core.config.Timeout/2
	if !b.core.store.Prepare(share) && !late {
		return
	}
	var done []onDigests
	b.prepared = slices.DeleteFunc(b.prepared, func(o onDigests) bool {
		if o.Share == share {
			done = append(done, o)
		}
		return o.Share == share
	})
	for _, o := range done {
		o.do()
	}
}
