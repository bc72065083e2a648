package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// The parts of a list, one behind the other, are the whole list.
func TestPartsOfAListAreTheList(t *testing.T) {
	f := newFakeStore(t)
	b, err := f.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	var changes []tags.Change
	for i := range 400 {
		f.put(t, 1, func(int64) uint64 { return 0 }, "many", fmt.Sprintf("%d", i*7919%500), fmt.Sprint(i))
		name, err := metric.Key("m", fmt.Sprint(i*31%97))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 { // has another name in the collection of its bucket
			of, err := metric.Key("many", fmt.Sprint(i*7919%500), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, tags.Change{Bucket: b.ID, Key: of, Collection: []byte("b"), Name: name,
				Clock: 1})
		}
		key := fmt.Appendf(nil, "\x03%03d", i)
		changes = append(changes,
			tags.Change{Bucket: 2, Key: key, Collection: fmt.Appendf(nil, "c%d", i%30), Name: name,
				Clock: 1},
			tags.Change{Bucket: 2, Key: key, Collection: []byte("tagged"), Name: name, Clock: 1})
	}
	o := testOptions(f)
	o.Tags = newFakeTags(t, changes...)
	h := New(o)
	list := func(target string) (elements []string, next string) {
		t.Helper()
		w := get(target).send(h)
		var raw []json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &raw); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", target, w.Code, w.Body)
		}
		for _, e := range raw {
			elements = append(elements, string(e))
		}
		next, _, _ = strings.Cut(strings.TrimPrefix(w.Header().Get("Link"), "<"), ">")
		return elements, next
	}
	for _, path := range []string{"/collections", "/collections/b/metrics",
		"/collections/b/metrics/BG1hbnk", "/collections/tagged/metrics",
		"/collections/tagged/namespaces/ddb/tags/part_1/values"} {
		whole, next := list(path)
		if next != "" || len(whole) < 30 {
			t.Errorf("%s has %d elements, and %q behind them", path, len(whole), next)
		}
		for _, limit := range []int{1, 7, 100_000} {
			var all []string
			for next := fmt.Sprintf("?limit=%d", limit); next != ""; {
				var part []string
				part, next = list(path + next)
				if len(part) > limit || len(part) < limit && next != "" {
					t.Fatalf("%s: a part of %d has %d, and %q behind it", path, limit, len(part), next)
				}
				all = append(all, part...)
			}
			if !slices.Equal(all, whole) {
				t.Errorf("%s by %d: %d elements, want %d", path, limit, len(all), len(whole))
			}
		}
	}
}
