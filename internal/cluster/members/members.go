// Package members changes who belongs to a cluster: changes are staged on any node, looked at as a
// plan, and committed for the ring that the plan was made for. Every node says how far it is; when
// all have what the new ring gives them, one of them ends the change. DESIGN.md beside it has the
// values that nodes hold in common.
package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/cluster/gossip"
	"dalmatiner/internal/cluster/ring"
)

// Names of the values that nodes hold in common.
const (
	stagedValue   = "staged"
	progressValue = "progress"
	pausedValue   = "paused"
)

// Values are what this package needs of gossip.Options.
func Values() []gossip.Value {
	return []gossip.Value{{Name: stagedValue, Merge: mergeStaged},
		{Name: progressValue, Merge: mergeProgress}, {Name: pausedValue, Merge: mergePaused},
		{Name: maintenanceValue, Merge: mergeRests}}
}

// Gossip is what the package needs of a gossip.Node.
type Gossip interface {
	View() *ring.View
	IsUp(id ring.ID) bool
	Candidates() []ring.Candidate
	ChangeSignal() <-chan struct{}
	Commit(ctx context.Context, change func(*ring.View) (*ring.View, error)) error
	Get(name string) ([]byte, error)
	Put(ctx context.Context, name string, b []byte) error
}

// Options say which node this is, and what it knows of itself.
type Options struct {
	Self   ring.ID
	Gossip Gossip
	// News returns what the node says of itself under a ring; false while it does not know that ring.
	// It is asked often.
	News func(ring.Version) (News, bool)
	// Classes returns the n of buckets that have one of their own; nil: none has.
	Classes func() []int
	Hold    func(paused bool)           // is told in every round whether transfers are held back
	Rest    func(away map[ring.ID]bool) // and which members are in maintenance
	Rate    int64                       // points a second that a node fetches at most; 0: not known
	Now     func() time.Time
	Logger  *slog.Logger
	Every   time.Duration // how often a node looks at itself
}

// Members is the part of a node in changes of the ring. Its methods may be called concurrently.
type Members struct {
	o       Options
	stop    context.CancelFunc
	running sync.WaitGroup

	// Of the loop.
	said   News
	under  ring.Version
	saidAt time.Time
	warned string
}

// Start begins to report how far this node is, and to end changes that are complete, until Close.
func Start(o Options) *Members {
	ctx, stop := context.WithCancel(context.Background())
	m := &Members{o: o, stop: stop}
	m.running.Go(func() { m.run(ctx) })
	return m
}

// Close ends that.
func (m *Members) Close() {
	m.stop()
	m.running.Wait()
}

