package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write"
)

// A chunk of which this node has nothing goes into a file of the store whole, without the log.
// Until it is there it does not show, and whatever writes to its slots waits for that.

const (
	adoptBytes = 4 << 20         // that wait make a file worth while
	adoptAge   = 5 * time.Second // of the oldest chunk that waits
)

// adoptQueue are the chunks on their way into files.
type adoptQueue struct {
	store  Local
	logger *slog.Logger
	clock  func() time.Time
	x      *index

	// Of the caller of the replica:
	under  map[replication.ChunkID]*series // chunks that do not show yet
	order  []hiddenChunk                   // the same, as they came
	behind replication.ChunkID             // the last chunk of the change
	coder  chunk.Encoder
	asked  slots // what a chunk has that is asked for
	given  slots // what the chunk has that is taken

	filing sync.Mutex // held while a file is written

	queue       sync.Mutex // guards what follows
	waiting     []flush.Adopted
	bytes       int64 // that wait, or are being written
	since       time.Time
	taken, done uint64 // numbers of the last chunks that were taken, and that are in a file
}

// hiddenChunk is a chunk that does not show yet.
type hiddenChunk struct {
	number uint64
	id     replication.ChunkID
	s      *series
}

// Chunk returns a chunk: see replication.Store.
func (r *Replica) Chunk(id replication.ChunkID) (c replication.Chunk) {
	s := r.index.series[id.Series]
	if s == nil || s.bucket.gone {
		return c
	}
	v := &r.asked
	if err := r.index.read(v, s, int64(id.Number)*chunk.Slots, chunk.Slots); err != nil {
		r.noteReadFailure(s, err)
		return c
	}
	coder := &r.coder
	c = replication.Chunk{ID: id, Incarnation: r.Incarnation(id.Series)}
	if c.Words = coder.Append(nil, 0, v.words); len(c.Words) == 0 {
		return c
	}
	c.Points = coder.Count()
	if v.times != nil {
		for i, w := range v.words {
			if w == point.Unset {
				v.times[i] = point.Unset
			}
		}
		c.Times = coder.Append(nil, 0, v.times)
	}
	return c
}

// define makes the series of chunks known to the store, which does so with the first point of a
// series: an unset one changes nothing.
func (r *Replica) define(chunks []replication.Chunk) error {
	for i := range chunks {
		id := chunks[i].ID
		if i > 0 && id.Series == chunks[i-1].ID.Series {
			continue
		}
		s, err := r.find(&replication.Row{Series: id.Series})
		if err != nil || s == nil || s.bucket.info.HPTS || r.has(s) {
			continue // chunk says what to do about it
		}
		t, err := r.streamFor(s.bucket)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		t.points[0] = write.Point{Key: s.key, Slot: id.Number * chunk.Slots, Word: point.Unset}
		t.Append(t.points[:])
	}
	return r.commit()
}

// has reports whether the store has a series, with points or not.
func (r *Replica) has(s *series) bool {
	there, err := r.o.Local.Series(s.bucket.info, s.key).Exists()
	return err == nil && there
}

// chunk takes a chunk that came from another node.
func (r *Replica) chunk(c *replication.Chunk, order int) error {
	w, v := &r.writing, &r.given
	if err := v.decode(c); err != nil {
		return err
	}
	row := replication.Row{Series: c.ID.Series, Incarnation: c.Incarnation}
	s, err := r.find(&row)
	switch {
	case errors.Is(err, replication.ErrAbsent):
		w.left.Homeless += int64(c.Points)
		w.absent = err
		return nil
	case err != nil:
		return err
	case s != nil && r.canAdopt(s, c, v):
		r.adopt(s, c, v)
		return nil
	}
	for i := range v.words {
		if row.Value = v.value(i); row.Value.Word == point.Unset {
			continue
		}
		row.Slot = c.ID.Number*chunk.Slots + uint64(i)
		if err := r.row(&row, order+i); err != nil {
			return err
		}
	}
	return nil
}

// decode sets v to what a chunk holds.
func (v *slots) decode(c *replication.Chunk) (err error) {
	v.words, v.times = resizeWords(v.words, chunk.Slots), nil
	clear(v.words)
	if err = chunk.DecodeRange(v.words, c.Words, 0); err == nil && len(c.Times) > 0 {
		v.times = make([]uint64, chunk.Slots)
		err = chunk.DecodeRange(v.times, c.Times, 0)
	}
	if err != nil {
		return fmt.Errorf("chunk %d of series %x came damaged: %w", c.ID.Number, c.ID.Series, err)
	}
	set := 0
	for _, w := range v.words {
		if w != point.Unset {
			set++
		}
	}
	if set != c.Points {
		return fmt.Errorf("chunk %d of series %x came with %d points, said to be %d", c.ID.Number,
			c.ID.Series, set, c.Points)
	}
	return nil
}

