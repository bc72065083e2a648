package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/identity"

	"github.com/cockroachdb/pebble/v2"
)

// Change removes an identity, adds one, or does both in this order. An identity is found by
// its bucket, group, column and hash: one that is added replaces that with the same four.
type Change struct {
	// to be added; without a Key it says that the series was deleted and had this column
	Series  segment.Series
	Nothing bool            // nothing is to be added: Series has no meaning
	Left    *segment.Series // to be removed: where the series was before; nil for none
}

// Put adds identities, or replaces those with the same bucket, group, column and hash. It
// is Change for changes that only add.
func (c *Catalogue) Put(series []segment.Series) error {
	changes := make([]Change, len(series))
	for i := range series {
		changes[i].Series = series[i]
	}
	return c.Change(changes)
}

// Change makes changes in their order. It keeps nothing of them. They are durable after the
// next Flush, and may become so before. After an error some of them may have been made; to
// make all of them again is safe.
//
// It reads what is next to the changed identities. What is damaged there cannot be changed:
// then Failure says so.
func (c *Catalogue) Change(changes []Change) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.catchUp(); err != nil {
		return err
	}
	err := c.change(changes)
	if errors.Is(err, ErrDamaged) {
		c.fail(err)
		return c.Failure()
	}
	return err
}

// half is one half of a change, the number of which it is twice: what is removed, or, with
// 1 added to it, what is added.
type half int

func (h half) adds() bool { return h&1 != 0 }

func (h half) seriesOf(changes []Change) *segment.Series {
	if c := &changes[h>>1]; !h.adds() {
		return c.Left
	} else {
		return &c.Series
	}
}

// halves returns the halves of changes, block by block, and those of a block in their order:
// changes in different blocks do not touch each other.
func halves(changes []Change) []half {
	list := make([]half, 0, len(changes))
	for i := range changes {
		if changes[i].Left != nil {
			list = append(list, half(2*i))
		}
		if !changes[i].Nothing {
			list = append(list, half(2*i+1))
		}
	}
	slices.SortFunc(list, func(a, b half) int {
		return cmp.Or(compareBlocks(a.seriesOf(changes), b.seriesOf(changes)), cmp.Compare(a, b))
	})
	return list
}

// change is Change. c.mu is held.
func (c *Catalogue) change(changes []Change) (err error) {
	w := changer{c: c, batch: c.db.NewBatchWithSize(batchSize)}
	defer w.batch.Close()
	if w.blocks, err = c.iterator(kindBlock); err != nil {
		return c.readError("read", err)
	}
	defer closeAfter(w.blocks, &err)
	if w.others, err = c.iterator(kindSeries); err != nil {
		return c.readError("read", err)
	}
	defer closeAfter(w.others, &err)
	list := halves(changes)
	for i := 0; i < len(list); {
		s := list[i].seriesOf(changes)
		if err := w.begin(s); err != nil {
			return err
		}
		for ; i < len(list) && compareBlocks(s, list[i].seriesOf(changes)) == 0; i++ {
			do := w.remove
			if list[i].adds() {
				do = w.add
			}
			if err := do(list[i].seriesOf(changes)); err != nil {
				return fmt.Errorf("catalogue: change series %s: %w", s.Hash, err)
			}
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	return c.commit(w.batch)
}

// changer changes one block after the other, in their order.
type changer struct {
	c              *Catalogue
	batch          *pebble.Batch
	blocks, others *pebble.Iterator // what is stored
	packer         identity.Packer
	key, value     []byte

	block   // under way
	stored  bool
	changed bool
	beside  bool // there may be identities of the block's columns beside it
}

// begin reads the block in which s is or would be.
func (w *changer) begin(s *segment.Series) error {
	list, text := w.list[:0], w.text[:0]
	w.block = blockOf(s)
	w.list, w.text = list, text
	w.changed, w.stored, w.beside = false, false, false
	w.key = w.appendKey(w.key[:0])
	if w.blocks.SeekGE(w.key) && string(w.blocks.Key()) == string(w.key) {
		w.stored = true
		value, err := w.blocks.ValueAndErr()
		if err == nil {
			err = w.read(w.key, value)
		}
		if err != nil {
			return w.c.readError("read", err)
		}
	}
	w.key[0] = kindSeries
	if w.others.SeekGE(w.key) {
		at := parsePlace(w.others.Key())
		w.beside = compareBlocks(&at, s) == 0
	}
	if err := errors.Join(w.blocks.Error(), w.others.Error()); err != nil {
		return w.c.readError("read", err)
	}
	return nil
}

// remove removes an identity, from the block or beside it.
func (w *changer) remove(s *segment.Series) error {
	if i, found := w.find(s.Column); found && w.list[i].Hash == s.Hash {
		w.list, w.changed = slices.Delete(w.list, i, i+1), true
		return nil
	}
	return w.removeBeside(s)
}

func (w *changer) removeBeside(s *segment.Series) error {
	if !w.beside {
		return nil
	}
	w.key = appendKey(w.key[:0], s)
	return w.batch.Delete(w.key, nil)
}

// add puts an identity into the block, and that which has its column there beside it. One
// with a long name comes beside the block.
func (w *changer) add(s *segment.Series) error {
	if len(s.Key) > longKey {
		if err := w.remove(s); err != nil {
			return err
		}
		return w.put(s)
	}
	if err := w.removeBeside(s); err != nil {
		return err
	}
	w.changed = true
	i, found := w.find(s.Column)
	if !found {
		w.list = slices.Insert(w.list, i, *s)
		return nil
	}
	if former := &w.list[i]; former.Hash != s.Hash {
		if err := w.put(former); err != nil {
			return err
		}
	}
	w.list[i] = *s
	return nil
}

// put stores an identity beside the block.
func (w *changer) put(s *segment.Series) error {
	w.beside = true
	w.key, w.value = appendKey(w.key[:0], s), appendValue(w.value[:0], s)
	return w.batch.Set(w.key, w.value, nil)
}

// end stores the block.
func (w *changer) end() (err error) {
	w.key = w.appendKey(w.key[:0])
	switch {
	case !w.changed:
	case len(w.list) > 0:
		w.value = w.appendValue(w.value[:0], &w.packer)
		err = w.batch.Set(w.key, w.value, nil)
	case w.stored:
		err = w.batch.Delete(w.key, nil)
	}
	if err != nil {
		return fmt.Errorf("catalogue: write to %s: %w", w.c.dir, err)
	}
	if w.batch.Len() < batchSize {
		return nil
	}
	if err := w.c.commit(w.batch); err != nil {
		return err
	}
	w.batch.Reset()
	return nil
}

// DeleteBucket removes all identities of a bucket. That is durable after the next Flush, and
// may become so before.
func (c *Catalogue) DeleteBucket(id uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.catchUp(); err != nil {
		return err
	}
	b := c.db.NewBatch()
	defer b.Close()
	for _, kind := range []byte{kindBlock, kindSeries} {
		from, to := bucketRange(kind, id)
		if err := b.DeleteRange(from, to, nil); err != nil {
			return fmt.Errorf("catalogue: delete bucket %d: %w", id, err)
		}
	}
	return c.commit(b)
}

// commit applies b if there is anything in it. c.mu is held.
func (c *Catalogue) commit(b *pebble.Batch) error {
	if b.Empty() {
		return nil
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("catalogue: write to %s: %w", c.dir, err)
	}
	c.dirty = true
	return nil
}
