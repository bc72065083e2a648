package metric

import (
	"errors"
	"strings"
)

// errText says that a text is not one of a metric.
var errText = errors.New("not the text of a metric: want parts such as 'web'.'requests', or " +
	"web.requests where no part has a dot or a quote")

// ParseText undoes Text: it returns the key of a metric written as parts
// between dots, in quotes or, where they hold neither dot nor quote, without.
func ParseText(text string) (key []byte, err error) {
	var elems []string
	for rest := text; ; {
		var elem string
		if quoted, ok := strings.CutPrefix(rest, "'"); ok {
			end := 0
			for end < len(quoted) && quoted[end] != '\'' {
				if quoted[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(quoted) {
				return nil, errText // the quote is open
			}
			elem, rest = quoted[:end], quoted[end+1:]
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			if elem, rest = rest[:end], rest[end:]; elem == "" || strings.ContainsRune(elem, '\'') ||
				strings.HasPrefix(elem, rawMark) {
				return nil, errText
			}
		}
		elems = append(elems, elem)
		if rest == "" {
			return KeyFromQuoted(elems...)
		}
		if rest[0] != '.' {
			return nil, errText
		}
		rest = rest[1:]
	}
}
