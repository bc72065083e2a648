package tagline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// line is a change as JSON. What is left out is empty.
type line struct {
	bucket        string
	metric        []string
	collection    string
	hasCollection bool
	name          []string
	tags          []textTag
	remove        []string
	replace       bool
}

type textTag struct{ name, value string }

var fieldNames = []string{"bucket", "metric", "collection", "name", "tags", "remove", "replace"}

// parser reads a line. It knows its fields and nothing else, in a tenth of the time of a decoder
// for any type; for a string with an escape it asks package json.
type parser struct {
	src string
	at  int
}

func (p *parser) wrong(want string) error {
	if p.at >= len(p.src) {
		return fmt.Errorf("malformed line: it ends where %s is wanted", want)
	}
	return fmt.Errorf("malformed line: %.20q at byte %d where %s is wanted", p.src[p.at:], p.at+1,
		want)
}

func (p *parser) space() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

// next skips white space and reports whether a byte follows, which it then skips.
func (p *parser) next(c byte) bool {
	p.space()
	if p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

// word reports whether a word follows, which it then skips.
func (p *parser) word(text string) bool {
	p.space()
	if !strings.HasPrefix(p.src[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

// line reads a line into l, whose lists are used again.
func (p *parser) line(l *line) error {
	*l = line{metric: l.metric[:0], name: l.name[:0], tags: l.tags[:0], remove: l.remove[:0]}
	seen := make([]string, 0, 8)
	err := p.object(func(field string) error {
		if slices.Contains(seen, field) {
			return fmt.Errorf("malformed line: field %q is there twice", field)
		}
		seen = append(seen, field)
		return p.field(l, field)
	})
	if err != nil {
		return err
	}
	if p.space(); p.at < len(p.src) {
		return fmt.Errorf("malformed line: there is more behind the object")
	}
	return nil
}

func (p *parser) field(l *line, field string) (err error) {
	switch {
	case !slices.Contains(fieldNames, field):
		return fmt.Errorf("malformed line: unknown field %q", field)
	case p.word("null"): // as if it were left out
		return nil
	}
	switch field {
	case "bucket":
		l.bucket, err = p.text("the name of a bucket")
	case "metric":
		l.metric, err = p.list(l.metric)
	case "collection":
		l.hasCollection = true
		l.collection, err = p.text("the name of a collection")
	case "name":
		l.name, err = p.list(l.name)
	case "tags":
		err = p.object(func(name string) error {
			value, err := p.text("the value of a tag")
			l.tags = append(l.tags, textTag{name, value})
			return err
		})
	case "remove":
		l.remove, err = p.list(l.remove)
	case "replace":
		if l.replace = p.word("true"); !l.replace && !p.word("false") {
			err = p.wrong("true or false")
		}
	}
	return err
}

// object calls fn for every field, which reads its value.
func (p *parser) object(fn func(field string) error) error {
	if !p.next('{') {
		return p.wrong("an object")
	}
	if p.next('}') {
		return nil
	}
	for {
		field, err := p.text("the name of a field")
		if err != nil {
			return err
		}
		if !p.next(':') {
			return p.wrong("a colon")
		}
		if err := fn(field); err != nil {
			return err
		}
		if p.next('}') {
			return nil
		}
		if !p.next(',') {
			return p.wrong("a comma or the end of the object")
		}
	}
}

// list appends the texts of a list to dst.
func (p *parser) list(dst []string) ([]string, error) {
	if !p.next('[') {
		return dst, p.wrong("a list of texts")
	}
	if p.next(']') {
		return dst, nil
	}
	for {
		text, err := p.text("a text")
		if err != nil {
			return dst, err
		}
		dst = append(dst, text)
		if p.next(']') {
			return dst, nil
		}
		if !p.next(',') {
			return dst, p.wrong("a comma or the end of the list")
		}
	}
}

// text reads a string. It shares the memory of the line unless it has an escape.
func (p *parser) text(what string) (string, error) {
	if !p.next('"') {
		return "", p.wrong(what)
	}
	begin, escaped := p.at, false
	for ; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; {
		case c == '\\':
			escaped = true
			p.at++
		case c < ' ':
			return "", p.wrong("an escape of a control character")
		case c == '"':
			text := p.src[begin:p.at]
			p.at++
			if !utf8.ValidString(text) {
				return "", fmt.Errorf(`malformed line: %.200q is not UTF-8: write other bytes as \\xHH`, text)
			}
			if !escaped {
				return text, nil
			}
			var out string
			if err := json.Unmarshal([]byte(p.src[begin-1:p.at]), &out); err != nil {
				return "", fmt.Errorf("malformed line: %w", err)
			}
			return out, nil
		}
	}
	p.at = len(p.src)
	return "", p.wrong("the end of a text")
}
