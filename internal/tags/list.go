package tags

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags/postings"
)

// Listing says of which series something is listed, and which part of the list is wanted.
type Listing struct {
	Collection []byte  // nil for all: a series that is in two collections counts twice
	Metric     []byte  // key of the metric's name in that collection; nil for all
	Where      *Cond   // of the series of that collection; nil for all
	Namespace  []byte  // of Names: nil for all
	Prefix     string  // of the texts
	After      *string // only texts behind it are listed; nil for all
	Limit      int     // of the texts, from 1 up
	Now        uint64  // hybrid clock; see ListItem.New

	Memory Memory // lends what the list takes; nil lends everything
}

// Memory lends memory before it is used. It is given back by who lent it.
type Memory interface{ Grow(bytes int64) error }

// ListItem is an element of a list.
type ListItem struct {
	Text   string
	Series int // that have it
	New    int // of them, those that came in the hour of Now or in the one before
}

// List is the first elements by the bytes of their texts, at most Limit of them and at most
// MaxListBytes of text. More says that there are others.
type List struct {
	Elements []ListItem
	More     bool
	Series   int // that were listed, whether they have an element or not
}

// MaxListBytes bounds the texts of a list.
const MaxListBytes = 4 << 20

const (
	// listedSize is what an element takes beside its text, while a list is made and in its answer.
	listedSize = 256

	// answerCopies is how often an answer has a text: as it is, escaped, and encoded.
	answerCopies = 3

	// listStep is how much is borrowed for a list at a time.
	listStep = 64 << 10
)

// Text returns a tag's name in the escape of the query language, behind the namespace and a
// colon: its first colon that is not escaped ends the namespace. An empty one is left out unless
// the name has a colon.
func (n TagName) Text() string {
	name := metric.Escape(string(n.Name))
	if len(n.Namespace) == 0 && !strings.Contains(name, ":") {
		return name
	}
	return strings.ReplaceAll(metric.Escape(string(n.Namespace)), ":", `\:`) + ":" + name
}

// Collections lists the collections that have a series, whatever Collection and Metric say.
func (x *Index) Collections(ctx context.Context, q Listing) (List, error) {
	q.Collection, q.Metric = nil, nil
	return x.list(ctx, &q, func(l *lister) error {
		for number := range l.x.collections.all() {
			l.count(l.x.collections.text(number), &l.x.inCollection, number)
		}
		return nil
	})
}

// Namespaces lists the namespaces of tags, ImpliedNamespace too.
func (x *Index) Namespaces(ctx context.Context, q *Listing) (List, error) {
	return x.list(ctx, q, (*lister).namespaces)
}

// Names lists the names of tags of a namespace, implied ones too. Without a namespace it lists
// those of all, in the form of TagName.Text.
func (x *Index) Names(ctx context.Context, q *Listing) (List, error) {
	return x.list(ctx, q, (*lister).names)
}

// Values lists the values of a tag, which may be an implied one.
func (x *Index) Values(ctx context.Context, q *Listing, name TagName) (List, error) {
	return x.list(ctx, q, func(l *lister) error { return l.values(name) })
}

// Metrics lists the metrics of a collection, as keys of the names that it knows its series by.
// With parts above 0 it lists their first parts, each once, of those with more than Prefix.
func (x *Index) Metrics(ctx context.Context, q *Listing, parts int) (List, error) {
	return x.list(ctx, q, func(l *lister) error { return l.metrics(parts) })
}

// TagNames returns the names of all stored tags that a series has, in the order of their texts.
func (x *Index) TagNames() (names []TagName) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for number := range x.names.all() {
		if x.withName.Len(number) == 0 {
			continue
		}
		n := parseName(x.names.text(number))
		names = append(names, TagName{bytes.Clone(n.Namespace), bytes.Clone(n.Name)})
	}
	slices.SortFunc(names, TagName.compare)
	return names
}

// lister is a list that is being made.
type lister struct {
	lookup
	*Listing
	within, recent postings.Set // rows that are counted, and those of them that are new

	of    map[string]ListItem
	bytes int
	lent  int64  // by Memory
	bound string // with cut: it and what is behind it is left out
	cut   bool
}

