package oracle

import (
	"fmt"
	"strings"
	"sync"
)

// Tags is what was sent about the tags of some series. Each of them has tags of three names, the
// last one as long as names may be; a value tells which write it is of.
type Tags struct {
	sync.Mutex
	Bucket  string
	Metrics [][]string
	salt    uint64
	// oldest first; those before the newest acknowledged one are dropped
	writes map[tagSlot][]tagWrite
	sent   uint32
}

type tagSlot struct{ series, name int }

type tagWrite struct {
	n     uint32
	acked bool
}

// TagNames are the names, and maxValue is what a value may have.
var TagNames = []string{"dc", "role", strings.Repeat("long", 256)}

const maxValue = 4096

// Next notes a write of a tag and returns its number and its value.
func (t *Tags) Next(series, name int) (uint32, string) {
	t.Lock()
	defer t.Unlock()
	t.sent++
	at := tagSlot{series, name}
	t.writes[at] = append(t.writes[at], tagWrite{n: t.sent})
	return t.sent, t.value(t.sent)
}

func (t *Tags) value(n uint32) string {
	v := fmt.Sprintf("%d-%x", n, mix(t.salt^uint64(n)))
	if n%16 == 0 {
		v += strings.Repeat("v", maxValue-len(v))
	}
	return v
}

// Ack notes that the writes from first to last are durable.
func (t *Tags) Ack(first, last uint32) {
	t.Lock()
	defer t.Unlock()
	for at, w := range t.writes {
		newest := 0
		for i := range w {
			w[i].acked = w[i].acked || w[i].n >= first && w[i].n <= last
			if w[i].acked {
				newest = i
			}
		}
		t.writes[at] = w[newest:]
	}
}

// Judge compares the tags of all series, by the parts of the metric with a dot between them. Lost
// says that damage may have taken changes. It returns how many were lost so, and compared.
func (t *Tags) Judge(read map[string]map[string]string, settle, lost bool,
	found func(Finding)) (missing, compared int64) {
	t.Lock()
	defer t.Unlock()
	known := map[string]bool{}
	for i, m := range t.Metrics {
		metric := strings.Join(m, ".")
		known[metric] = true
		for j, name := range TagNames {
			compared++
			v, there := read[metric][name]
			at := tagSlot{i, j}
			w := t.writes[at]
			k := t.match(w, v, there)
			switch {
			case k >= 0 && settle:
				t.writes[at] = []tagWrite{{w[k].n, true}}
			case k >= 0:
			case !there && (len(w) == 0 || !w[0].acked):
				if settle {
					delete(t.writes, at)
				}
			case lost && (!there || t.sentOnce(v)):
				missing++
			default:
				class := Foreign
				if !there {
					class = Missing
				}
				found(Finding{Class: class,
					Text: fmt.Sprintf("tag %.20s of %.60s in %s is %.40q, want write %v", name, metric, t.Bucket,
						v, w)})
			}
		}
	}
	for metric := range read {
		if !known[metric] {
			found(Finding{Class: Foreign, Text: fmt.Sprintf("tags of %.60s in %s, which nobody sent", metric,
				t.Bucket)})
		}
	}
	return missing, compared
}

// sentOnce says whether a value is of any write.
func (t *Tags) sentOnce(v string) bool {
	var n uint32
	_, err := fmt.Sscanf(v, "%d-", &n)
	return err == nil && n <= t.sent && t.value(n) == v
}

// match is the index of the write that a value is of, -1 for none.
func (t *Tags) match(w []tagWrite, v string, there bool) int {
	for i := len(w) - 1; i >= 0 && there; i-- {
		if t.value(w[i].n) == v {
			return i
		}
	}
	return -1
}
