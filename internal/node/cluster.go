package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi/clusterroutes"
	"dalmatiner/internal/cluster"
	"dalmatiner/internal/cluster/certs"
	"dalmatiner/internal/cluster/members"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/store"
)

// clusterPart is the part of a node in its cluster. A nil one is a node on its own.
type clusterPart struct {
	*cluster.Cluster
	members *members.Members
}

// checkCluster refuses what a node of a cluster cannot do yet, before anything is opened.
func checkCluster(c *config.Config) error {
	k := &c.Cluster
	if !k.IsEnabled() {
		return nil
	}
	host, _, err := net.SplitHostPort(k.Listen)
	if err != nil {
		return fmt.Errorf("cluster.listen = %s: %w", k.Listen, err)
	}
	if ip := net.ParseIP(host); k.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return fmt.Errorf("cluster.listen = %s names no address under which other nodes reach this "+
			"one: set cluster.advertise to it", k.Listen)
	}
	return nil
}

// openCluster makes the node part of its cluster; nil where it is to be on its own.
func (n *node) openCluster() (*clusterPart, error) {
	c := &n.cfg.Cluster
	if !c.IsEnabled() {
		return nil, nil
	}
	cookie, err := c.ReadCookie()
	if err != nil {
		return nil, err
	}
	o := cluster.Options{
		FS: vfs.Default, Dir: n.cfg.DataDir, Store: n.store,
		Local:  n.source(),
		Logger: n.logger, Now: time.Now, Memory: n.memory.budget, OnFatal: n.fail,
		Name: n.cfg.Node, Zone: c.Zone, Listen: c.Listen, Gossip: c.GossipAddr(), Join: c.Seeds(),
		Cookie:     cookie,
		Partitions: c.RingSize, Copies: c.FirstCopies(), Quorums: c.Quorums, MaxHints: c.HintsMax,
		MinFree: n.cfg.MinFree,
		Values:  members.Values(), Pace: cluster.DefaultPace(),
	}
	o.Pace.Heartbeat, o.Pace.Silence, o.Pace.Repair, o.Pace.MoveRate, o.Pace.Drop = c.Heartbeat,
		c.Timeout, c.Repair, c.MoveRate, c.DropAfter
	if c.Advertise != "" {
		o.Advertise = []string{c.Advertise}
	}
	if ca, cert, key := c.TLS(n.cfg.Node); ca != "" || cert != "" || key != "" {
		o.TLS = &certs.Files{CA: ca, Cert: cert, Key: key}
	}
	if n.cfg.AutoCreate {
		o.AutoCreate = &cluster.BucketDefaults{
			Resolution: n.cfg.Resolution.Milliseconds(),
			PPF:        n.cfg.PointsPerFile,
			TTL:        n.cfg.Lifetime,
		}
	}
	part, err := cluster.Open(o)
	if errors.Is(err, os.ErrNotExist) && o.TLS != nil {
		err = fmt.Errorf("%w: ddb tls create makes the files of cluster.tls_dir", err)
	}
	if err != nil {
		return nil, err
	}
	p := &clusterPart{Cluster: part}
	p.members = members.Start(members.Options{
		Self:    part.Self(),
		Gossip:  part.Gossip(),
		News:    n.news(part),
		Classes: part.Classes,
		Hold:    part.HoldMoves,
		Rest:    part.Maintain,
		Rate:    int64(c.MoveRate),
		Now:     time.Now,
		Logger:  n.logger,
		Every:   c.Heartbeat,
	})
	if err := part.JoinError(); err != nil {
		n.logger.Info("looking for the cluster", "listen", c.Listen, "gossip", part.Gossip().Addr(),
			"err", err)
		return p, nil
	}
	n.logger.Info("part of a cluster", "listen", c.Listen, "gossip", part.Gossip().Addr(), "ring",
		part.View().Version().String(), "members", len(part.View().Members()))
	return p, nil
}

// news returns what says how far this node is.
func (n *node) news(part *cluster.Cluster) func(ring.Version) (members.News, bool) {
	return func(under ring.Version) (members.News, bool) {
		s, known := part.Progress(under)
		if !known {
			return members.News{}, false
		}
		st := n.store.Stats()
		points, bytes := holds(&st)
		out := members.News{
			Left:   s.Left,
			Events: s.Events,
			Hints:  len(s.Hints),
			Points: points,
			Bytes:  bytes + n.store.Events().Stats().FileBytes,
			Free:   st.FreeDisk,
		}
		wall := func(steady int64) int64 {
			if steady == 0 {
				return 0
			}
			return s.Start.UnixMilli() + steady
		}
		for _, m := range s.Moves {
			if m.Started > 0 && !m.Done {
				out.Transfers = append(out.Transfers, members.Transfer{Partition: m.Partition, From: m.From,
					To:      m.To,
					Started: wall(m.Started), Last: wall(m.Last), Points: m.Points, Bytes: m.Bytes})
			}
		}
		type kept struct {
			to        ring.ID
			partition int
		}
		hints := make(map[kept]int)
		for _, h := range s.Hints {
			at, known := hints[kept{h.For, h.Partition}]
			if !known {
				at = len(out.Transfers)
				hints[kept{h.For, h.Partition}] = at
				out.Transfers = append(out.Transfers, members.Transfer{
					Hints:     true,
					Partition: h.Partition,
					From:      part.Self(),
					To:        h.For,
					Started:   wall(1),
				})
			}
			out.Transfers[at].Size += 8 * int64(h.Rows)
		}
		return out, true
	}
}

// holds returns about how many points the store has, and how many bytes they take or will take on
// disk. What is in memory counts with its size there, which is no less.
func holds(st *store.Stats) (points, bytes int64) {
	open, encoded := st.Head.Bytes+st.Head.Late, st.Head.Sealed
	points, bytes = st.Segments.Points+open/point.Size, st.Segments.Bytes+open+encoded
	if st.Segments.Bytes > 0 {
		points += int64(float64(encoded) * float64(st.Segments.Points) / float64(st.Segments.Bytes))
	} else {
		points += encoded / point.Size
	}
	return points, bytes
}

// Close ends the part of the node. The store is still open.
func (p *clusterPart) Close() error {
	if p == nil {
		return nil
	}
	p.members.Close()
	return p.Cluster.Close()
}

// operator answers for the cluster over HTTP.
func (p *clusterPart) operator() *clusterroutes.Operator {
	if p == nil {
		return nil
	}
	return &clusterroutes.Operator{
		Node:    p.Cluster,
		Gossip:  p.Gossip(),
		Members: p.members,
		Now:     time.Now,
	}
}

// line is what the status of the node says of the cluster.
func (p *clusterPart) line() *admin.ClusterLine {
	if p == nil {
		return nil
	}
	v := p.View()
	out := &admin.ClusterLine{
		Ring:     v.Version().String(),
		Changing: v.IsChanging(),
		Copies:   v.Copies(ring.Current),
		Down:     []string{},
	}
	out.Reads, out.Writes = p.Quorums()
	if err := p.JoinError(); err != nil {
		out.Joining = err.Error()
	}
	for _, m := range v.Members() {
		out.Members++
		if p.IsUp(m.ID) {
			out.Up++
		} else {
			out.Down = append(out.Down, m.Name)
		}
	}
	return out
}
