package catalogue

import (
	"cmp"
	"slices"

	"dalmatiner/internal/disk/segment"

	"github.com/cockroachdb/pebble/v2"
)

// Load calls fn for every identity, in the order of bucket, group, column and hash. The Key
// is valid during the call only. fn must not call methods of c. An error of fn ends the walk
// and is returned as it is. Any other error wraps ErrDamaged if a file is damaged, and fn
// has then seen only a part.
func (c *Catalogue) Load(fn func(segment.Series) error) error {
	if err := c.Failure(); err != nil {
		return err
	}
	c.dbMu.RLock()
	defer c.dbMu.RUnlock()
	var failed error
	err := c.load(func(s *segment.Series) error {
		failed = fn(*s)
		return failed
	})
	if failed != nil || err == nil {
		return failed
	}
	return c.readError("read", err)
}

func (c *Catalogue) iterator(kind byte) (*pebble.Iterator, error) {
	from, to := kindRange(kind)
	return c.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
}

// closeAfter closes an iterator, which then returns once more the error that it has had.
func closeAfter(it *pebble.Iterator, err *error) {
	if closing := it.Close(); *err == nil {
		*err = closing
	}
}

func (c *Catalogue) load(fn func(*segment.Series) error) (err error) {
	blocks, err := c.iterator(kindBlock)
	if err != nil {
		return err
	}
	defer closeAfter(blocks, &err)
	others := identityWalker{fn: fn}
	if others.it, err = c.iterator(kindSeries); err != nil {
		return err
	}
	defer closeAfter(others.it, &err)
	if err := others.next(others.it.First()); err != nil {
		return err
	}
	for ok := blocks.First(); ok; ok = blocks.Next() {
		value, err := blocks.ValueAndErr()
		if err != nil {
			return err
		}
		err = eachOf(blocks.Key(), value, func(s *segment.Series) error {
			if err := others.callBefore(s); err != nil {
				return err
			}
			return fn(s)
		})
		if err != nil {
			return err
		}
	}
	if err := blocks.Error(); err != nil {
		return err
	}
	return others.callBefore(nil)
}

// identityWalker walks the identities beside the blocks.
type identityWalker struct {
	it *pebble.Iterator
	s  segment.Series // the next one
	ok bool           // there is one
	fn func(*segment.Series) error
}

// callBefore calls fn for those in front of s, or for all that are left.
func (o *identityWalker) callBefore(s *segment.Series) error {
	for o.ok && (s == nil || comparePlaces(&o.s, s) < 0) {
		if err := o.fn(&o.s); err != nil {
			return err
		}
		if err := o.next(o.it.Next()); err != nil {
			return err
		}
	}
	return nil
}

// next takes what the iterator is at.
func (o *identityWalker) next(ok bool) (err error) {
	if o.ok = ok; !ok {
		return o.it.Error()
	}
	value, err := o.it.ValueAndErr()
	if err == nil {
		o.s, err = parseKey(o.it.Key())
	}
	if err == nil {
		err = parseValue(value, &o.s)
	}
	return err
}

func comparePlaces(a, b *segment.Series) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Column, b.Column),
		slices.Compare(a.Hash[:], b.Hash[:]))
}
