package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// bucketsValue is the name of the gossiped value that says what buckets there are.
const bucketsValue = "buckets"

// localBuckets are the buckets of the store of this node.
type localBuckets interface {
	Buckets() []buckets.Info
	BucketByName(name string) (buckets.Info, error)
	AdoptBucket(info buckets.Info, deleted uint64) (buckets.Info, error)
	DeleteBucketAt(name string, clock uint64) error
	BucketDeletions() []buckets.Deletion
	SetTTL(name string, points int64) error
}

// catalogue is what the nodes know of buckets in common. The store of each has these buckets.
type catalogue struct {
	fs     vfs.FS
	dir    string
	local  localBuckets
	logger *slog.Logger
	now    func() time.Time
	// share tells the other nodes. firm says that the node is about to hold data.
	share func(encoded []byte) error
	firm  func() error

	mu      sync.Mutex // one change at a time
	all     *replication.Buckets
	encoded []byte // of all
	kept    []byte // what is on disk
	behind  bool   // the store has not all of it: its disk was full
	applied map[string]uint64
	warned  map[uint64]bool // buckets that have no place here

	reading sync.RWMutex // guards what follows; no other lock is taken under it
	byID    map[uint64]replication.Bucket
}

// isPrivate reports whether a bucket belongs to its node alone.
func isPrivate(name string) bool { return name == SelfMetrics }

// load takes what was kept, and what the store has.
func (c *catalogue) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied, c.warned = make(map[string]uint64), make(map[uint64]bool)
	all := replication.NewBuckets()
	plain, err := readKept(c.fs, c.dir, bucketsFile)
	if err == nil && plain != nil {
		var known *replication.Buckets
		if known, err = parseBuckets(plain); err == nil {
			all, c.kept = known, plain
		}
	}
	if err != nil {
		// What the store has is enough, but for when buckets were created: that decides conflicts only.
		c.logger.Error("what was kept of the buckets of the cluster cannot be read; it is made anew "+
			"from the store", "err", err)
	}
	last := make(map[string]uint64)
	for _, d := range c.local.BucketDeletions() {
		if last[d.Name] = d.Clock; !isPrivate(d.Name) {
			all.NoteDeleted(replication.NameDeletion{Name: d.Name, Clock: d.Clock})
		}
	}
	for _, info := range c.local.Buckets() {
		of := bucketOf(info)
		of.Deleted = last[info.Name]
		if _, known := all.Get(info.ID); known || isPrivate(info.Name) {
			continue
		}
		if of.ID() != info.ID {
			c.logger.Error("a bucket cannot be shared with other nodes: its id follows from a deletion "+
				"that nobody knows; copy it to a new one",
				"bucket", info.Name)
			continue
		}
		all.Put(of)
	}
	encoded := appendBuckets(nil, all)
	err = c.keep(encoded)
	if err == nil || durable.IsFull(err) { // the store has what is new: the next start finds it again
		err = c.replaceAll(all, encoded)
	}
	if durable.IsFull(err) || errors.Is(err, write.ErrDiskFull) {
		c.logger.Error("no room for the buckets of the cluster: they are read, and brought up to date "+
			"when there is some", "err", err)
		return nil
	}
	return err
}

// replace makes all what is known: kept first, then in the store.
func (c *catalogue) replace(all *replication.Buckets) error {
	encoded := appendBuckets(nil, all)
	if err := c.keep(encoded); err != nil {
		return err
	}
	return c.replaceAll(all, encoded)
}

// keep puts what is known on disk, where it is not.
func (c *catalogue) keep(encoded []byte) error {
	if bytes.Equal(encoded, c.kept) {
		return nil
	}
	if err := keep(c.fs, c.dir, bucketsFile, encoded); err != nil {
		return fmt.Errorf("keeping the buckets of the cluster: %w", err)
	}
	c.kept = encoded
	return nil
}

// replaceAll makes all what is known, and brings the store to it.
func (c *catalogue) replaceAll(all *replication.Buckets, encoded []byte) error {
	c.all, c.encoded = all, encoded
	c.define(all)
	return c.apply()
}

// define makes what is known of buckets readable.
func (c *catalogue) define(all *replication.Buckets) {
	byID := make(map[uint64]replication.Bucket)
	for _, k := range all.All() {
		byID[k.ID()] = k
	}
	c.reading.Lock()
	c.byID = byID
	c.reading.Unlock()
}

// apply brings the store to what is known. What it could not do is done again with the next news,
// and now and then.
func (c *catalogue) apply() (errs error) {
	defer func() { c.behind = errs != nil }()
	for _, d := range c.all.Deletions() {
		if c.applied[d.Name] >= d.Clock {
			continue
		}
		if err := c.local.DeleteBucketAt(d.Name, d.Clock); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		c.applied[d.Name] = d.Clock
	}
	here := make(map[uint64]buckets.Info)
	for _, info := range c.local.Buckets() {
		here[info.ID] = info
	}
	for _, k := range c.all.All() {
		info, ok := here[k.ID()]
		if !ok {
			adopted, err := c.local.AdoptBucket(k.Info(), k.Deleted)
			if errors.Is(err, buckets.ErrExists) {
				c.conflict(k)
				continue
			}
			if err != nil {
				errs = errors.Join(errs,
					fmt.Errorf("taking bucket %s of the cluster: %w", metric.Quote(k.Name), err))
				continue
			}
			info = adopted
		}
		if info.TTL != k.Lifetime {
			errs = errors.Join(errs, c.local.SetTTL(info.Name, k.Lifetime))
		}
	}
	return errs
}

