package replica

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// The larger value stays, whatever comes first; with one copy the last one does.
func TestRuleOne(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	id := n.series(n.bucket(t, "b", false), 1)
	p := partitionOf(id)
	write := func(number uint64, want replication.Counts, rows ...replication.Row) {
		t.Helper()
		got, _, err := n.Write(key(number, p), replication.Change{Partition: p, Rows: rows})
		if err != nil || got != want {
			t.Fatalf("%+v, want %+v: %v", got, want, err)
		}
	}
	holds := func(slot uint64, want int64) {
		t.Helper()
		if got := n.Read(id, slot, slot+1)[0]; got != (replication.Slot{
			Value: row(id, slot, want).Value}) {
			t.Fatalf("slot %d holds %+v, want %d", slot, got, want)
		}
	}
	write(1, replication.Counts{Accepted: 1}, row(id, today, 5))
	write(2, replication.Counts{Conflicting: 1}, row(id, today, 3))
	holds(today, 5)
	write(3, replication.Counts{Conflicting: 1, Duplicate: 2, Accepted: 1}, row(id, today, 5),
		row(id, today, 7), row(id, today-720, 1), row(id, today, 7))
	holds(today, 7)
	if _, err := n.Merge(replication.Change{
		Rows: []replication.Row{row(id, today, 6), row(id, today-720, 2)}}); err != nil {
		t.Fatal(err)
	}
	holds(today, 7)
	holds(today-720, 2)
	n.copies = 1
	write(4, replication.Counts{Conflicting: 1}, row(id, today, 4))
	holds(today, 4)
	if got, _, ok := n.PriorResult(key(3, p)); !ok || got.Duplicate != 2 {
		t.Fatalf("%+v %t", got, ok)
	}
}

// What no store takes is left out and counted, and hides nothing of the rest.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	info := n.bucket(t, "b", false)
	if err := n.store.SetTTL("b", 3600); err != nil {
		t.Fatal(err)
	}
	id := n.series(info, 1)
	wrong := row(id, today, 0)
	wrong.Value.Word = 3 << 56
	rows := []replication.Row{row(id, today, 1), row(id, today-3601, 1), wrong,
		{Series: id, Slot: today + 1}}
	counts, at, err := n.Write(key(1, 0), replication.Change{Rows: rows})
	if err != nil || counts.Accepted != len(rows) {
		t.Fatalf("%+v %v", counts, err)
	}
	n.durable(t, at)
	if s := n.Stats(); s.Expired != 1 || s.Gone != 0 || s.Refused != 2 {
		t.Errorf("%+v", s)
	}
	if got := n.Chunk(replication.ChunkID{Series: id, Number: today / 720}); got.Points != 1 {
		t.Errorf("%+v", got)
	}
	if _, _, err := n.Write(key(2, 0),
		replication.Change{Rows: []replication.Row{row(metric.SeriesID{9}, 1, 1)}}); !errors.Is(err,
		ErrUnnamed) {
		t.Error(err)
	}
}

// A store without room refuses a write as a whole: it is not seen, and no copy counts.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, reason := range []account.Reason{account.DiskFull, account.Overload, account.Memory,
		account.SeriesLimit} {
		n := newNode(t, func(o *Options) { o.Points = refusingPoints{o.Points, reason} })
		id := n.series(n.bucket(t, "b", false), 1)
		if _, _, err := n.Write(key(1, 0),
			replication.Change{Rows: []replication.Row{row(id, today, 1)}}); !errors.Is(err,
			replication.ErrFull) {
			t.Errorf("%v: %v", reason, err)
		}
		if _, err := n.Merge(replication.Change{Rows: []replication.Row{row(id, today, 1)}}); !errors.Is(
			err, replication.ErrFull) {
			t.Errorf("%v: %v", reason, err)
		}
		if _, _, ok := n.PriorResult(key(1, 0)); ok {
			t.Error("a write that was refused was seen")
		}
		n.stop(t)
	}
}

// refusingPoints refuses the points of all streams.
type refusingPoints struct {
	Points
	reason account.Reason
}

type refusingStream struct {
	write.Stream
	n      uint64
	reason account.Reason
	report func(write.Token, account.Counts)
}

func (p refusingPoints) Open(b buckets.Info, how write.Options) (write.Stream, error) {
	s, err := p.Points.Open(b, how)
	return &refusingStream{s, 0, p.reason, how.Report}, err
}

func (s *refusingStream) Append(points []write.Point) { s.n += uint64(len(points)) }

func (s *refusingStream) Commit() (write.Token, error) {
	c := account.Counts{}
	c.Refused[s.reason], s.n = s.n, 0
	s.report(write.Token{}, c)
	return write.Token{}, nil
}

