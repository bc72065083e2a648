package exposition

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
)

func newServer(tb testing.TB, o store.Options) (*store.Store, *Server) {
	st, ws := ackedtest.Open(tb, Listener, o)
	return st, New(ws)
}

// Each line counts once: as a sample, a comment, or bad, with its number.
func TestEveryLineCounts(t *testing.T) {
	st, s := newServer(t, storetest.Options())
	var body strings.Builder
	for i := range 1000 {
		switch {
		case i%100 == 50:
			fmt.Fprintf(&body, "m{a=%d} 1\n", i)
		case i%100 == 51:
			fmt.Fprintf(&body, "m{a=\"%d\",a=\"b\"} 1\n", i)
		case i%100 == 52:
			fmt.Fprintf(&body, "  # TYPE m%d gauge\n\n", i)
		case i%100 == 53:
			fmt.Fprintf(&body, "m{a=\"%d\"} 1 # {trace=\"x\"} 1\r\n", i)
		default:
			fmt.Fprintf(&body, "m{a=\"%d\",job=\"inner\"} %d\r\n", i, i)
		}
	}
	now := time.Now().UnixMilli()
	r := Request{Labels: []labels.Label{{Name: []byte("job"), Value: []byte("cron")}}, Time: now,
		Body: []byte(body.String())}
	w, err := s.Write(t.Context(), "b", netip.AddrPort{}, &r)
	bad := (*acked.BadLines)(nil)
	if !errors.As(err, &bad) || w.Bad != 20 || w.Samples != 970 || w.Exemplars != 10 ||
		w.Counts.Accepted != 970 {
		t.Errorf("%+v, %v", w, err)
	}
	for _, want := range []string{"20 bad lines, ", "line 51: a label that", "and 15 more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	requests := st.Account().Requests()
	if requests["exposition_bad_line"] != 20 || requests["exposition_exemplar_not_kept"] != 10 {
		t.Errorf("%v", requests)
	}
}
