package graphite

import (
	"bytes"

	"dalmatiner/internal/tags"
)

// tag notes the tags of a series, unless it has them. Its key begins with the name, of so many
// bytes.
func (a *appender) tag(key []byte, name int) error {
	bucket := a.bucket.Info()
	if !a.tags.Wants(&bucket, key) {
		return nil
	}
	key = bytes.Clone(key)
	c := tags.Change{Bucket: bucket.ID, Key: key, Collection: []byte(bucket.Name), Name: key[:name]}
	for rest := key[name:]; len(rest) > 0; {
		end := 1 + int(rest[0])
		tag, value, _ := bytes.Cut(rest[1:end], []byte("="))
		c.Set = append(c.Set, tags.Tag{TagName: tags.TagName{Name: tag}, Value: value})
		rest = rest[end:]
	}
	return a.tags.Add(a.s.ctx, c)
}