// list makes a list.
func (x *Index) list(ctx context.Context, q *Listing,
	fill func(*lister) error) (out List, err error) {
	err = scan(ctx, x, q, func(l *lister) error {
		l.of = make(map[string]ListItem)
		if err := fill(l); err != nil {
			return err
		}
		l.keep(q.Limit)
		if !l.borrow(len(l.of), answerCopies*l.bytes) {
			return l.err
		}
		out.More, out.Series = l.cut, l.within.Len()
		for _, text := range slices.Sorted(maps.Keys(l.of)) {
			out.Elements = append(out.Elements, l.of[text])
		}
		return nil
	})
	return out, err
}

// scan calls fn with the rows that a listing is about, under the lock. No id that is found means
// another series until the end.
func scan(ctx context.Context, x *Index, q *Listing, fn func(*lister) error) error {
	l := &lister{lookup: lookup{x: x, ctx: ctx}, Listing: q, within: postings.Of()}
	x.lookups.Add(1)
	defer x.lookups.Add(-1)
	if q.Collection != nil {
		var err error
		if l.within, err = l.find(&Query{
			Collection: q.Collection,
			Metric:     q.Metric,
			Where:      q.Where,
		}); err != nil {
			return err
		}
	}
	return l.read(fn)
}

func (l *lister) read(fill func(*lister) error) error {
	x := l.x
	x.mu.RLock()
	defer x.mu.RUnlock()
	if l.Collection == nil {
		for bucket := range x.buckets.ids {
			l.within = l.within.Or(x.inBucket.Set(uint32(bucket)))
		}
	}
	l.recent = l.within.And(x.recent.rowsSince(l.Now))
	return fill(l)
}

// wants reports whether a text may be among the first.
func (l *lister) wants(text []byte) bool {
	return bytes.HasPrefix(text, []byte(l.Prefix)) && (l.After == nil || string(text) > *l.After) &&
		(!l.cut || string(text) < l.bound)
}

// add counts series that have a text. Texts may come again.
func (l *lister) add(text []byte, series, recent int) {
	if series == 0 || !l.wants(text) {
		return
	}
	e, known := l.of[string(text)]
	if !known {
		if !l.borrow(len(l.of)+1, l.bytes+len(text)) {
			return
		}
		e.Text = string(text)
		l.bytes += len(text)
	}
	e.Series += series
	e.New += recent
	l.of[e.Text] = e
	if len(l.of) > 2*l.Limit || l.bytes > MaxListBytes {
		l.keep(l.Limit)
	}
}

// borrow takes the memory of so many elements with so many bytes of text. Where there is none, the
// list ends.
func (l *lister) borrow(elements, text int) bool {
	need := int64(elements*listedSize + text)
	if l.err == nil && l.Memory != nil && need > l.lent {
		ahead := max(need-l.lent, listStep)
		l.err = l.Memory.Grow(ahead)
		l.lent += ahead
	}
	return l.err == nil
}

// count adds a text that the rows of a list have.
func (l *lister) count(text []byte, of *postings.Lists, list uint32) {
	if l.wants(text) {
		l.add(text, of.CommonLen(list, l.within), of.CommonLen(list, l.recent))
	}
}

// keep drops all but the first texts: what is dropped once is never counted again.
func (l *lister) keep(limit int) {
	if len(l.of) <= limit && l.bytes <= MaxListBytes {
		return
	}
	kept := 0
	l.bytes = 0
	for i, text := range slices.Sorted(maps.Keys(l.of)) {
		if kept < i || i >= limit || l.bytes+len(text) > MaxListBytes/2 {
			if kept == i {
				l.bound, l.cut = text, true
			}
			delete(l.of, text)
			continue
		}
		kept++
		l.bytes += len(text)
	}
}

