package unacked

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, autoCreate bool) *store.Store {
	t.Helper()
	o := storetest.Options()
	o.UnknownBuckets.Create = autoCreate
	return storetest.Open(t, o)
}

func send(t *testing.T, b *Bucket, slot uint64) {
	t.Helper()
	stream, _, err := b.Stream()
	if err != nil {
		t.Fatal(err)
	}
	stream.Point([]byte("\x01a"), slot, point.FromInt(1))
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestPointsFollowTheName(t *testing.T) {
	st := openStore(t, true)
	b := NewBucket(st.Intake(), "b", nil)
	send(t, b, 1)
	first, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteBucket("b"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.CreateBucket(buckets.Info{Name: "b", Resolution: 100, PPF: 10}); err != nil {
		t.Fatal(err)
	}
	send(t, b, 1)
	send(t, b, 2)
	if _, resolution, err := b.Stream(); err != nil || resolution != 100 {
		t.Errorf("the resolution is %d: %v", resolution, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Account().Total(second.ID); first.ID == second.ID || got.StoredPoints() != 2 {
		t.Errorf("bucket %d, after bucket %d, holds %+v", second.ID, first.ID, got)
	}
}

func TestRefused(t *testing.T) {
	st := openStore(t, false)
	_, _, err := NewBucket(st.Intake(), "nope", nil).Stream()
	if got, ok := Refused(err); !ok || got != "unknown_bucket" {
		t.Errorf("a bucket that is missing is refused as %q: %v", got, err)
	}
	_, _, err = NewBucket(openStore(t, true).Intake(), strings.Repeat("x", 256), nil).Stream()
	if got, ok := Refused(err); !ok || got != "invalid_bucket" {
		t.Errorf("a name of 256 bytes is refused as %q: %v", got, err)
	}
	if got, ok := Refused(fmt.Errorf("no new bucket: %w", &memory.Refusal{})); !ok || got != "memory" {
		t.Errorf("a bucket for which there is no memory is refused as %q", got)
	}
	if got, ok := Refused(errors.New("fsync: input/output error")); ok {
		t.Errorf("a failed disk is the sender's fault: %q", got)
	}
}

func TestRefusalsAreCountedAndSampled(t *testing.T) {
	var log bytes.Buffer
	acc := account.New()
	now := time.Unix(1_500_000_000, 0)
	limited := loglimit.New(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	r := NewRefusals("listener", acc, limited)
	peer := netip.MustParseAddrPort("[::ffff:10.0.0.1]:99")
	lines := func(want int, text string) {
		t.Helper()
		got := log.String()
		log.Reset()
		if strings.Count(got, "\n") != want || !strings.Contains(got, text) {
			t.Errorf("want %d lines with %q, got\n%s", want, text, got)
		}
	}
	r.Count("bad", peer, []byte("in\xffput"))
	lines(1, `listener=listener reason=bad peer=10.0.0.1:99 input="\"in\\xffput\""`)
	r.Count("bad", peer, nil)
	r.Count("worse", peer, nil)
	lines(0, "")
	now = now.Add(time.Second)
	r.Count("bad", peer, bytes.Repeat([]byte("x"), 10_000))
	lines(1, strings.Repeat("x", sampleBytes)+`\"" left_out=2`)
	r.Count("bad", peer, nil)
	limited.Close()
	lines(1, "left_out=1")
	if got := acc.Requests(); got["listener_bad"] != 4 || got["listener_worse"] != 1 {
		t.Errorf("counted are %v", got)
	}
}
