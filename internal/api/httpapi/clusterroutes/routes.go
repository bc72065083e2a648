// Package clusterroutes answers requests about the cluster of a node: what it is, and changes of
// who belongs to it.
package clusterroutes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/cluster"
	"dalmatiner/internal/cluster/members"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// Node is what the routes need of a cluster.Cluster.
type Node interface {
	Self() ring.ID
	View() *ring.View
	IsUp(id ring.ID) bool
	// JoinError returns why the node takes no points yet: it has not found its cluster, or is no
	// member of it.
	JoinError() error
	Quorums() (r, w int)
	// BucketQuorum returns r and w of a bucket, and SetBucketQuorum sets them; 0 is the number of the
	// cluster.
	BucketQuorum(name string) (cluster.BucketQuorum, error)
	SetBucketQuorum(name string, reads, writes int) error
	// Figures returns the counters of the protocol, and the time on the clock of those in it.
	Figures() (s replication.Stats, steadyMS int64)
	Events() cluster.Events
}

// Gossip is what the routes need of a gossip.Node.
type Gossip interface {
	Candidates() []ring.Candidate
	JoinErrors() []error
	NotFound() []error
}

// Operator answers for a node of a cluster; nil for a node on its own, to say so.
type Operator struct {
	Node    Node
	Gossip  Gossip
	Members *members.Members
	Now     func() time.Time
}

// Route is one path. Serve gets the body by decode, which only those of changes call.
type Route struct {
	Path, Method string
	Serve        func(ctx context.Context, decode func(any) error) (any, error)
}

// ErrAlone is the error of a node that is no part of a cluster.
var ErrAlone = errors.New("this node is on its own: set cluster.listen, and cluster.join to " +
	"where another node gossips, to make it part of a cluster")

// IsConflict reports whether an error says that a change does not fit what there is.
func IsConflict(err error) bool {
	for _, known := range []error{ErrAlone, ring.ErrRefused, ring.ErrStale, members.ErrNothing,
		members.ErrMinority, members.ErrMaintenance} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// Routes returns all routes.
func (o *Operator) Routes() []Route {
	get := func(name string, answer func() (any, error)) Route {
		return Route{"/admin/cluster/" + name, "GET",
			func(context.Context, func(any) error) (any, error) {
				if o == nil {
					return nil, ErrAlone
				}
				return answer()
			}}
	}
	post := func(name string, do func(ctx context.Context, decode func(any) error) (any,
		error)) Route {
		return Route{"/admin/cluster/" + name, "POST",
			func(ctx context.Context, decode func(any) error) (any, error) {
				if o == nil {
					return nil, ErrAlone
				}
				return do(ctx, decode)
			}}
	}
	routes := []Route{
		get("status", func() (any, error) { return o.status(o.statusText) }),
		get("members", func() (any, error) { return o.status(o.membersText) }),
		get("ring", o.ring), get("transfers", o.transfers), get("plan", func() (any, error) {
			return o.plan()
		}), get("audit", o.audit),
		post("commit", o.commit), post("undo", o.undo), post("quorum", o.quorum),
		post("maintenance", o.maintenance),
	}
	for action := ring.Join; action <= ring.SetCopies; action++ {
		routes = append(routes,
			post(action.String(), func(ctx context.Context, decode func(any) error) (any, error) {
				return o.stage(ctx, action, decode)
			}))
	}
	for name, do := range map[string]func(context.Context) error{
		"clear":  func(ctx context.Context) error { return o.Members.Clear(ctx) },
		"pause":  func(ctx context.Context) error { return o.Members.Pause(ctx, true) },
		"resume": func(ctx context.Context) error { return o.Members.Pause(ctx, false) },
	} {
		routes = append(routes,
			post(name, func(ctx context.Context, decode func(any) error) (any, error) {
				if err := decode(&struct{}{}); err != nil {
					return nil, err
				}
				if err := do(ctx); err != nil {
					return nil, err
				}
				return o.status(o.statusText)
			}))
	}
	return routes
}

// maintenance lets a member leave reads and writes to others, or ends that.
func (o *Operator) maintenance(ctx context.Context, decode func(any) error) (any, error) {
	var in admin.ClusterMaintenance
	if err := decode(&in); err != nil {
		return nil, err
	}
	r, w := o.Node.Quorums()
	if err := o.Members.SetMaintenance(ctx, in.Node, in.On, r, w); err != nil {
		return nil, err
	}
	return o.status(o.statusText)
}

// stage stages a change. As with the original a node that is no member may be told to join one.
func (o *Operator) stage(ctx context.Context, action ring.Action,
	decode func(any) error) (any, error) {
	var in admin.ClusterChange
	if err := decode(&in); err != nil {
		return nil, err
	}
	c := members.Change{Action: action}
	view, self := o.Node.View(), o.Node.Self()
	switch action {
	case ring.Join:
		c.New = in.Node
		_, isMember := view.MemberNamed(in.Node)
		for _, candidate := range o.Gossip.Candidates() {
			if candidate.ID == self && (in.Node == "" || isMember) {
				c.New = candidate.Name
			}
		}
		if c.New == "" {
			return nil, fmt.Errorf("%w: this node is a member already: name the one that is to join",
				ring.ErrRefused)
		}
	case ring.Leave:
		c.Node = in.Node
		if m, ok := view.Member(self); in.Node == "" && ok {
			c.Node = m.Name
		}
	case ring.SetCopies:
		if c.Copies = in.Copies; c.Copies < 1 || c.Copies > ring.MaxCopies {
			return nil, fmt.Errorf("%w: n = %d, it is from 1 to %d", ring.ErrRefused, c.Copies,
				ring.MaxCopies)
		}
	default:
		c.Node, c.New = in.Node, in.New
	}
	if err := o.Members.Stage(ctx, c); err != nil {
		return nil, err
	}
	return o.plan()
}

// commit makes the staged changes.
func (o *Operator) commit(ctx context.Context, decode func(any) error) (any, error) {
	var in admin.ClusterCommit
	if err := decode(&in); err != nil {
		return nil, err
	}
	var which uint64
	if in.Staged != "" {
		n, err := strconv.ParseUint(in.Staged, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: staged is not what a plan has", ring.ErrRefused)
		}
		which = n
	}
	if err := o.Members.Commit(ctx, in.Ring, which, in.Minority); err != nil {
		return nil, err
	}
	return o.status(o.statusText)
}

// undo takes back a change under way.
func (o *Operator) undo(ctx context.Context, decode func(any) error) (any, error) {
	var in admin.ClusterUndo
	if err := decode(&in); err != nil {
		return nil, err
	}
	if err := o.Members.Undo(ctx, in.Minority); err != nil {
		return nil, err
	}
	return o.status(o.statusText)
}
