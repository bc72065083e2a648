package admin

import "context"

// Cluster is the answer to GET /admin/cluster/status: the ring as the node sees it.
type Cluster struct {
	// for a terminal, in the layout of the original; also in the answers below
	Text string `json:"text,omitempty"`

	Node   string `json:"node"` // that answers
	Ring   string `json:"ring"` // version
	Agree  bool   `json:"agree"`
	Copies int    `json:"n"`
	Next   int    `json:"next_n"` // after a change that is under way
	Reads  int    `json:"r"`
	Writes int    `json:"w"`

	Partitions int             `json:"ring_size"`
	Members    []ClusterMember `json:"members"`

	Changing bool     `json:"changing"`
	Waits    []string `json:"waits"` // what a change under way waits for
	Paused   bool     `json:"paused"`
	Staged   []string `json:"staged"`
	Waiting  []string `json:"waiting"` // nodes that are up and no members
	// why some of them cannot be, or what keeps this node from its cluster
	Refused []string `json:"refused"`
}

// ClusterMember is one member.
type ClusterMember struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	State string `json:"state"` // active, joining, leaving, removed or pending
	Up    bool   `json:"up"`
	// it leaves reads and writes to others, and counts as down
	Maintenance bool     `json:"maintenance"`
	Addresses   []string `json:"addresses"`
	Zone        string   `json:"zone"`
	Share       float64  `json:"share"`  // of all copies
	Future      float64  `json:"future"` // after the change under way
	Bytes       int64    `json:"bytes"`
	Free        int64    `json:"free_disk_bytes"`
	Hints       int      `json:"hints"` // batches that it keeps for others
}

// ClusterRing is the answer to GET /admin/cluster/ring: what has to move.
type ClusterRing struct {
	Text  string        `json:"text,omitempty"`
	Ring  string        `json:"ring"`
	Agree bool          `json:"agree"`
	Moves []ClusterMove `json:"moves"`
	Down  []string      `json:"down"` // members that do not answer
}

// ClusterMove is a partition that gets a new owner.
type ClusterMove struct {
	Partition int      `json:"partition"`
	From      []string `json:"from"` // who has it; nobody: it is lost
	To        string   `json:"to"`
}

// ClusterTransfers is the answer to GET /admin/cluster/transfers.
type ClusterTransfers struct {
	Text      string            `json:"text,omitempty"`
	Transfers []ClusterTransfer `json:"transfers"`
	Paused    bool              `json:"paused"`
}

// ClusterTransfer is what is on its way from one member to another.
type ClusterTransfer struct {
	// what a member keeps for one that was down; else a share that moves
	Hints     bool   `json:"hints"`
	Partition int    `json:"partition"`
	From      string `json:"from"`
	To        string `json:"to"`
	Points    int64  `json:"points"` // that arrived
	Bytes     int64  `json:"bytes"`
	Size      int64  `json:"size"` // 0: not known
}

// ClusterPlan is the answer to GET /admin/cluster/plan. Without staged changes only Ring is set.
type ClusterPlan struct {
	Text     string   `json:"text,omitempty"`
	Ring     string   `json:"ring"`
	Staged   string   `json:"staged"` // says which changes are meant
	Changes  []string `json:"changes"`
	Moves    int      `json:"moves"`
	Bytes    int64    `json:"bytes"`
	Seconds  float64  `json:"seconds"` // estimate, 0: unknown
	Fetches  []Fetch  `json:"fetches"`
	Warnings []string `json:"warnings"`
}

// Fetch is what a member fetches from others.
type Fetch struct {
	Node       string `json:"node"`
	Partitions int    `json:"partitions"`
	Bytes      int64  `json:"bytes"`
	Free       int64  `json:"free_disk_bytes"` // 0: not known
}

// ClusterChange is the body of the requests that stage a change.
type ClusterChange struct {
	// that joins, leaves, is replaced or removed; of join and leave: this one, if left out
	Node   string `json:"node,omitempty"`
	New    string `json:"new,omitempty"` // that replaces it
	Copies int    `json:"n,omitempty"`
}

// ClusterCommit is the body of POST /admin/cluster/commit.
type ClusterCommit struct {
	Ring   string `json:"ring"`             // of the plan that was looked at
	Staged string `json:"staged,omitempty"` // likewise; left out: what is staged now
	// Minority makes them while fewer than half of the members are up, too.
	Minority bool `json:"minority,omitempty"`
}

// ClusterUndo is the body of POST /admin/cluster/undo. Minority is that of ClusterCommit.
type ClusterUndo struct {
	Minority bool `json:"minority,omitempty"`
}

