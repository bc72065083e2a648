package cluster

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/certs"
	"dalmatiner/internal/cluster/gossip"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
)

// SelfMetrics is the bucket in which a node keeps its own figures. It belongs to that node alone,
// and makes it none with data.
const SelfMetrics = "dalmatinerdb"

// protocol is the version of what nodes say to each other.
const protocol = 2

// minCookie is the shortest cookie.
const minCookie = 16

// Options say which node this is, where it finds the others, and what it may hold.
type Options struct {
	FS     vfs.FS
	Dir    string // the data directory; its directory "cluster" holds what belongs to the cluster
	Store  *store.Store
	Local  source.Source // that store, as queries read it
	Logger *slog.Logger
	Now    func() time.Time
	Memory *memory.Budget // nil counts and limits nothing
	// OnFatal is called once when the node can no longer keep its promises: it should exit.
	OnFatal func(error)

	Name, Zone string
	Listen     string // address for connections of nodes
	// addresses under which others reach Listen; the address itself if there are none
	Advertise []string
	Gossip    string   // address for gossip: another port than that of Listen
	Join      []string // where other nodes listen for gossip
	Cookie    string   // distributed_cookie, the same on all nodes
	TLS       *certs.Files

	Partitions int // ring_size
	Copies     int // n of a cluster that this node founds
	// Quorums returns how many copies answer a read, and how many are on disk before a write is
	// acknowledged, in a ring with n copies and so many members.
	Quorums  func(n, members int) (r, w int)
	MaxHints int64 // bytes of hints that are kept at most
	MinFree  int64 // bytes of the disk that stay free

	AutoCreate *BucketDefaults // of a bucket that points come for first; nil creates none

	// Values are held in common beside those of the cluster itself.
	Values []gossip.Value

	Pace Pace // the zero value stands for DefaultPace

	hooks
}

// hooks are for tests.
type hooks struct {
	lose func() bool // nothing arrives at other nodes while it says so
}

// BucketDefaults are the properties of a bucket that nobody created.
type BucketDefaults struct {
	Resolution, PPF, TTL int64
}

// Pace says how fast a node notices and repeats.
type Pace struct {
	Tick    time.Duration // how often the protocol looks at the time
	Timeout time.Duration // of a batch and a read
	Resend  time.Duration // what was not answered is sent again after this
	Compare time.Duration // between comparisons with other copies
	// points are at least so old where a read that meets another in a copy has it repaired
	Repair    time.Duration
	Heartbeat time.Duration // of gossip
	Silence   time.Duration // without a sign of life a node is down after this
	Redial    time.Duration // the first wait after a connection that failed
	Drop      time.Duration // what others own is kept after all of them have it
	// points a second that comparisons exchange at most; 0: some hundred thousand
	MoveRate int
	// after a start a node waits at most this long for the others before it serves
	Patience time.Duration
}

// DefaultPace is for networks of machines.
func DefaultPace() Pace {
	return Pace{Tick: 100 * time.Millisecond, Timeout: 10 * time.Second, Resend: time.Second,
		Compare: 10 * time.Second, Repair: 15 * time.Second,
		Heartbeat: time.Second, Silence: 5 * time.Second, Redial: 200 * time.Millisecond,
		Patience: 5 * time.Second, Drop: 15 * time.Minute}
}

// complete fills in what was left out.
func (o *Options) complete() {
	if o.Pace == (Pace{}) {
		o.Pace = DefaultPace()
	}
	if o.Memory == nil {
		o.Memory = memory.New(0, o.Now, nil)
	}
	if o.lose == nil {
		o.lose = func() bool { return false }
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
}

// check refuses options with which a node would not work, or would be open to everybody (rule 10).
func (o *Options) check() error {
	for _, at := range []string{o.Listen, o.Gossip} {
		if err := certs.CheckListen(at, o.TLS != nil, o.Cookie != ""); err != nil {
			return err
		}
	}
	switch {
	case o.Name == "":
		return errors.New("a node of a cluster needs a name: set nodename")
	case o.Cookie != "" && len(o.Cookie) < minCookie:
		return errors.New("distributed_cookie is too short: give at least 16 random characters, the " +
			"same on all nodes")
	case !o.Store.Intake().Durable():
		return errors.New("wal.sync = off does not go with a cluster, whose copies are on disk before " +
			"they count: set it to interval or always")
	}
	return nil
}

// noCookie stands for the cookie of nodes that have none. They can be reached from their own
// machine only.
const noCookie = "nodes on one machine that were given no cookie"

// cookie returns the cookie as gossip takes it, and as connections do.
func (o *Options) cookie() (text string, key []byte) {
	if text = o.Cookie; text == "" {
		text = noCookie
	}
	sum := sha256.Sum256([]byte("dalmatiner peer\x00" + text))
	return text, sum[:]
}
