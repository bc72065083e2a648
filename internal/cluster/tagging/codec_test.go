package tagging

import (
	"bytes"
	"context"
	"testing"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// somePush is a push with everything in it.
func somePush() push {
	c := tags.Change{Bucket: bucket, Key: []byte("\x01a"), Collection: []byte("c"), Clock: 5,
		Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("n")}, Value: []byte("v")}}}
	return push{[]byte("bucket"), []deletedSeries{{bucket, 4, metric.Series(bucket, []byte("\x01b"))}},
		tags.AppendChange(nil, &c)}
}

// FuzzRequest: no bytes make a node fail, and what it takes has one form.
func FuzzRequest(f *testing.F) {
	p := somePush()
	f.Add(p.append(nil))
	f.Add((&fetch{1 << 20, 1 << 30, []tags.Digest{{ID: 1 << 60, Sum: 7}}}).append(nil))
	f.Add([]byte{kindCompare, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		node := newFake(1, 1e18)
		node.x.o = node.options(nil)
		_ = node.x.serve(context.Background(), b, func([]byte) error { return nil }) // it may refuse
		if len(b) == 0 {
			return
		}
		var q fetch
		if b[0] == kindFetch && q.parse(b[1:]) == nil && !bytes.Equal(q.append(nil), b) {
			t.Fatalf("%x is read as %x", b, q.append(nil))
		}
		var p, again push
		if b[0] == kindPush && p.parse(b[1:]) == nil && again.parse(p.append(nil)[1:]) != nil {
			t.Fatalf("%x is read, and not what is made of it", b)
		}
	})
}

// FuzzReply: replies of peers may be anything, cut anywhere.
func FuzzReply(f *testing.F) {
	p := pushReply{3, []deletedSeries{{bucket, 4, metric.Series(bucket, []byte("\x01b"))}}}
	f.Add(p.append(nil), 3)
	f.Add(appendItem(appendItem(nil, itemChange, []byte("x")), itemEnd, []byte("1234")), 2)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var got, again pushReply
		if got.parse(b) == nil && again.parse(got.append(nil)) != nil {
			t.Fatalf("%x is read, and not what is made of it", b)
		}
		list := func(parts ...[]byte) (out []byte, err error) {
			var s items
			for _, part := range parts {
				err = s.add(part, func(kind byte, body []byte) error {
					out = appendItem(out, kind, body)
					return nil
				})
				if err != nil {
					return nil, err
				}
			}
			return append(out, s.rest...), nil
		}
		cut = max(0, min(cut, len(b)))
		whole, err := list(b)
		parts, errOfParts := list(b[:cut], b[cut:])
		if (err == nil) != (errOfParts == nil) || !bytes.Equal(whole, parts) {
			t.Fatalf("%x is %x, %v whole and %x, %v cut at %d", b, whole, err, parts, errOfParts, cut)
		}
		if _, err := parseDigests(b); err == nil && len(b) != 8*tags.Ranges {
			t.Fatal("digests of another length")
		}
	})
}
