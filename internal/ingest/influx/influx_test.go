package influx

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/store/storetest"
)

// Each line counts once: as stored, with its points, or as bad, with its number.
func TestEveryLineCounts(t *testing.T) {
	st, ws := ackedtest.Open(t, Listener, storetest.Options())
	now := time.Now().Unix()
	var body strings.Builder
	for i := range 2000 {
		switch {
		case i%100 == 50:
			fmt.Fprintf(&body, "bad,host=%d value=x %d\n", i, now)
		case i%100 == 51:
			fmt.Fprintf(&body, "twice,host=%d,host=2 value=1 %d\n", i, now)
		case i%100 == 52:
			fmt.Fprintf(&body, "early,host=%d value=1 -1\n", i)
		case i%100 == 53:
			fmt.Fprintf(&body, "text,host=%d text=\"a\nb\" %d\n", i, now)
		default:
			fmt.Fprintf(&body, "cpu,host=%d idle=%d,user=0.5,up=t %d\r\n", i, i, now)
		}
	}
	w, err := New(ws, st.Now).Write(t.Context(), "b", netip.AddrPort{}, time.Second,
		[]byte(body.String()))
	partial := (*PartialError)(nil)
	if !errors.As(err, &partial) || w.Bad != 60 || w.Lines != 1940 || w.Texts != 20 ||
		w.Counts.Accepted != 3*1920 || w.Counts.ReceivedPoints() != 3*1920 {
		t.Errorf("%+v, %v", w, err)
	}
	// The text of line 54 has a newline, so that what follows it is one line lower.
	for _, want := range []string{"line 51: unable to parse 'bad,host=50 value=x", "line 152: ",
		"and 55 more dropped=60"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	requests := st.Account().Requests()
	if requests["influx_bad_line"] != 60 || requests["influx_text_field"] != 20 {
		t.Errorf("%v", requests)
	}
}