// BucketQuorum is the body of POST /admin/cluster/quorum, and the answer: how many copies of a
// bucket count. In a request own_r and own_w stay as they are where they are left out.
type BucketQuorum struct {
	Name      string `json:"name"`            // escaped
	OwnReads  *int   `json:"own_r,omitempty"` // of the bucket; 0: the number of the cluster counts
	OwnWrites *int   `json:"own_w,omitempty"`
	Copies    int    `json:"n,omitempty"` // in an answer
	Reads     int    `json:"r,omitempty"` // that counts, in an answer
	Writes    int    `json:"w,omitempty"`
}

// ClusterAudit is the answer to GET /admin/cluster/audit: how well copies agree, as this node has
// seen it since it started.
type ClusterAudit struct {
	Text string `json:"text,omitempty"`
	// of a whole partition with one other member
	Comparisons uint64 `json:"comparisons"`
	// that these compared, each with one other copy
	Chunks           uint64 `json:"chunks"`
	Differences      uint64 `json:"differences"`       // chunks of which the copies differed
	Repaired         uint64 `json:"repaired"`          // points that were copied because of that
	Moved            uint64 `json:"moved"`             // points that moved with a partition
	EventComparisons uint64 `json:"event_comparisons"` // of all events with one other member
	// because of these, those that moved included
	EventsCopied   uint64      `json:"events_copied"`
	HintsKept      uint64      `json:"hints_kept"`
	HintsDelivered uint64      `json:"hints_delivered"`
	Hints          int         `json:"hints"` // batches that are kept now
	Partitions     []AuditPass `json:"partitions"`
}

// AuditPass says when a partition of this node was last compared with all its other copies.
type AuditPass struct {
	Partition int     `json:"partition"`
	AgoS      float64 `json:"ago_s"`
	Never     bool    `json:"never"` // with one of them at least, since this node started
}

// Cluster reads the state of the cluster.
func (c *Client) Cluster(ctx context.Context) (out Cluster, err error) {
	return out, c.get(ctx, "/admin/cluster/status", &out)
}

// ClusterMembers is Cluster with another text: the members.
func (c *Client) ClusterMembers(ctx context.Context) (out Cluster, err error) {
	return out, c.get(ctx, "/admin/cluster/members", &out)
}

// ClusterRing reads what has to move.
func (c *Client) ClusterRing(ctx context.Context) (out ClusterRing, err error) {
	return out, c.get(ctx, "/admin/cluster/ring", &out)
}

// ClusterTransfers reads what is moving.
func (c *Client) ClusterTransfers(ctx context.Context) (out ClusterTransfers, err error) {
	return out, c.get(ctx, "/admin/cluster/transfers", &out)
}

// ClusterAudit reads how well copies agree.
func (c *Client) ClusterAudit(ctx context.Context) (out ClusterAudit, err error) {
	return out, c.get(ctx, "/admin/cluster/audit", &out)
}

// BucketQuorum reads how many copies of a bucket count, after it has set what q names.
func (c *Client) BucketQuorum(ctx context.Context, q BucketQuorum) (out BucketQuorum, err error) {
	return out, c.post(ctx, "/admin/cluster/quorum", q, &out)
}

// ClusterPlan reads what a commit would do.
func (c *Client) ClusterPlan(ctx context.Context) (out ClusterPlan, err error) {
	return out, c.get(ctx, "/admin/cluster/plan", &out)
}

// StageChange stages a change: join, leave, replace, force-remove or set-n.
func (c *Client) StageChange(ctx context.Context, action string,
	change ClusterChange) (out ClusterPlan, err error) {
	return out, c.post(ctx, "/admin/cluster/"+action, change, &out)
}

// CommitChanges makes the staged changes.
func (c *Client) CommitChanges(ctx context.Context, commit ClusterCommit) (out Cluster, err error) {
	return out, c.post(ctx, "/admin/cluster/commit", commit, &out)
}

// ClusterMaintenance is the body of POST /admin/cluster/maintenance.
type ClusterMaintenance struct {
	Node string `json:"node"`
	On   bool   `json:"on"`
}

// Maintain lets a member leave reads and writes to others, or ends that.
func (c *Client) Maintain(ctx context.Context, m ClusterMaintenance) (out Cluster, err error) {
	return out, c.post(ctx, "/admin/cluster/maintenance", m, &out)
}

// ChangeCluster asks for clear, pause or resume, whose body is an empty struct, or for undo, whose
// body is a ClusterUndo.
func (c *Client) ChangeCluster(ctx context.Context, what string,
	body any) (out Cluster, err error) {
	return out, c.post(ctx, "/admin/cluster/"+what, body, &out)
}
