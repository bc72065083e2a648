package taglist

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"dalmatiner/internal/model/metric"
)

// Filter is what a list of metrics is cut down to.
type Filter struct {
	text  string // that names contain, in lower case
	Limit int    // names; 0: all
	Depth int    // parts behind the prefix; 0: whole metrics
}

// FilterOf reads contains=, limit= and depth=.
func FilterOf(params url.Values) (f Filter, err error) {
	f.text = strings.ToLower(params.Get("contains"))
	if limit := params.Get("limit"); limit != "" {
		if f.Limit, err = strconv.Atoi(limit); err != nil || f.Limit < 1 {
			return f, fmt.Errorf("limit=%s: it is the most names to list, from 1 up", limit)
		}
	}
	f.Depth, err = Depth(params)
	return f, err
}

// Takes reports whether a name, as it is printed, contains the text in whatever case.
func (f Filter) Takes(name string) bool {
	return f.text == "" || strings.Contains(strings.ToLower(name), f.text)
}

// Depth reads depth=, a number of parts; 0 where it is not given.
func Depth(params url.Values) (int, error) {
	text := params.Get("depth")
	if text == "" {
		return 0, nil
	}
	depth, err := strconv.Atoi(text)
	if err != nil || depth < 1 || depth > metric.MaxKey {
		return 0, fmt.Errorf("depth=%s: it is a number of parts, from 1 to %d", text, metric.MaxKey)
	}
	return depth, nil
}