// Where the disk is full nothing is taken that the log would need room for.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	n := newNode(t, func(o *Options) {
		o.FS, o.MinFree, o.MaxHintBytes = mayBeFull{o.FS, &full}, 1, 1<<30
	})
	defer n.stop(t)
	full.Store(true)
	id := n.series(n.bucket(t, "b", false), 1)
	rows := make([]replication.Row, 4096)
	for i := range rows {
		rows[i] = row(id, today, int64(i))
	}
	var err error
	for number := uint64(1); err == nil && number < 10_000; number++ {
		_, err = n.KeepHint(key(number, 0),
			replication.Hint{Number: number, Change: replication.Change{Rows: rows}})
	}
	if !errors.Is(err, replication.ErrFull) || n.log.Stats().Room <= 0 {
		t.Errorf("%v with room for %d bytes", err, n.log.Stats().Room)
	}
	if _, _, err := n.Write(key(10_000, 0), replication.Change{Rows: rows[:1]}); !errors.Is(err,
		replication.ErrFull) {
		t.Error(err)
	}
}

// Hints outlive a crash with their names, those that were delivered do not, and one old hint does
// not keep the log.
func TestHintsOutliveACrash(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *Options) { o.LogFile = 2 << 10 })
	defer func() { n.stop(t) }()
	n.slack = 1 << 10
	info := n.bucket(t, "b", false)
	far := info
	far.ID = 77 // this node has no such bucket
	id := n.series(far, 1)
	var at replication.Position
	var err error
	for i := range uint64(50) {
		h := replication.Hint{Number: i + 1, For: ring.ID{3},
			Change: replication.Change{Partition: 1, Rows: []replication.Row{row(id, today+i%3, int64(i))}}}
		k := key(i+1, 1)
		k.For = h.For
		if at, err = n.KeepHint(k, h); err != nil {
			t.Fatal(err)
		}
		if i != 7 && i != 49 {
			n.DropHint(i + 1)
		}
		if n.Settle(k.Batch, i) {
			t.Fatal("a new batch is old")
		}
		n.durable(t, at)
	}
	check := func() {
		t.Helper()
		if list := n.Hints(); len(list) != 2 || list[0].Number != 8 || list[0].For != (ring.ID{3}) ||
			list[1].Partition != 1 {
			t.Fatalf("%+v", list)
		}
		if c, ok := n.Hint(8); !ok || len(c.Rows) != 1 || c.Rows[0] != row(id, today+1, 7) {
			t.Fatalf("%+v", c)
		}
		if rows := n.HintRows(id, today+1, today+2); len(rows) != 2 ||
			len(n.HintRows(id, today+2, today+9)) != 0 {
			t.Fatalf("%+v", rows)
		}
		if bucket, key, ok := n.Name(id); !ok || bucket != 77 || metric.Series(77, key) != id {
			t.Errorf("the name of a series of a hint is %d %q", bucket, key)
		}
		for i := range uint64(50) {
			k := key(i+1, 1)
			k.For = ring.ID{3}
			if _, _, ok := n.PriorResult(k); ok != (i+1 >= 49) {
				t.Errorf("batch %d is seen: %t", i+1, ok)
			}
		}
	}
	check()
	if size := n.Stats().LogBytes; size > 8<<10 {
		t.Errorf("the log has %d bytes", size)
	}
	boot := n.Boot()
	n.crash(t, vfs.CrashCloneCfg{})
	check()
	if n.Boot() <= boot {
		t.Errorf("start %d behind %d", n.Boot(), boot)
	}
	n.DropHint(8)
	n.DropHint(50)
	if s := n.Stats(); s.Hints != 0 || s.HintBytes != 0 || len(n.hints.names.of) != 0 ||
		n.hints.log != 0 {
		t.Errorf("%+v", s)
	}
}

// Hints have a limit of bytes.
func TestHintsAreBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *Options) { o.MaxHintBytes = 2000 })
	defer n.stop(t)
	id := n.series(n.bucket(t, "b", false), 1)
	keep := func(number uint64) error {
		_, err := n.KeepHint(key(number, 0),
			replication.Hint{Number: number,
				Change: replication.Change{Rows: []replication.Row{row(id, today, 1)}}})
		return err
	}
	number := uint64(1)
	for ; keep(number) == nil; number++ {
	}
	if err := keep(number); number < 3 || number > 9 || !errors.Is(err, replication.ErrFull) {
		t.Fatalf("%d: %v", number, err)
	}
	if _, _, ok := n.PriorResult(key(number, 0)); ok {
		t.Error("a hint that was refused was seen")
	}
	n.DropHint(1)
	if err := keep(number); err != nil {
		t.Error(err)
	}
}

