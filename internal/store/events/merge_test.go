package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
)

// fourFiles returns a node with files of about one size, whose merge takes several steps.
func fourFiles(t *testing.T) *node {
	n := newNode(t, buckets.Info{Name: "a"})
	for file := range mergeFiles {
		var list []Event
		for i := range 50_000 {
			list = append(list, Event{Time: now - 1e9 + int64(i*mergeFiles+file), Body: []byte("body")})
		}
		n.write("a", list)
		n.flush(false)
	}
	return n
}

func (n *node) onDisk() int {
	names, err := n.fs.List("events")
	if err != nil {
		n.t.Fatal(err)
	}
	return len(names)
}

// TestAMergeYields: a merge asks whether it has to make way, has its memory counted, and what ends
// a pause ends the merge without a trace.
func TestAMergeYields(t *testing.T) {
	n := fourFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	held := int64(0)
	n.yields = func(bool) bool {
		held = max(held, n.s.Merger.Bytes())
		cancel()
		return true
	}
	if err := n.s.Merger.Merge(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the merge ends with %v", err)
	}
	if held < mergeFiles*4096 || held > 64<<20 {
		t.Errorf("%d bytes are counted while it runs", held)
	}
	if got := n.s.Merger.Bytes(); got != 0 {
		t.Errorf("%d bytes are counted behind it", got)
	}
	if len(n.files) != mergeFiles || n.onDisk() != mergeFiles {
		t.Errorf("%d files count and %d are there", len(n.files), n.onDisk())
	}
	n.yields = nil
	n.merge()
	if got, _ := n.read("a", 0, now); len(n.files) != 1 || n.onDisk() != 1 ||
		len(got) != mergeFiles*50_000 {
		t.Errorf("%d files, %d on disk, %d events", len(n.files), n.onDisk(), len(got))
	}
}

// TestAStoppedMerge leaves everything as it was.
func TestAStoppedMerge(t *testing.T) {
	n := fourFiles(t)
	n.stopped = true
	n.merge()
	if err := n.s.Merger.merge(t.Context(), n.s.files); err != nil {
		t.Errorf("a merge that is stopped under way is no failure: %v", err)
	}
	if len(n.files) != mergeFiles || n.onDisk() != mergeFiles || n.s.Stats().Merges != 0 {
		t.Errorf("%d files count, %d are there, %d merges", len(n.files), n.onDisk(), n.s.Stats().Merges)
	}
}

// TestWhatIsMerged: four are merged, three are not, and what is as large as half of the
// largest file stays alone.
func TestWhatIsMerged(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	for i := range mergeFiles - 1 {
		n.write("a", spread(10, now-int64(i)*1e6, 1))
		n.flush(false)
	}
	n.merge()
	if len(n.files) != mergeFiles-1 {
		t.Fatalf("%d files", len(n.files))
	}
	n.write("a", spread(6000, now-1e9, 1))
	n.flush(false)
	var large uint64
	for _, f := range n.files {
		if f.Bytes >= n.s.o.MaxFile/2 {
			large = f.Seq
		}
	}
	if large == 0 {
		t.Fatalf("no file is large: %+v", n.files)
	}
	n.write("a", spread(10, now-2e9, 1))
	n.flush(false)
	n.merge()
	if _, ok := n.files[large]; !ok || len(n.files) != 2 {
		t.Errorf("%d files, the large one is there: %v", len(n.files), ok)
	}
	if _, err := n.fs.Stat(eventfile.Path(large)); err != nil {
		t.Error(err)
	}
}

// TestReadsLeaseTheirMemory: what a read holds of files is lent and given back, and a read that
// gets none says so and gives nothing wrong.
func TestReadsLeaseTheirMemory(t *testing.T) {
	n := fourFiles(t)
	budget := memory.New(1<<30, time.Now, nil)
	n.s.o.Memory = budget.NewLeases(memory.LeaseOptions{Name: "event-reads", Limit: 4 * blockMemory,
		Small: 1 << 30})
	most := int64(0)
	used := func() int64 {
		for _, p := range budget.Pools() {
			if p.Name == "event-reads" {
				return p.Use
			}
		}
		return -1
	}
	count := 0
	_, err := n.s.Read(t.Context(), "a", 0, now, func(*Event) error {
		count++
		if count%1000 == 0 {
			most = max(most, used())
		}
		return nil
	})
	if err != nil || count != mergeFiles*50_000 || most != 4*blockMemory || used() != 0 {
		t.Fatalf("%d events, %v; %d bytes lent at most, %d behind it", count, err, most, used())
	}
	n.s.o.Memory = budget.NewLeases(memory.LeaseOptions{Name: "event-reads", Limit: 3 * blockMemory,
		Small: 1 << 30})
	for _, read := range []func(context.Context, string, int64, int64, func(*Event) error) ([]Gap,
		error){n.s.Read, n.s.ReadBack} {
		_, err = read(t.Context(), "a", 0, now, func(*Event) error { return nil })
		if refusal := (*memory.Refusal)(nil); !errors.As(err, &refusal) || used() != 0 {
			t.Fatalf("too little memory gives %v; %d bytes are lent", err, used())
		}
	}
}

// TestReadsAreAwaitedWithTheirClient: a client that stands still in the middle of a read is cut off
// when another read needs its memory.
func TestReadsAreAwaitedWithTheirClient(t *testing.T) {
	n := fourFiles(t)
	clock := time.Unix(1000, 0)
	budget := memory.New(1<<30, func() time.Time { return clock }, nil)
	n.s.o.Memory = budget.NewLeases(memory.LeaseOptions{Name: "event-reads", Limit: 4 * blockMemory,
		Small: 1 << 30})
	client := budget.NewLeases(memory.LeaseOptions{Name: "queries", Limit: 1, Small: 1}).Lease()
	defer client.Release()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	cut := errors.New("cut off")
	_, err := n.s.Read(client.WithContext(t.Context()), "a", 0, now, func(*Event) (err error) {
		client.Await(func(memory.CutReason) { err = cut })
		defer client.Resume()
		clock = clock.Add(time.Minute)
		if err := n.s.o.Memory.Lease().GrowWhenFree(gone, 4*blockMemory); !errors.Is(err,
			context.Canceled) {
			t.Fatalf("another read gets %v", err)
		}
		return err
	})
	if !errors.Is(err, cut) || n.s.o.Memory.Counts().CutPressure != 1 {
		t.Errorf("the read gives %v; %+v", err, n.s.o.Memory.Counts())
	}
}
