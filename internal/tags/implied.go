package tags

import (
	"bytes"
	"strconv"
)

// ImpliedNamespace is the namespace of the tags that every series has by its key: key_length is
// how many parts the key has, part_1, part_2 … are the parts. A key that is no list of parts has
// none of them. They are answered, not stored; other tags of the namespace are.
const ImpliedNamespace = "ddb"

// keyTag is a tag that a key has: part is 0 for the length.
type keyTag struct{ part int }

func impliedTag(n TagName) (keyTag, bool) {
	if string(n.Namespace) != ImpliedNamespace {
		return keyTag{}, false
	}
	if string(n.Name) == "key_length" {
		return keyTag{}, true
	}
	digits, ok := bytes.CutPrefix(n.Name, []byte("part_"))
	if !ok || len(digits) == 0 || len(digits) > 5 || digits[0] == '0' {
		return keyTag{}, false
	}
	part, err := strconv.ParseUint(string(digits), 10, 16)
	return keyTag{int(part)}, err == nil
}

// IsImplied reports whether a tag is one that a series has by its key.
func IsImplied(namespace, name []byte) bool {
	_, ok := impliedTag(TagName{namespace, name})
	return ok
}

// valueOf returns the value that a key has. It shares the key's memory or that of buf.
func (i keyTag) valueOf(buf, key []byte) (value []byte, ok bool) {
	n := 0
	for len(key) > 0 {
		size := 1 + int(key[0])
		if len(key) < size {
			return nil, false
		}
		if n++; n == i.part {
			value, ok = key[1:size:size], true
		}
		key = key[size:]
	}
	if i.part == 0 {
		return strconv.AppendInt(buf[:0], int64(n), 10), true
	}
	return value, ok
}

// ImpliedValue returns the value of a tag that a series has by its key, or nil.
func ImpliedValue(n TagName, key []byte) []byte {
	tag, ok := impliedTag(n)
	if !ok {
		return nil
	}
	value, ok := tag.valueOf(nil, key)
	if ok && value == nil {
		value = []byte{}
	}
	return value
}
