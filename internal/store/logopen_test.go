package store

import (
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/testkit/filetest"
)

// TestAFlushNotesTheOpenBlocksThatItLeaves: a group ahead has slots flushed that lie above the open
// block of another group of the bucket. Damage takes the record that wrote the last value there.
func TestAFlushNotesTheOpenBlocksThatItLeaves(t *testing.T) {
	t.Parallel()
	w := newLogEnd(t)
	const ahead, slot = 1000, logEndNow + 10
	send := func(series, slot int64) {
		w.t.Helper()
		x := mustSession(w.t, w.s, "a")
		defer x.Close()
		w.next++
		w.last[[2]int64{series, slot}] = point.FromInt(w.next)
		x.Point(key(int(series)), uint64(slot), point.FromInt(w.next))
		w.done(x)
	}
	for series := int64(3); series <= ahead; series++ { // the last ones are of another group
		send(series, logEndNow)
	}
	mustFlush(t, w.s)
	send(1, slot)
	w.commit()
	path := w.newest()
	older := filetest.Read(t, w.o.FS, path)
	send(1, slot)
	for at := int64(slot); at < slot+280; at++ {
		send(ahead, at)
	}
	if err := w.s.flusher.Sealed(); err != nil {
		t.Fatal(err)
	}
	w.commit()
	w.s.Crash()
	w.put(path, older)
	w.lost("open block", logEndNow)
}
