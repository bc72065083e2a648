package tags

import "context"

// Scope says of which series something is counted.
type Scope struct {
	Collection []byte // nil for all: a series that is in two collections counts twice
	Now        uint64 // hybrid clock; see Count.New
}

// Count is a number of series.
type Count struct {
	Series int
	New    int // of them, those that came in the hour of Now or in the one before
}

// EachName calls fn with every tag that a series has, in no particular order: how many values it
// has, and which series have it. Implied tags are left out. all is the series of the scope.
//
// fn is called under the lock of the index and must not call it.
func (x *Index) EachName(ctx context.Context, s Scope, fn func(n TagName, values int, of Count)) (
	all Count, err error) {
	return each(ctx, x, s, func(l *lister) error {
		var values []int // by number of the name, in the collection
		if s.Collection != nil {
			values = make([]int, len(x.names.at))
			if err := l.pairs(nil, func(name, _ uint32, _ Count) { values[name]++ }); err != nil {
				return err
			}
		}
		for number := range x.names.all() {
			if err := l.cancelError(); err != nil {
				return err
			}
			of := Count{x.withName.CommonLen(number, l.within), x.withName.CommonLen(number, l.recent)}
			if of.Series == 0 {
				continue
			}
			n := x.ofName.Len(number)
			if values != nil {
				n = values[number]
			}
			fn(parseName(x.names.text(number)), n, of)
		}
		return nil
	})
}

// EachValue is EachName for the values of a tag, or of all tags where only is nil. The value is
// valid during the call.
func (x *Index) EachValue(ctx context.Context, s Scope, only *TagName,
	fn func(n TagName, value []byte, of Count)) (all Count, err error) {
	return each(ctx, x, s, func(l *lister) error {
		return l.pairs(only, func(name, pair uint32, of Count) {
			n := parseName(x.names.text(name))
			fn(n, x.value(pair), of)
		})
	})
}

func each(ctx context.Context, x *Index, s Scope, fill func(*lister) error) (all Count, err error) {
	err = scan(ctx, x, &Listing{Collection: s.Collection, Now: s.Now}, func(l *lister) error {
		all = Count{l.within.Len(), l.recent.Len()}
		return fill(l)
	})
	return all, err
}

// pairs calls fn with the numbers of the tags of a name, or of all, that series of the list have.
func (l *lister) pairs(only *TagName, fn func(name, pair uint32, of Count)) error {
	x, isNew := l.x, l.recent.Len() > 0
	one := func(name, pair uint32) error {
		of := Count{Series: x.withPair.Len(pair)}
		if l.Collection != nil {
			of.Series = x.withPair.CommonLen(pair, l.within)
		}
		if isNew {
			of.New = x.withPair.CommonLen(pair, l.recent)
		}
		if of.Series > 0 {
			fn(name, pair, of)
		}
		return l.cancelError()
	}
	if only == nil {
		for pair := range x.pairs.all() {
			if err := one(pairName(x.pairs.text(pair)), pair); err != nil {
				return err
			}
		}
		return nil
	}
	number, ok := l.name(*only)
	if !ok {
		return nil
	}
	for pair := range x.ofName.Set(number).All() {
		if err := one(number, pair); err != nil {
			return err
		}
	}
	return nil
}
