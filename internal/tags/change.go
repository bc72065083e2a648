package tags

import (
	"errors"
	"fmt"

	"dalmatiner/internal/model/metric"
)

// Limits of a change.
const (
	MaxCollection = 255 // bytes of a collection's name
	MaxNamespace  = 255 // bytes of a tag's namespace
	MaxTagName    = 1024
	MaxValue      = 4096
	// tags of a series in a collection, and those that a change sets or removes together
	MaxTags = 1024
)

// Change is what one sender said at one moment of one series in one collection.
//
// A series belongs to every collection of which a change was applied, until one with Leave has a
// higher timestamp. The timestamp of all that a change says is (Clock, Node), compared in this
// order.
type Change struct {
	Bucket     uint64 // id of the bucket, of package buckets
	Key        []byte // of the series, as it is stored
	Collection []byte

	// Name is the key of the metric that the collection knows the series as. Empty says
	// nothing; a series of which no change says a name has its own key.
	Name []byte

	Set     []Tag     // a tag that is named several times has the highest value
	Removed []TagName // a tag that is also in Set stays

	Replace bool // whatever tags have a lower timestamp are removed
	Leave   bool // the series leaves the collection and loses all tags there; says nothing else

	Clock uint64 // hybrid clock, of package incarnation: nanoseconds since 1970 or a little more
	Node  uint64 // id of the node that first took the change
}

// Tag is a tag of a series. All three may hold any bytes.
type Tag struct {
	TagName
	Value []byte
}

// TagName is what tells the tags of a series apart. The namespace may be empty.
type TagName struct {
	Namespace, Name []byte
}

// ErrLimit is wrapped by what Check returns.
var ErrLimit = errors.New("not a valid change of tags")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}

// Check returns an error that wraps ErrLimit and names what is missing or too long.
func (c *Change) Check() error {
	switch {
	case len(c.Key) == 0:
		return invalid("it names no metric")
	case len(c.Key) > metric.MaxKey:
		return invalid("the metric has %d bytes, the limit is %d", len(c.Key), metric.MaxKey)
	case len(c.Collection) == 0:
		return invalid("it names no collection")
	case len(c.Collection) > MaxCollection:
		return invalid("the collection has %d bytes, the limit is %d", len(c.Collection), MaxCollection)
	case len(c.Name) > metric.MaxKey:
		return invalid("the name has %d bytes, the limit is %d", len(c.Name), metric.MaxKey)
	case len(c.Set)+len(c.Removed) > MaxTags:
		return invalid("it has %d tags, the limit is %d", len(c.Set)+len(c.Removed), MaxTags)
	case c.Leave && (len(c.Name) > 0 || len(c.Set) > 0 || len(c.Removed) > 0 || c.Replace):
		return invalid("a series that leaves a collection has neither name nor tags there")
	}
	for i := range c.Set {
		if err := c.Set[i].check(); err != nil {
			return err
		}
		if n := len(c.Set[i].Value); n > MaxValue {
			return invalid("the value of tag %s has %d bytes, the limit is %d", c.Set[i].TagName, n,
				MaxValue)
		}
	}
	for i := range c.Removed {
		if err := c.Removed[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (n TagName) check() error {
	switch {
	case len(n.Name) == 0:
		return invalid("a tag has no name")
	case len(n.Name) > MaxTagName:
		return invalid("the name of a tag has %d bytes, the limit is %d", len(n.Name), MaxTagName)
	case len(n.Namespace) > MaxNamespace:
		return invalid("the namespace of tag %s has %d bytes, the limit is %d",
			metric.Quote(string(n.Name)), len(n.Namespace), MaxNamespace)
	}
	return nil
}

// String returns the tag's name as the query language writes it.
func (n TagName) String() string {
	if len(n.Namespace) == 0 {
		return metric.Quote(string(n.Name))
	}
	return metric.Quote(string(n.Namespace)) + ":" + metric.Quote(string(n.Name))
}