// Copies that were written in different orders have the same digests, and others have not.
func TestCopiesHaveTheSameDigests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := newNode(t, nil), newNode(t, nil)
		defer a.stop(t)
		defer b.stop(t)
		var rows []replication.Row
		for _, n := range []*node{a, b} {
			plain, pairs := n.bucket(t, "plain", false), n.bucket(t, "pairs", true)
			for i := range 4 {
				n.series(plain, i)
				n.series(pairs, i)
			}
			if n == b {
				continue
			}
			for i := range rapid.IntRange(1, 30).Draw(t, "rows") {
				r := row(n.series(plain, i%4), today-uint64(rapid.IntRange(0, 3).Draw(t, "slot"))*719,
					rapid.Int64Range(1, 9).Draw(t, "value"))
				if i%3 == 0 {
					r.Series, r.Value.Time = n.series(pairs, i%4),
						point.FromInt(rapid.Int64Range(-9, 9).Draw(t, "timestamp"))
				}
				rows = append(rows, r)
			}
		}
		merge := func(n *node, rows []replication.Row) {
			for part := range slices.Chunk(rows, rapid.IntRange(1, 9).Draw(t, "at once")) {
				if _, err := n.Merge(replication.Change{Rows: part}); err != nil {
					t.Fatal(err)
				}
			}
		}
		merge(a, rows)
		merge(b, rapid.Permutation(rows).Draw(t, "order"))
		if rapid.Bool().Draw(t, "flushed") {
			if _, err := b.store.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		other := rapid.SampledFrom(rows).Draw(t, "changed")
		for partition := range partitions {
			if x, y := a.Windows(replication.Share{Partition: partition}),
				b.Windows(replication.Share{Partition: partition}); !slices.Equal(x, y) {
				t.Fatalf("%+v and %+v", x, y)
			}
		}
		other.Value.Word = point.FromInt(10)
		merge(b, []replication.Row{other})
		for partition := range partitions {
			x, y := a.Windows(replication.Share{Partition: partition}),
				b.Windows(replication.Share{Partition: partition})
			if same := slices.Equal(x, y); same == (partition == partitionOf(other.Series)) {
				t.Fatalf("partition %d is equal: %t", partition, same)
			}
		}
	})
}

// What expires leaves the digests when it does, also where nothing is written.
func TestExpiredChunksAreNotCompared(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	info := n.bucket(t, "b", false)
	if err := n.store.SetTTL("b", 2*86_400); err != nil {
		t.Fatal(err)
	}
	id := n.series(info, 1)
	var rows []replication.Row
	for i := range uint64(200) {
		rows = append(rows, row(id, today-i*720, int64(i)))
	}
	if _, err := n.Merge(replication.Change{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	sum := func() (chunks int) {
		t.Helper()
		for _, w := range n.Windows(replication.Share{Partition: partitionOf(id)}) {
			list, _ := n.Chunks(replication.Share{Partition: partitionOf(id)}, w.Number, metric.SeriesID{},
				1000)
			var digest uint64
			for _, c := range list {
				digest += c.Digest
			}
			if digest != w.Digest {
				t.Fatalf("window %d has %x, its chunks %x", w.Number, w.Digest, digest)
			}
			chunks += len(list)
		}
		return chunks
	}
	before := sum()
	if before != 200 {
		t.Fatalf("%d chunks", before)
	}
	for range 30 {
		n.now.Add(3 * 720)
		time := n.time()
		if err := waitFor(func() bool { return n.store.Now().Equal(time) }); err != nil {
			t.Fatal(err)
		}
		after := sum()
		if after > before || before-after > 3 {
			t.Fatalf("%d chunks, then %d", before, after)
		}
		before = after
	}
	if before > 160 {
		t.Errorf("%d chunks never expire", before)
	}
}

// A deletion is forgotten with the store's memory of it: told to others later, it would delete what
// they have of the series since. The series of which there is something keeps its incarnation.
func TestDeletionsAreForgottenWithTheStore(t *testing.T) {
	n := newNode(t, nil)
	defer func() { n.stop(t) }()
	info := n.bucket(t, "b", false)
	gone, back := n.series(info, 1), n.series(info, 2)
	clock := uint64(n.time().UnixNano())
	_, err := n.Merge(replication.Change{
		Deletions: []replication.Deletion{{Series: gone, Incarnation: clock},
			{Series: back, Incarnation: clock + 1}}})
	if err != nil {
		t.Fatal(err)
	}
	r := row(back, today, 1)
	r.Incarnation = clock + 1
	at, err := n.Merge(replication.Change{Rows: []replication.Row{r}})
	if err != nil {
		t.Fatal(err)
	}
	n.durable(t, at)
	if _, err := n.store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Windows(replication.Share{Partition: 0})
	if len(n.Deletions(-1)) != 2 {
		t.Fatalf("%+v", n.Deletions(-1))
	}
	n.now.Add(int64((incarnation.TTL + 3*time.Hour) / time.Second))
	for i := range 3 { // tombstones go first, then the memory of them
		err := waitFor(func() bool { return n.store.Now().Unix() == n.now.Load() })
		if err == nil {
			_, err = n.Merge(replication.Change{
				Rows: []replication.Row{row(n.series(info, 3), uint64(n.now.Load())+uint64(i), 1)}})
		}
		if err == nil {
			_, err = n.store.Flush(t.Context())
		}
		if err == nil {
			_, err = n.store.Merge(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n.now.Add(int64(forgetEvery / time.Second))
	n.Windows(replication.Share{Partition: 0})
	if list := n.Deletions(-1); len(list) != 1 || list[0].Series != back || n.Incarnation(gone) != 0 {
		t.Errorf("%+v is remembered, and %d of the one that is gone", list, n.Incarnation(gone))
	}
}
