// Package ackedtest is the store and the writers behind a protocol under test.
package ackedtest

import (
	"log/slog"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/store/tagstore"
)

// Open opens a store, and the writers of a listener into it. Both are closed with the test.
func Open(tb testing.TB, listener string, o store.Options) (*store.Store, *acked.Writers) {
	tb.Helper()
	st := storetest.Open(tb, o)
	ws := acked.New(acked.Options{Listener: listener, Points: st.Intake(),
		Tags: tagstore.Tagger{Of: st.Tags()}, Memory: st.Memory(), Account: st.Account(),
		Logger: slog.New(slog.DiscardHandler), Now: st.Now})
	tb.Cleanup(func() {
		if err := ws.Close(); err != nil {
			tb.Error(err)
		}
	})
	return st, ws
}

// ProcessorTime is that of the process so far.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