// canAdopt reports whether a chunk can go into a file whole: the store has the series, nothing of
// the chunk is here, and all of it is admitted. Chunks of a change come ascending: one that does
// not may be there already, and not show yet.
func (r *Replica) canAdopt(s *series, c *replication.Chunk, v *slots) bool {
	again := r.behind.Compare(c.ID) >= 0
	r.behind = c.ID
	if again || v.times != nil || s.bucket.info.HPTS || r.under[c.ID] == s ||
		c.Incarnation != r.Incarnation(s.id) {
		return false
	}
	first := int64(c.ID.Number) * chunk.Slots
	if first < oldest(&s.bucket.info, r.writing.now) {
		return false
	}
	if _, _, err := r.index.bounds(s); err != nil { // adopt makes them wider
		return false
	}
	for i, w := range v.words {
		if w == point.Unset {
			continue
		}
		if _, ok := normal(&s.bucket.info,
			&replication.Row{Slot: uint64(first) + uint64(i), Value: replication.Value{Word: w}}); !ok {
			return false
		}
	}
	return r.isVacant(s, first) && r.o.Local.Expect(s.id)
}

// isVacant reports whether a chunk is known to hold nothing.
func (r *Replica) isVacant(s *series, first int64) bool {
	if err := r.index.read(&r.writing.slots, s, first, chunk.Slots); err != nil ||
		r.writing.slots.unknown != nil {
		return false
	}
	for _, w := range r.writing.slots.words {
		if w != point.Unset {
			return false
		}
	}
	return true
}

// adopt gives a chunk to the next file, as this node encodes it: what a header says is true then,
// wherever it came from.
func (r *Replica) adopt(s *series, c *replication.Chunk, v *slots) {
	first := int64(c.ID.Number) * chunk.Slots
	r.index.noteWrite(s, first, first+chunk.Slots)
	of, _ := r.placeOf(s, first)
	r.copied.addChunk(of, v.words, r.writing.now)
	r.take(s, c.ID, flush.Adopted{Bucket: s.bucket.info.ID, ID: s.id, Incarnation: c.Incarnation,
		Number: int64(c.ID.Number), Points: c.Points, Data: r.coder.Append(nil, 0, v.words)})
}

// take puts a chunk behind those that wait for a file.
func (a *adoptQueue) take(s *series, id replication.ChunkID, c flush.Adopted) {
	a.queue.Lock()
	defer a.queue.Unlock()
	if len(a.waiting) == 0 {
		a.since = a.clock()
	}
	a.taken++
	a.bytes += int64(len(c.Data))
	a.waiting = append(a.waiting, c)
	if a.under == nil {
		a.under = make(map[replication.ChunkID]*series)
	}
	a.under[id] = s
	a.order = append(a.order, hiddenChunk{a.taken, id, s})
}

// AdoptProgress returns how far chunks are on their way into files: see replication.Store.
func (a *adoptQueue) AdoptProgress() (last uint64, waiting int64) {
	a.queue.Lock()
	defer a.queue.Unlock()
	return a.taken, a.bytes
}

// AdoptDue reports whether the chunks that wait are worth a file, or have waited long.
func (a *adoptQueue) AdoptDue() bool {
	a.queue.Lock()
	defer a.queue.Unlock()
	return len(a.waiting) > 0 && (a.bytes >= adoptBytes || a.clock().Sub(a.since) >= adoptAge)
}

// Adopt puts the chunks that wait into a file of the store, and returns the number of the last one
// that is in any. On an error they wait for the next call. It may be called concurrently with
// everything else.
func (a *adoptQueue) Adopt(ctx context.Context) (upTo uint64, err error) {
	a.filing.Lock()
	defer a.filing.Unlock()
	a.queue.Lock()
	list, upTo := a.waiting, a.taken
	a.waiting = nil
	a.queue.Unlock()
	if len(list) > 0 {
		err = a.store.Adopt(ctx, list)
	}
	a.queue.Lock()
	defer a.queue.Unlock()
	if err != nil {
		a.waiting = append(list, a.waiting...)
		a.logger.Warn("chunks of other nodes cannot be put into a file, and wait", "chunks",
			len(a.waiting), "err", err)
		return a.done, err
	}
	for i := range list {
		a.bytes -= int64(len(list[i].Data))
	}
	a.done = upTo
	return upTo, nil
}

// showAdopted lets chunks show that are in files by now.
func (a *adoptQueue) showAdopted() {
	if len(a.order) == 0 {
		return
	}
	a.queue.Lock()
	done := a.done
	a.queue.Unlock()
	for len(a.order) > 0 && a.order[0].number <= done {
		c := &a.order[0]
		if a.under[c.id] == c.s { // else its series was deleted, and is here again
			delete(a.under, c.id)
		}
		if s := c.s; !s.gone {
			s.share.digests.change(a.x, s, int64(c.id.Number)/chunksPerWindow)
		}
		a.order = a.order[1:]
	}
}

// settle makes a slot show what is on its way to it: a chunk that does not show yet is put into a
// file now.
func (a *adoptQueue) settle(s *series, slot int64) error {
	if len(a.order) == 0 ||
		a.under[replication.ChunkID{Series: s.id, Number: uint64(slot / chunk.Slots)}] != s {
		return nil
	}
	return a.show()
}

// show puts all chunks into a file that do not show yet.
func (a *adoptQueue) show() error {
	if len(a.order) == 0 {
		return nil
	}
	if _, err := a.Adopt(context.Background()); err != nil {
		return wrapDiskFull(err)
	}
	a.showAdopted()
	return nil
}
