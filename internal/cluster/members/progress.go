package members

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"dalmatiner/internal/cluster/ring"
)

// News are what a node says of itself: how far it is with a change of the ring, and what plans
// need.
type News struct {
	// partitions that the ring gives it, and of which it does not have everything
	Left int `json:"left"`
	// nodes from which it has not fetched all events that the ring gives it
	Events int `json:"events,omitempty"`
	Hints  int `json:"hints"` // batches that it keeps for others
	// of its segments, of what it holds in memory, and of its events
	Bytes     int64      `json:"bytes"`
	Points    int64      `json:"points"` // in segments and in memory, about
	Free      int64      `json:"free"`   // of its disk
	Transfers []Transfer `json:"transfers,omitempty"`
}

// Transfer is what is on its way to this node, or what this node keeps for another one.
type Transfer struct {
	Hints     bool    `json:"hints,omitempty"`
	Partition int     `json:"partition"`
	From      ring.ID `json:"from"`
	To        ring.ID `json:"to"`
	Started   int64   `json:"started,omitempty"` // unix ms, 0: not yet
	Last      int64   `json:"last,omitempty"`    // something arrived
	Points    int64   `json:"points,omitempty"`
	Bytes     int64   `json:"bytes,omitempty"`
	Size      int64   `json:"size,omitempty"` // 0: not known
}

// maxTransfers bounds what a node says: further ones are counted in nothing but the ring itself.
const maxTransfers = 256

// report is what a node said last.
type report struct {
	Node   ring.ID `json:"node"`
	Clock  uint64  `json:"clock"` // grows with every report, over restarts, too
	Number uint64  `json:"number"`
	Sum    uint64  `json:"sum"` // of the ring that it has
	News
}

func (r *report) version() ring.Version { return ring.Version{Number: r.Number, Sum: r.Sum} }

// maxReports bounds the value. Nodes that left stay in it.
const maxReports = 2 * ring.MaxMembers

// progress is the gossiped value: reports in the order of their nodes.
type progress []report

func parseProgress(b []byte) (p progress, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("progress of nodes: %w: %w", errMalformed, err)
	}
	if len(p) > maxReports {
		return nil, fmt.Errorf("progress of nodes: %w: %d, at most %d are kept", errMalformed, len(p),
			maxReports)
	}
	for i := range p {
		if len(p[i].Transfers) > maxTransfers || i > 0 &&
			bytes.Compare(p[i-1].Node[:], p[i].Node[:]) >= 0 {
			return nil, fmt.Errorf("progress of nodes: %w", errMalformed)
		}
	}
	return p, nil
}

func (p progress) encode() ([]byte, error) {
	if len(p) > maxReports {
		return nil, fmt.Errorf("%d nodes reported, that is the limit: restart all nodes one after the "+
			"other", len(p))
	}
	return json.Marshal(p)
}

// mergeProgress is gossip.Value.Merge.
func mergeProgress(a, b []byte) ([]byte, error) {
	return mergeEncoded(a, b, parseProgress, func(x, y progress) progress {
		return mergeSorted(x, y, func(r report) string {
			return string(r.Node[:])
		}, func(a, b report) int {
			c := cmp.Compare(a.Clock, b.Clock)
			if c == 0 { // two directories with one id, or a clock that was set back
				x, _ := json.Marshal(a) // a report has nothing that cannot be encoded
				y, _ := json.Marshal(b)
				c = strings.Compare(string(x), string(y))
			}
			return c
		})
	}, progress.encode)
}

func (p progress) reportOf(id ring.ID) *report {
	for i := range p {
		if p[i].Node == id {
			return &p[i]
		}
	}
	return nil
}

// pauseValue is the gossiped value that holds transfers back. The latest stays.
type pauseValue struct {
	Clock uint64 `json:"clock"`
	On    bool   `json:"on"`
}

func parsePaused(b []byte) (p pauseValue, err error) {
	if len(b) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("pause of transfers: %w: %w", errMalformed, err)
	}
	return p, nil
}

// mergePaused is gossip.Value.Merge. Of two at once the pause stays: it can be ended again.
func mergePaused(a, b []byte) ([]byte, error) {
	return mergeEncoded(a, b, parsePaused, func(x, y pauseValue) pauseValue {
		if c := cmp.Compare(x.Clock, y.Clock); c > 0 || c == 0 && x.On {
			return x
		}
		return y
	}, pauseValue.encode)
}

func (p pauseValue) encode() ([]byte, error) { return json.Marshal(p) }
