package logrecord

import (
	"dalmatiner/internal/tags"
)

// MaxTags is the most bytes of the changes in one record: a log takes such a record twice.
const MaxTags = 512 << 10

// AppendTags begins the record of changes of tags in a bucket. The caller adds one or more of
// them with tags.AppendChange, MaxTags bytes at most.
func AppendTags(dst []byte, bucket uint64) []byte { return appendHead(dst, Tags, bucket) }

// tags reads the changes of a record.
func (f *reader) tags(r *Record) {
	r.Changes = f.Rest()
	f.Check(len(r.Changes) > 0 && r.EachChange(func(c *tags.Change) error {
		if c.Bucket != r.Bucket {
			return errRecord
		}
		return nil
	}) == nil)
}

// EachChange calls fn for every change of a Tags record, in order. The change and its texts,
// which are part of the bytes that were parsed, are valid during the call. The error is that of
// fn.
func (r *Record) EachChange(fn func(*tags.Change) error) error {
	var c tags.Change
	for src := r.Changes; len(src) > 0; {
		rest, err := tags.ParseChange(&c, src)
		if err != nil {
			return err
		}
		if err := fn(&c); err != nil {
			return err
		}
		src = rest
	}
	return nil
}
