package members

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/cluster/ring"
)

// maintenanceValue is the name of the gossiped value that says which members are in maintenance.
const maintenanceValue = "maintenance"

// ErrMaintenance is wrapped by the error of a member that cannot go into maintenance.
var ErrMaintenance = errors.New("the member cannot go into maintenance")

// rest says whether a member is in maintenance. Of two for one member the later one stays.
type rest struct {
	Node  ring.ID `json:"node"`
	Clock uint64  `json:"clock"`
	On    bool    `json:"on"`
}

// rests is the gossiped value, in the order of the members' ids.
type rests []rest

func (r *rest) key() string { return hex.EncodeToString(r.Node[:]) }

// parseRests reads a value. Nil is an empty one.
func parseRests(b []byte) (list rests, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("members in maintenance: %w: %w", errMalformed, err)
	}
	if len(list) > maxSubjects {
		return nil, fmt.Errorf("members in maintenance: %w: %d, at most %d are kept", errMalformed,
			len(list), maxSubjects)
	}
	for i := 1; i < len(list); i++ {
		if bytes.Compare(list[i-1].Node[:], list[i].Node[:]) >= 0 {
			return nil, fmt.Errorf("members in maintenance: %w", errMalformed)
		}
	}
	return list, nil
}

func (l rests) encode() ([]byte, error) { return json.Marshal(l) }

// mergeRests is gossip.Value.Merge. Of two at once the end of maintenance stays: a member that is
// meant to serve does.
func mergeRests(a, b []byte) ([]byte, error) {
	later := func(x, y rest) int {
		switch c := cmp.Compare(x.Clock, y.Clock); {
		case c != 0 || x.On == y.On:
			return c
		case x.On:
			return -1
		}
		return 1
	}
	return mergeEncoded(a, b, parseRests, func(x, y rests) rests {
		return mergeSorted(x, y, func(r rest) string { return r.key() }, later)
	}, rests.encode)
}

func (m *Members) parseRests() (rests, error) {
	b, err := m.o.Gossip.Get(maintenanceValue)
	if err != nil {
		return nil, err
	}
	return parseRests(b)
}

// Maintenance returns the members that are in maintenance.
func (m *Members) Maintenance() map[ring.ID]bool {
	out := make(map[ring.ID]bool)
	list, err := m.parseRests()
	if err != nil {
		return out // gossip took no value that cannot be read
	}
	view := m.o.Gossip.View()
	for i := range list {
		if mem, ok := view.Member(list[i].Node); ok && mem.State != ring.Removed && list[i].On {
			out[list[i].Node] = true
		}
	}
	return out
}

// SetMaintenance lets a member leave reads and writes to others, or ends that. While others are
// missing, too, so that fewer than r copies of something, or fewer than w members, would be left,
// it is refused.
func (m *Members) SetMaintenance(ctx context.Context, name string, on bool, r, w int) error {
	view := m.o.Gossip.View()
	mem, ok := view.MemberNamed(name)
	if !ok {
		return fmt.Errorf("%w: %s is no member: ddb admin cluster members lists them", ErrMaintenance,
			name)
	}
	away := m.Maintenance()
	if on && !away[mem.ID] {
		if err := m.spare(view, mem.ID, away, r, w); err != nil {
			return err
		}
	}
	list, err := m.parseRests()
	if err != nil {
		return err
	}
	next := rest{Node: mem.ID, Clock: uint64(m.o.Now().UnixNano()), On: on}
	list = slices.DeleteFunc(list, func(old rest) bool {
		if old.Node == next.Node {
			next.Clock = max(next.Clock, old.Clock+1)
		}
		_, member := view.Member(old.Node)
		return old.Node == next.Node || !member
	})
	list = append(list, next)
	slices.SortFunc(list, func(a, b rest) int { return bytes.Compare(a.Node[:], b.Node[:]) })
	b, err := list.encode()
	if err != nil {
		return err
	}
	if err := m.o.Gossip.Put(ctx, maintenanceValue, b); err != nil {
		return err
	}
	m.o.Rest(m.Maintenance())
	return nil
}

// spare returns an error if a cluster cannot do without one more member.
func (m *Members) spare(view *ring.View, id ring.ID, away map[ring.ID]bool, r, w int) error {
	left, missing := 0, []string{}
	for _, mem := range view.Members() {
		switch {
		case mem.ID == id || mem.State == ring.Removed || mem.State == ring.Pending:
		case away[mem.ID]:
			missing = append(missing, mem.Name+" (in maintenance)")
		case !m.o.Gossip.IsUp(mem.ID):
			missing = append(missing, mem.Name+" (down)")
		default:
			left++
		}
	}
	n := view.Copies(ring.Current)
	if len(missing)+1 <= n-r && left >= w {
		return nil
	}
	besides := ""
	if len(missing) > 0 {
		besides = "; missing already: " + strings.Join(missing, ", ")
	}
	return fmt.Errorf("%w: with n = %d, r = %d and w = %d there may be too few copies or members "+
		"without it%s", ErrMaintenance, n, r, w, besides)
}