func (l *lister) namespaces() error {
	x := l.x
	numbers := slices.Collect(x.names.all())
	slices.SortFunc(numbers, func(a, b uint32) int {
		return bytes.Compare(x.names.text(a), x.names.text(b))
	})
	implied := postings.Of() // the stored ones of that namespace
	for from := 0; from < len(numbers); {
		namespace, set := parseName(x.names.text(numbers[from])).Namespace, postings.Of()
		for ; from < len(numbers) && bytes.Equal(parseName(x.names.text(numbers[from])).Namespace,
			namespace); from++ {
			set = set.Or(x.withName.Set(numbers[from]))
			if err := l.cancelError(); err != nil {
				return err
			}
		}
		if string(namespace) == ImpliedNamespace {
			implied = set
			continue
		}
		l.add(namespace, l.within.CommonLen(set), l.recent.CommonLen(set))
	}
	if !l.wants([]byte(ImpliedNamespace)) {
		return nil
	}
	return l.rows(func(id uint32, key []byte, recent int) {
		if keyParts(key) > 0 || implied.Contains(id) {
			l.add([]byte(ImpliedNamespace), 1, recent)
		}
	})
}

// rows calls fn for the rows that are counted; recent is 1 for new ones, else 0.
func (l *lister) rows(fn func(id uint32, key []byte, recent int)) error {
	for id := range l.within.All() {
		if err := l.cancelError(); err != nil {
			return err
		}
		if l.x.at[id] == 0 {
			continue // dropped
		}
		recent := 0
		if l.recent.Contains(id) {
			recent = 1
		}
		_, _, key, _ := keyOf(l.x.rows.Get(l.x.at[id]))
		fn(id, key, recent)
	}
	return nil
}

// keyParts returns how many parts a key has, 0 for one that is no list of parts.
func keyParts(key []byte) (n int) {
	for ; len(key) > 0; n++ {
		size := 1 + int(key[0])
		if len(key) < size {
			return 0
		}
		key = key[size:]
	}
	return n
}

// nameText returns the text of a tag's name in this list.
func (l *lister) nameText(n TagName) []byte {
	if l.Namespace != nil {
		return n.Name
	}
	return []byte(n.Text())
}

func (l *lister) names() error {
	for number := range l.x.names.all() {
		if err := l.cancelError(); err != nil {
			return err
		}
		if n := parseName(l.x.names.text(number)); l.Namespace == nil ||
			bytes.Equal(l.Namespace, n.Namespace) {
			l.count(l.nameText(n), &l.x.withName, number)
		}
	}
	if l.Namespace != nil && string(l.Namespace) != ImpliedNamespace {
		return nil
	}
	var ofLength [][2]int // how many series, and new ones, have so many parts
	err := l.rows(func(_ uint32, key []byte, recent int) {
		n := keyParts(key)
		for len(ofLength) <= n {
			ofLength = append(ofLength, [2]int{})
		}
		ofLength[n][0]++
		ofLength[n][1] += recent
	})
	series, recent := 0, 0
	implied := func(name string) {
		l.add(l.nameText(TagName{[]byte(ImpliedNamespace), []byte(name)}), series, recent)
	}
	for n := len(ofLength) - 1; n > 0; n-- {
		series, recent = series+ofLength[n][0], recent+ofLength[n][1]
		implied("part_" + strconv.Itoa(n))
	}
	implied("key_length")
	return err
}

func (l *lister) values(name TagName) error {
	if tag, ok := impliedTag(name); ok {
		var buf [8]byte
		return l.rows(func(_ uint32, key []byte, recent int) {
			if value, ok := tag.valueOf(buf[:], key); ok {
				l.add(value, 1, recent)
			}
		})
	}
	number, ok := l.name(name)
	if !ok {
		return nil
	}
	for pair := range l.x.ofName.Set(number).All() {
		if err := l.cancelError(); err != nil {
			return err
		}
		l.count(l.x.value(pair), &l.x.withPair, pair)
	}
	return nil
}

func (l *lister) metrics(parts int) error {
	beginning := func(key []byte, series, recent int) {
		if parts > 0 && len(key) <= len(l.Prefix) {
			return
		}
		if parts > 0 {
			key = metric.Prefix(key, parts)
		}
		l.add(key, series, recent)
	}
	var named postings.Union
	for number := range l.x.metrics.all() {
		if err := l.cancelError(); err != nil {
			return err
		}
		beginning(l.x.metrics.text(number), l.x.ofMetric.CommonLen(number, l.within),
			l.x.ofMetric.CommonLen(number, l.recent))
		l.x.ofMetric.Collect(&named, number)
	}
	l.within = l.within.AndNot(named.Set())
	return l.rows(func(_ uint32, key []byte, recent int) { beginning(key, 1, recent) })
}