// conflict says once that a bucket has no place in the store of this node.
func (c *catalogue) conflict(k replication.Bucket) {
	if c.warned[k.ID()] {
		return
	}
	c.warned[k.ID()] = true
	names, _ := c.all.Names()
	name := k.Name
	for n, of := range names {
		if of.ID() == k.ID() {
			name = n
		}
	}
	c.logger.Warn("two buckets of one name were created on two sides of the cluster: this node has "+
		"the other one; delete it, or copy it to another name",
		"bucket", k.Name, "the_other", name, "resolution_ms", k.Resolution)
}

// learn takes what other nodes know.
func (c *catalogue) learn(o *replication.Buckets) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return err
	}
	next.Merge(o)
	if bytes.Equal(appendBuckets(nil, next), c.encoded) {
		if c.behind {
			return c.apply()
		}
		return nil
	}
	if len(next.All()) > 0 {
		if err := c.firm(); err != nil {
			return err
		}
	}
	return c.replace(next)
}

// next returns a copy to change.
func (c *catalogue) next() (*replication.Buckets, error) { return parseBuckets(c.encoded) }

// clock returns that of a change now.
func (c *catalogue) clock() uint64 { return uint64(max(c.now().UnixNano(), 1)) }

// create creates a bucket on all nodes. The error is as that of store.Store.CreateBucket.
func (c *catalogue) create(info buckets.Info) (buckets.Info, error) {
	if err := info.Validate(); err != nil {
		return buckets.Info{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.local.BucketByName(info.Name); err == nil {
		return buckets.Info{}, fmt.Errorf("%w: %s", buckets.ErrExists, metric.Quote(info.Name))
	}
	next, err := c.next()
	if err != nil {
		return buckets.Info{}, err
	}
	if info.Copies < 0 || info.Copies > ring.MaxCopies {
		return buckets.Info{},
			fmt.Errorf("%w: n of %s is %d: it is from 1 to %d, or left out for that of the ring",
				buckets.ErrInvalid, metric.Quote(info.Name), info.Copies, ring.MaxCopies)
	}
	of := next.Create(bucketOf(info), c.clock())
	if n := len(appendBuckets(nil, next)); n > maxBucketBytes/2 {
		return buckets.Info{},
			fmt.Errorf("%w: the buckets of the cluster take %d bytes of at most %d in what its nodes tell "+
				"each other; delete some",
				buckets.ErrInvalid, n, maxBucketBytes/2)
	}
	if err := c.firm(); err != nil {
		return buckets.Info{}, err
	}
	// The store before the others: it refuses where memory or the disk is short. Who finds the bucket
	// there sends points of it at once, and needs its definition.
	c.define(next)
	info, err = c.local.AdoptBucket(of.Info(), of.Deleted)
	if err != nil {
		c.define(c.all)
		return buckets.Info{}, err
	}
	info.Copies = of.Copies
	return info, c.publish(next)
}

// delete deletes a bucket on all nodes.
func (c *catalogue) delete(name string) error {
	return c.change(name, func(next *replication.Buckets, info buckets.Info) {
		next.Delete(name, c.clock())
	})
}

// setTTL sets the TTL of a bucket on all nodes, as store.Store.SetTTL.
func (c *catalogue) setTTL(name string, points int64) error {
	return c.change(name, func(next *replication.Buckets, info buckets.Info) {
		next.SetLifetime(info.ID, points, c.clock())
	})
}

func (c *catalogue) change(name string,
	of func(next *replication.Buckets, info buckets.Info)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := c.local.BucketByName(name)
	if err != nil {
		return err
	}
	next, err := c.next()
	if err != nil {
		return err
	}
	of(next, info)
	return c.publish(next)
}

// publish makes a change of this node known.
func (c *catalogue) publish(next *replication.Buckets) error {
	if err := c.replace(next); err != nil {
		return err
	}
	return c.share(c.encoded)
}

// tell tells the others what is known here: what is gossiped is in memory only.
func (c *catalogue) tell() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.share(c.encoded)
}

// setQuorum sets how many copies of a bucket answer a read, and confirm a write; 0 is the number of
// the cluster.
func (c *catalogue) setQuorum(name string, reads, writes int) error {
	return c.change(name, func(next *replication.Buckets, info buckets.Info) {
		next.SetQuorum(info.ID, reads, writes, c.clock())
	})
}

// copies returns the n of a bucket that has one of its own, else 0.
func (c *catalogue) copies(id uint64) int {
	k, _ := c.get(id)
	return k.Copies
}

// classes returns the n of all buckets that have one of their own, each once.
func (c *catalogue) classes() (list []int) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	for _, k := range c.byID {
		if k.Copies > 0 && !slices.Contains(list, k.Copies) {
			list = append(list, k.Copies)
		}
	}
	return list
}

// get returns what is known of a bucket, for those who need it.
func (c *catalogue) get(id uint64) (replication.Bucket, bool) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	k, ok := c.byID[id]
	return k, ok
}

// any reports whether there is a bucket: then this node has data.
func (c *catalogue) any() bool {
	c.reading.RLock()
	defer c.reading.RUnlock()
	return len(c.byID) > 0
}

// follow takes what has come by gossip.
func (c *catalogue) follow(encoded []byte) error {
	c.mu.Lock()
	known := len(encoded) == 0 || bytes.Equal(encoded, c.encoded) && !c.behind
	c.mu.Unlock()
	if known {
		return nil
	}
	return c.learnEncoded(encoded)
}
