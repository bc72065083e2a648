package deletion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flushtest"
	"dalmatiner/internal/testkit/golden"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// TestScripts goes through the scripts in testdata and compares what deletions do. Beside the
// commands of flushtest.World there are:
//
//	delete a/web.1            deletes a series; with a dot at the end those below a prefix
//	dry a/web.1               says what delete would do
//	expire a/web.1            deletes it as a merge does that finds nothing of it
//	slice 2                   so many series are deleted under one lock
//	max 5                     so many tombstones are kept
//	cut 2                     the next deletion is cancelled as its second slice is done
//	replay fails|works        whether the log can be read
//	replay max 5              somebody else deletes meanwhile: so many tombstones are kept from then on
//	sync                      syncs the log
//	look                      looks at the disk, as every second
//	flush                     flushes what is sealed
//	close                     the store ends
//	show                      prints which series there are, which tombstones, and the counts
func TestScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(s *golden.Script) func(string, []string) {
		w := &world{World: flushtest.New(s, flushtest.Options{}), slice: 100, max: 100, onReplay: works,
			buckets: make(map[string]*columns.Bucket)}
		w.deleter = deletion.New(deletion.Options{
			Now: w.time, Buckets: w.Buckets, Columns: w.Columns, Versions: w.Versions, Dir: w.Dir,
			Manifest: w.Manifest, Log: w.Log,
			Gate: w.Flusher.Gate(), Pressure: w.Pressure,
			Replayed: w.replay,
			Deleting: func() func(uint64, logrecord.Reason, uint64, []metric.SeriesID) {
				return func(uint64, logrecord.Reason, uint64, []metric.SeriesID) {}
			},
			Max: func() int64 { return w.max }, Slice: func() int { return w.slice },
		})
		return w.run
	})
}

func works() error { return nil }

// world is a deleter, and what it deletes from.
type world struct {
	*flushtest.World
	deleter  *deletion.Deleter
	slice    int
	max      int64
	cut      int // the slice that is the last one, 0 for none
	cancel   context.CancelFunc
	replayed int // how often the log was asked for
	onReplay func() error
	names    []string // of all series there ever were
	buckets  map[string]*columns.Bucket
}

func (w *world) replay(context.Context) error {
	w.replayed++
	return w.onReplay()
}

// time is asked once a slice.
func (w *world) time() time.Time {
	if w.cut--; w.cut == 0 {
		w.cancel()
	}
	return w.Now
}

func (w *world) run(command string, args []string) {
	w.T.Helper()
	switch command {
	case "define", "write":
		if b, _ := w.Series(args[0]); !slices.Contains(w.names, args[0]) {
			w.names, w.buckets[b.Name] = append(w.names, args[0]), b
		}
		w.Run(command, args)
	case "delete", "dry":
		w.delete(args[0], command == "dry")
	case "expire":
		b, key := w.series(args[0])
		w.Flusher.Gate().Lock()
		defer w.Flusher.Gate().Unlock()
		w.result(w.deleter.Expire(b, []metric.SeriesID{b.SeriesID(key)}))
	case "slice":
		w.slice = int(w.Number(args[0]))
	case "max":
		w.max = w.Number(args[0])
	case "cut":
		w.cut = int(w.Number(args[0]))
	case "replay":
		switch args[0] {
		case "fails":
			w.onReplay = func() error { return errors.New("the log cannot be read") }
		case "max":
			w.onReplay = func() error { w.max = w.Number(args[1]); return nil }
		default:
			w.onReplay = works
		}
	case "sync":
		w.Must(w.Log.Sync())
	case "look":
		w.Pressure.CheckDisk()
	case "flush":
		w.Must(w.Flusher.Sealed())
	case "close":
		w.Flusher.Gate().Close()
	case "show":
		w.show()
	default:
		if !w.Run(command, args) {
			w.T.Fatalf("command %q", command)
		}
	}
}

// series is that of a bucket that may be gone.
func (w *world) series(text string) (*columns.Bucket, []byte) {
	bucket, name, _ := strings.Cut(text, "/")
	return w.buckets[bucket], key(name)
}

func key(name string) (key []byte) {
	for part := range strings.SplitSeq(name, ".") {
		key = metric.AppendPart(key, part)
	}
	return key
}

func (w *world) delete(text string, dry bool) {
	bucket, name, _ := strings.Cut(text, "/")
	name, prefix := strings.CutSuffix(name, ".")
	choice := deletion.Choice{Key: key(name), Prefix: prefix}
	ctx, cancel := context.WithCancel(w.T.Context())
	defer cancel()
	w.cancel, w.replayed = cancel, 0
	end := w.Log.End()
	r, err := w.deleter.Delete(ctx, bucket, choice, dry)
	w.cut = 0
	size := "0"
	if r.Bytes > 0 {
		size = "some"
	}
	w.Printf("  %d series, in %d segments of %s bytes; asked %d times for the log\n", r.Series,
		r.Segments, size, w.replayed)
	if w.Log.End() != end {
		synced := "not synced"
		if err == nil && w.Log.Stats().Unsynced == 0 {
			synced = "synced"
		}
		w.Printf("  record %d, %s\n", w.Logged(), synced)
	}
	w.result(err)
}

func (w *world) result(err error) {
	if err != nil {
		// what of the log failed depends on when it is written
		text, _, _ := strings.Cut(err.Error(), " until a restart")
		w.Printf("  error: %s\n", text)
	}
}

func (w *world) show() {
	for _, b := range w.Buckets.All() {
		var there, deleted strings.Builder
		tombs := w.Versions.Latest().Tombstones(b.ID)
		for _, text := range w.names {
			of, key := w.series(text)
			id := of.SeriesID(key)
			if of == b && w.Columns.Index.Has(id) {
				fmt.Fprintf(&there, " %s", text)
			}
			if s, ok := tombs.Find(id); ok && of == b {
				fmt.Fprintf(&deleted, "  %s below %d by record %d, incarnation +%d\n", text, s.DeleteSequence,
					w.Record(s.LSN),
					int64(s.Incarnation)-flushtest.Epoch*int64(time.Second))
			}
		}
		w.Printf("  bucket %s:%s\n%s", b.Name, there.String(), deleted.String())
	}
	st := w.deleter.Stats()
	late := "0"
	if w.Pressure.LateBytes() != 0 {
		late = "some"
	}
	w.Printf("  deleted %d series, %d expired, %d points; %d tombstones; next segment %d; late %s\n",
		st.Series, st.Expired, st.Points, w.deleter.Tombstones(), w.Dir.NextNumber(), late)
}
