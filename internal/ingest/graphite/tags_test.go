package graphite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
)

// tagged returns the series that a metric and a condition find in the collection of the bucket.
func (f *fixture) tagged(name string, where *tags.Cond) (list []string) {
	f.t.Helper()
	q := tags.Query{Collection: []byte(defaultBucket), Where: where}
	if name != "" {
		key, err := metric.ParseText(name)
		if err != nil {
			f.t.Fatal(err)
		}
		q.Metric = key
	}
	_, err := f.store.Tags().Index().Lookup(context.Background(), &q, func(h *tags.Hit) bool {
		list = append(list, metric.Text(h.Key))
		return true
	})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func is(tag, value string) *tags.Cond {
	return &tags.Cond{Op: tags.Equal, Tag: tags.TagName{Name: []byte(tag)}, Value: []byte(value)}
}

func (f *fixture) same(got []string, want ...string) {
	f.t.Helper()
	if !slices.Equal(got, want) {
		f.t.Errorf("got %q, want %q", got, want)
	}
}

// changes waits until so many series have changed their tags since the start.
func (f *fixture) changes(n int64) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d changes of tags", n), func() bool {
		return f.store.Tags().Stats().Changes == n
	})
}

func TestTagsOfAllThreeProtocols(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now().Unix()
	f.send(f.dial("tcp", f.text),
		fmt.Sprintf("a.b;role=web;dc=eu 1 %d\na.b;dc=us;role=web 2 %d\na.b 3 %d\nbad;dc 1 "+
			"%d\nbad;dc=1;dc=2 1 %d\n", now, now, now, now, now))
	f.send(f.dial("udp", f.udp), fmt.Sprintf("a.c;dc=eu 4 %d\n", now))
	f.send(f.dial("tcp", f.pickle),
		framed(string(append(appendEntry([]byte("\x80\x02]("), "a.d;dc=eu;x=a=b;c", int32(now), 5),
			"e."...))))
	f.send(f.dial("tcp", f.pickle),
		framed(string(append(appendEntry([]byte("\x80\x02]("), "a.d;dc=eu;x=a=b", int32(now), 5),
			"e."...))))
	f.eventually("five points", func() bool { c := f.counts(); return c.Accepted == 5 })
	f.changes(4)
	f.same(f.tagged("", is("dc", "eu")), "'a'.'b'.'dc=eu'.'role=web'", "'a'.'c'.'dc=eu'",
		"'a'.'d'.'dc=eu'.'x=a=b'")
	f.same(f.tagged("a.b", nil), "'a'.'b'.'dc=eu'.'role=web'", "'a'.'b'.'dc=us'.'role=web'")
	f.same(f.tagged("a.b", is("role", "web")), "'a'.'b'.'dc=eu'.'role=web'",
		"'a'.'b'.'dc=us'.'role=web'")
	f.same(f.tagged("a.d", is("x", "a=b")), "'a'.'d'.'dc=eu'.'x=a=b'")
	if f.refused(badTag) != 2 || f.refused(duplicateTag) != 1 {
		t.Errorf("refused: %v", f.store.Account().Requests())
	}
}

