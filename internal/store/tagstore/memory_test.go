package tagstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

// While memory is short, nothing new is tagged, by line with the figures and the remedy; what is
// known is tagged again, removed, and all comes when there is memory again.
func TestTagsWhileMemoryIsShort(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	used := int64(0)
	o := options(vfs.NewMem(), clock)
	o.Memory = memory.New(1<<30, clock.Now, nil)
	o.Memory.Add(memory.Pool{Name: "test", Use: func() int64 { return atomic.LoadInt64(&used) }})
	s := storetest.Start(t, o)
	defer s.Crash()
	b := drivetest.Bucket(t, s, "b")
	drivetest.Tag(t, s, drivetest.SetTag(b, 1, "host", "a"))
	set := func(n int64) {
		atomic.StoreInt64(&used, n)
		clock.Advance(10 * time.Second)
		o.Memory.Look()
	}
	set(900 << 20)
	known, gone := drivetest.SetTag(b, 1, "host", "b"), drivetest.SetTag(b, 1, "host", "")
	gone.Set, gone.Removed = nil, []tags.TagName{known.Set[0].TagName}
	list := []tags.Change{drivetest.SetTag(b, 2, "host", "a"), drivetest.SetTag(b, 1, "dc", "eu"),
		known, gone}
	a, err := s.Tags().Apply(context.Background(), list)
	if err != nil || a.Changed != 2 || len(a.Refused) != 2 || a.Refused[0].At != 0 ||
		a.Refused[1].At != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, r := range a.Refused {
		if text := r.Err.Error(); !errors.As(r.Err, new(*memory.Refusal)) ||
			!strings.Contains(text, "of 1024 MiB") || !strings.Contains(text, "memory.limit") {
			t.Errorf("refused as %q", text)
		}
	}
	if st := s.Tags().Stats(); st.NoMemory != 2 || st.Invalid != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := (tagstore.Tagger{Of: s.Tags()}).Tag(context.Background(), list[:2],
		false); !errors.As(err, new(*memory.Refusal)) {
		t.Errorf("a protocol is told %v", err)
	}
	set(0)
	drivetest.Tag(t, s, list[:2]...)
}