func (m *Members) run(ctx context.Context) {
	tick := time.NewTicker(m.o.Every)
	defer tick.Stop()
	for {
		changed := m.o.Gossip.ChangeSignal()
		m.o.Hold(m.TransfersPaused())
		m.o.Rest(m.Maintenance())
		for _, err := range []error{m.report(ctx), m.finish(ctx)} {
			if err == nil || ctx.Err() != nil || err.Error() == m.warned {
				continue
			}
			m.warned = err.Error()
			m.o.Logger.Warn("a change of the ring does not go on", "err", err)
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// calm is how long small changes of what a node says wait.
const calm = 30 * time.Second

// report says how far this node is, if that is news.
func (m *Members) report(ctx context.Context) error {
	version := m.o.Gossip.View().Version()
	news, known := m.o.News(version)
	if !known {
		return nil // there is another round
	}
	if len(news.Transfers) > maxTransfers {
		news.Transfers = news.Transfers[:maxTransfers]
	}
	now := m.o.Now()
	urgent := m.saidAt.IsZero() || version != m.under || (news.Left > 0) != (m.said.Left > 0) ||
		(news.Events > 0) != (m.said.Events > 0) || (news.Hints > 0) != (m.said.Hints > 0) ||
		len(news.Transfers) != len(m.said.Transfers)
	moving := (news.Left != m.said.Left || news.Events != m.said.Events ||
		!slices.Equal(news.Transfers, m.said.Transfers)) && now.Sub(m.saidAt) >= m.o.Every
	if !urgent && !moving && (now.Sub(m.saidAt) < calm || reflect.DeepEqual(news, m.said)) {
		return nil
	}
	all, err := m.progress()
	if err != nil {
		return err
	}
	r := report{
		Node:   m.o.Self,
		Clock:  uint64(now.UnixNano()),
		Number: version.Number,
		Sum:    version.Sum,
		News:   news,
	}
	if old := all.reportOf(m.o.Self); old != nil {
		r.Clock = max(r.Clock, old.Clock+1)
	}
	b, err := progress{r}.encode()
	if err != nil {
		return err
	}
	if err := m.o.Gossip.Put(ctx, progressValue, b); err != nil {
		return err
	}
	m.said, m.under, m.saidAt = news, version, now
	return nil
}

func (m *Members) progress() (progress, error) {
	b, err := m.o.Gossip.Get(progressValue)
	if err != nil {
		return nil, err
	}
	return parseProgress(b)
}

// Report is what a node said last.
type Report struct {
	Ring ring.Version // that it had
	News
}

// Reports returns what the nodes said last.
func (m *Members) Reports() (map[ring.ID]Report, error) {
	all, err := m.progress()
	if err != nil {
		return nil, err
	}
	out := make(map[ring.ID]Report, len(all))
	for i := range all {
		out[all[i].Node] = Report{all[i].version(), all[i].News}
	}
	return out, nil
}

// PendingSteps returns what a change under way still waits for, a line for each node; nothing if
// none is.
func (m *Members) PendingSteps() ([]string, error) {
	all, err := m.progress()
	if err != nil {
		return nil, err
	}
	return pendingSteps(m.o.Gossip.View(), m.classes(), all, m.o.Gossip.IsUp), nil
}

// classes returns the n of buckets, 0 for that of the ring.
func (m *Members) classes() []int {
	if m.o.Classes == nil {
		return []int{0}
	}
	return append(m.o.Classes(), 0)
}

// pendingSteps says which nodes do not have yet what the ring gives them, and which still keep
// hints before they leave.
func pendingSteps(v *ring.View, classes []int, all progress, up func(ring.ID) bool) (out []string) {
	if !v.IsChanging() {
		return nil
	}
	to := make(map[ring.ID]int)
	for _, n := range classes {
		for _, move := range v.Fetches(n) {
			to[move.To]++
		}
	}
	members := v.Members()
	for i := range members {
		mem := &members[i]
		leaves := mem.State == ring.Leaving
		if to[mem.ID] == 0 && !leaves {
			continue
		}
		r := all.reportOf(mem.ID)
		switch {
		case !up(mem.ID):
			out = append(out, mem.Name+" is down")
		case r == nil || r.version() != v.Version():
			out = append(out, mem.Name+" has not said yet that it has this ring")
		case r.Left > 0:
			out = append(out, fmt.Sprintf("%s fetches %d partitions, %d are left", mem.Name, to[mem.ID],
				r.Left))
		case r.Events > 0:
			out = append(out, fmt.Sprintf("%s fetches events, from %d nodes yet", mem.Name, r.Events))
		case leaves && r.Hints > 0:
			out = append(out, fmt.Sprintf("%s leaves and keeps %d batches for others", mem.Name, r.Hints))
		}
	}
	return out
}

// finish ends a change that is complete. The member with the lowest id that is up does it; should
// two do it at once, both make the same ring.
func (m *Members) finish(ctx context.Context) error {
	view := m.o.Gossip.View()
	if !view.IsChanging() || !m.first(view) {
		return nil
	}
	all, err := m.progress()
	if err != nil || len(pendingSteps(view, m.classes(), all, m.o.Gossip.IsUp)) > 0 {
		return err
	}
	err = m.o.Gossip.Commit(ctx, func(v *ring.View) (*ring.View, error) {
		if v.Version() != view.Version() {
			return nil, ring.ErrStale
		}
		return v.Finish()
	})
	if errors.Is(err, ring.ErrStale) {
		return nil // another node was faster
	}
	if err == nil {
		m.o.Logger.Info("the change of the ring is complete", "ring",
			m.o.Gossip.View().Version().String())
	}
	return err
}

// first reports whether this node is the member with the lowest id that is up.
func (m *Members) first(v *ring.View) bool {
	members := v.Members()
	for i := range members {
		if mem := &members[i]; mem.State != ring.Removed && mem.State != ring.Pending &&
			m.o.Gossip.IsUp(mem.ID) {
			return mem.ID == m.o.Self
		}
	}
	return false
}

// TransfersPaused reports whether an operator holds transfers back.
func (m *Members) TransfersPaused() bool {
	p, err := m.pauseState()
	return err == nil && p.On
}

func (m *Members) pauseState() (pauseValue, error) {
	b, err := m.o.Gossip.Get(pausedValue)
	if err != nil {
		return pauseValue{}, err
	}
	return parsePaused(b)
}

// Pause holds transfers of all nodes back, or lets them go on.
func (m *Members) Pause(ctx context.Context, on bool) error {
	p, err := m.pauseState()
	if err != nil {
		return err
	}
	b, err := pauseValue{Clock: max(uint64(m.o.Now().UnixNano()), p.Clock+1), On: on}.encode()
	if err != nil {
		return err
	}
	return m.o.Gossip.Put(ctx, pausedValue, b)
}

// Undo takes back a change under way: members that were joining have no share, those that were
// leaving stay. While fewer than half of the members are up it is refused, as Commit is.
func (m *Members) Undo(ctx context.Context, minority bool) error {
	if err := m.refuseFew(minority); err != nil {
		return err
	}
	var number uint64
	err := m.o.Gossip.Commit(ctx, func(v *ring.View) (*ring.View, error) {
		number = v.Version().Number + 1
		return v.Undo()
	})
	if err != nil {
		return err
	}
	return m.await(ctx, number)
}

// seeded returns a source of tokens that is the same on all nodes that look at the same staged
// changes under the same ring: what was looked at on one node is what is committed on another.
func seeded(v ring.Version, digest uint64) *rand.Rand {
	return rand.New(rand.NewPCG(v.Sum, digest))
}