// A series gets its tags once: not with every point, not by every connection, and not again after
// a restart.
func TestTagsAreWrittenOnce(t *testing.T) {
	fs := vfs.NewMem()
	for life := range 2 {
		t.Run(fmt.Sprint("life ", life), func(t *testing.T) {
			f := newFixture(t, func(so *store.Options, _ *Options) { so.FS, so.WALSync = fs, wal.Always })
			for connection := range 3 {
				c := f.dial("tcp", f.text)
				for range 5 {
					f.send(c, strings.Repeat("a;dc=eu 1 -1\nb;dc=us 1 -1\n", 100))
				}
				f.eventually("the points are there", func() bool {
					c := f.counts()
					return c.ReceivedPoints() == uint64(1000*(3*life+connection+1))
				})
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			f.eventually("the connections are closed", func() bool {
				return f.srv.Connections().Open() == 0
			})
			st := f.store.Tags().Stats()
			if want := int64(2 - 2*life); st.Changes != want || life > 0 && st.Unflushed != 0 {
				t.Errorf("%d changes of tags were written, want %d; %d bytes wait for a flush", st.Changes,
					want, st.Unflushed)
			}
			f.same(f.tagged("", is("dc", "eu")), "'a'.'dc=eu'")
		})
	}
}

// What an operator says of a series stays, and a series that comes back gets its tags again.
func TestTagsOfDeletedSeriesComeBack(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("tcp", f.text)
	f.send(c, "a;dc=eu 1 -1\n")
	f.changes(1)
	info, err := f.store.BucketByName(defaultBucket)
	if err != nil {
		t.Fatal(err)
	}
	key, err := metric.Key("a", "dc=eu")
	if err != nil {
		t.Fatal(err)
	}
	change := tags.Change{Bucket: info.ID, Key: key, Collection: []byte(defaultBucket),
		Removed: []tags.TagName{{Name: []byte("dc")}}}
	if _, err := f.store.Tags().Apply(t.Context(), []tags.Change{change}); err != nil {
		t.Fatal(err)
	}
	f.send(f.dial("tcp", f.text), "a;dc=eu 2 -1\nb;dc=eu 1 -1\n")
	f.changes(3)
	f.same(f.tagged("", is("dc", "eu")), "'b'.'dc=eu'")
	if _, err := f.store.DeleteSeries(t.Context(), defaultBucket, deletion.Choice{Key: key},
		false); err != nil {
		t.Fatal(err)
	}
	f.send(c, "a;dc=eu 3 -1\n")
	f.changes(4)
	f.same(f.tagged("", is("dc", "eu")), "'a'.'dc=eu'", "'b'.'dc=eu'")
}

// failing is a Tagger that cannot store for a while.
type failing struct {
	mu   sync.Mutex
	err  error
	want []string // keys that were given
}

func (f *failing) Tag(_ context.Context, list []tags.Change,
	_ bool) (out write.TagResult, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return out, f.err
	}
	for i := range list {
		f.want = append(f.want, metric.Text(list[i].Key))
	}
	return write.TagResult{Refused: 1, Why: tags.ErrLimit}, nil
}

func (f *failing) TagLosses() uint64 { return 0 }

func (f *failing) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Tags that cannot be stored are counted, lose no point, and are given again later.
func TestTagsThatCannotBeStored(t *testing.T) {
	to := &failing{}
	var later atomic.Int64 // than the clock
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	f := newFixture(t, func(_ *store.Options, o *Options) { o.Tags, o.Now = to, now })
	endPause := func() { later.Add(int64(2 * time.Second)) }
	c := f.dial("tcp", f.text)
	points := uint64(0)
	for reason, err := range map[string]error{
		"disk_full": fmt.Errorf("x: %w", write.ErrDiskFull), "memory": &memory.Refusal{},
		"held_back": write.ErrHeldBack,
	} {
		endPause()
		to.set(err)
		f.send(c, "a;dc=eu 1 -1\n")
		f.eventually("tags are refused for "+reason, func() bool {
			return f.store.Account().Requests()["graphite_tags_"+reason] == 1
		})
		points++
		f.send(c, "a;dc=eu 1 -1\n") // in the pause nothing is tried
		points++
		f.eventually("the points are stored", func() bool {
			c := f.counts()
			return c.ReceivedPoints() == points
		})
	}
	to.set(nil)
	endPause()
	f.send(c, "a;dc=eu 1 -1\na;dc=eu 2 -1\n")
	f.eventually("the tags are given, and refused for good", func() bool {
		return f.store.Account().Requests()["graphite_tags_limit"] == 1
	})
	f.send(c, "a;dc=eu 3 -1\nb 1 -1\n")
	f.eventually("all points are there", func() bool {
		c := f.counts()
		return c.ReceivedPoints() == points+4
	})
	if got := f.store.Account().Requests()["graphite_tags_limit"]; got != 1 ||
		f.refused(malformed) != 0 {
		t.Errorf("tags were refused %d times", got)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	f.same(to.want, "'a'.'dc=eu'")
}

// A Tagger that can store nothing any more ends the connection, as points do.
func TestATaggerThatHasFailed(t *testing.T) {
	to := &failing{err: errors.New("fsync: input/output error")}
	f := newFixture(t, func(_ *store.Options, o *Options) { o.Tags = to })
	c := f.dial("tcp", f.text)
	f.send(c, "a;dc=eu 1 -1\n")
	// before it, no connection may be open yet
	f.eventually("the point is stored",
		func() bool { c := f.counts(); return c.ReceivedPoints() == 1 })
	f.eventually("the connection is closed", func() bool { return f.srv.Connections().Open() == 0 })
	if got := f.counts(); got.Accepted != 1 {
		t.Errorf("account %+v", got)
	}
}
