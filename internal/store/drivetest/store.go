package drivetest

import (
	"context"
	"fmt"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/intake"
)

// TB is what *testing.T and *rapid.T have in common.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Store is what these functions ask of a store.
type Store interface {
	EnsureBucket(name string) (buckets.Info, error)
	BucketByName(name string) (buckets.Info, error)
	CreateBucket(info buckets.Info) (buckets.Info, error)
	Intake() *intake.Intake
	Flush(ctx context.Context) (flush.Result, error)
	ReadWithStale(ctx context.Context, info buckets.Info, key []byte, from int64,
		dst, timestamps []uint64) error
	Buckets() []buckets.Info
	Tags() *tagstore.Store
	Account() *account.Account
	Merge(ctx context.Context) (compaction.Result, error)
	DeleteBucket(name string) error
	DeleteSeries(ctx context.Context, bucket string, choice deletion.Choice,
		dryRun bool) (deletion.Result, error)
}

// Session starts a session that keeps stale markers, for a bucket that need not be there.
func Session(t TB, s Store, bucket string) *intake.Session {
	t.Helper()
	return SessionWith(t, s, bucket, write.Options{Stale: true})
}

// SessionWith is Session with other options.
func SessionWith(t TB, s Store, bucket string, how write.Options) *intake.Session {
	t.Helper()
	info, err := s.EnsureBucket(bucket)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	x, err := s.Intake().NewSession(info, how)
	if err != nil {
		t.Fatalf("session: %v", err)
	}
	return x
}

// Key returns the key of the series of a number.
func Key(i int) []byte {
	k, err := metric.Key("series", fmt.Sprint(i))
	if err != nil {
		panic(err)
	}
	return k
}

// Words returns n words of a series from a slot on, with stale markers.
func Words(t TB, s Store, bucket string, series int, from int64, n int) []uint64 {
	t.Helper()
	info, err := s.BucketByName(bucket)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	dst := make([]uint64, n)
	if err := s.ReadWithStale(context.Background(), info, Key(series), from, dst, nil); err != nil {
		t.Fatalf("read: %v", err)
	}
	return dst
}

// Flush flushes and returns the segment that was written, "" for none.
func Flush(t TB, s Store) (segment string) {
	t.Helper()
	r, err := s.Flush(context.Background())
	if err != nil {
		t.Fatalf("flush: %v", err)
	}
	return r.Segment
}

// CheckMinutes fails the test unless the minutes of a bucket sum to its total.
func CheckMinutes(t TB, s Store, bucket uint64, total account.Counts) {
	t.Helper()
	var sum account.Counts
	for _, row := range s.Account().Minutes(bucket) {
		sum.Add(&row.Counts)
	}
	if sum != total {
		t.Fatalf("the minutes sum to %+v, the total is %+v", sum, total)
	}
}

// TimestampedBucket creates the bucket "b", whose points have timestamps.
func TimestampedBucket(t TB, s Store) buckets.Info {
	t.Helper()
	info, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 604800, HPTS: true})
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	return info
}
