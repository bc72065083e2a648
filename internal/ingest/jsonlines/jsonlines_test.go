package jsonlines

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/store/storetest"
)

func newServer(tb testing.TB) *Server {
	_, ws := ackedtest.Open(tb, Listener, storetest.Options())
	return New(ws)
}

// A bad line is named, and costs no other line a point.
func TestBadLines(t *testing.T) {
	s := newServer(t)
	ms := time.Now().UnixMilli() / 1000 * 1000
	good := fmt.Sprintf(`{"metric":{"__name__":"m","a":"%%d"},"values":[1,null,"Infinity",1e300],`+
		`"timestamps":[%d,%d,%d,%d],"unknown":{}}`, ms-4000, ms-3000, ms-2000, ms-1000)
	body := strings.Join([]string{
		fmt.Sprintf(good, 1), "", "{", `{"metric":{"__name__":"m"},"values":[1],"timestamps":[]}`,
		`{"metric":{"__name__":"m"},"values":[1],"timestamps":[-1]}`,
		`{"metric":{"__name__":"m"},"values":["x"],"timestamps":[1]}`,
		`{"metric":{"__name__":"m","":"x"},"values":[],"timestamps":[]}`,
		fmt.Sprintf(good, 2) + " {}", fmt.Sprintf(good, 2),
	}, "\r\n")
	w, err := s.Write(t.Context(), "b", netip.AddrPort{}, []byte(body))
	bad := (*acked.BadLines)(nil)
	if !errors.As(err, &bad) || w.Lines != 2 || w.Bad != 6 || w.Counts.Accepted != 8 {
		t.Errorf("%+v, %v", w, err)
	}
	for _, want := range []string{"6 bad lines", "line 3: unexpected", "line 4: values and timestamps",
		"line 5: a time before 1970", `line 6: the value "x" is no number`, "line 7: a label without",
		"and 1 more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

// FuzzWrite: no body breaks the server, and each of its lines is good or bad.
func FuzzWrite(f *testing.F) {
	s := newServer(f)
	f.Add([]byte(`{"metric":{"__name__":"up","job":"x"},"values":[1,0.5],"timestamps":[1,2]}`))
	f.Add([]byte("{\"metric\":{},\"values\":[null],\"timestamps\":[0]}\n\n[]"))
	f.Fuzz(func(t *testing.T, body []byte) {
		w, _ := s.Write(t.Context(), "b", netip.AddrPort{}, body)
		lines := 0
		for line := range strings.SplitSeq(string(body), "\n") {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if w.Lines+w.Bad != lines {
			t.Errorf("%d lines are %+v", lines, w)
		}
	})
}
