package acked

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
)

// waitingTagger waits as a store whose senders are held back: until its context ends.
type waitingTagger struct{ given int }

func (w *waitingTagger) Tag(ctx context.Context, list []tags.Change,
	_ bool) (write.TagResult, error) {
	if err := ctx.Err(); err != nil {
		return write.TagResult{}, err
	}
	w.given += len(list)
	return write.TagResult{}, nil
}

func (w *waitingTagger) TagLosses() uint64 { return 0 }

// A client that leaves has its points stored and its series tagged, and costs no other client its
// tags.
func TestAClientThatLeaves(t *testing.T) {
	st, tagger := storetest.Open(t, storetest.Options()), &waitingTagger{}
	ws := New(Options{Listener: "test", Points: st.Intake(), Tags: tagger, Memory: st.Memory(),
		Account: st.Account(), Logger: slog.New(slog.DiscardHandler), Now: st.Now})
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	for i, ctx := range []context.Context{gone, t.Context()} {
		w, err := ws.Begin("b", netip.AddrPort{})
		if err != nil {
			t.Fatal(err)
		}
		host := []labels.Label{{Name: []byte("host"), Value: []byte{byte('a' + i)}}}
		if err := w.Series(host, []byte("up")); err != nil {
			t.Fatal(err)
		}
		w.Point(st.Now().UnixMilli(), Word(1))
		if _, err := w.End(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	b, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Account().Total(b.ID); got.Accepted != 2 || tagger.given != 2 ||
		len(st.Account().Requests()) > 0 {
		t.Errorf("%+v, %d series are tagged, refused: %v", got, tagger.given, st.Account().Requests())
	}
}
