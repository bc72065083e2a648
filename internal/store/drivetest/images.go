package drivetest

import (
	"context"
	"dalmatiner/internal/store/deletion"
	"time"
)

// FlushToMerge flushes a window of the bucket "a" that is closed then, in two parts, and returns
// the segment of the first. pass moves the clock on, and the store follows.
func FlushToMerge(t TB, s Store, pass func(time.Duration)) (first string) {
	t.Helper()
	pass(time.Hour)
	SendNoise(t, s, "a", Epoch, Epoch+720)
	first = Flush(t, s)
	SendNoise(t, s, "a", Epoch+720, Epoch+1440)
	pass(12 * time.Hour)
	SendNoise(t, s, "a", Epoch+12*3600, Epoch+12*3600+1)
	Flush(t, s)
	return first
}

// FillMerged leaves a store with windows and overlays. They were named by edits that others follow,
// and their sources are gone. The first series of the bucket "deleted" was deleted, and the bucket
// "gone" as a whole. The store must have been opened to flush and merge by hand.
func FillMerged(t TB, s Store, pass func(time.Duration)) {
	t.Helper()
	FlushToMerge(t, s, pass)
	if r, err := s.Merge(context.Background()); err != nil || r.Removed == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	SendNoise(t, s, "deleted", Epoch, Epoch+30)
	SendNoise(t, s, "gone", Epoch, Epoch+30)
	Flush(t, s)
	if _, err := s.DeleteSeries(context.Background(), "deleted", deletion.Choice{Key: Key(0)},
		false); err != nil {
		t.Fatalf("%v", err)
	}
	if err := s.DeleteBucket("gone"); err != nil {
		t.Fatalf("%v", err)
	}
	for i := range int64(30) { // edits enough that 4 KiB are a part of the MANIFEST
		SendNoise(t, s, "a", Epoch+12*3600+1+i, Epoch+12*3600+2+i)
		Flush(t, s)
	}
}
