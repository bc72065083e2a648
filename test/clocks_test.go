package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/wire"
)

// TestClocksThatAreAhead: what comes of senders whose clocks are ahead is stored, or refused for
// Graphite, and the account and the log name each sender, whichever way it came.
func TestClocksThatAreAhead(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "graphite.addr=127.0.0.1:0", "--set",
		"syslog.addr=127.0.0.1:0")
	ahead := time.Now().Add(2 * time.Hour).Truncate(time.Second).UTC()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Dial(ctx, n.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	body, err := term.AppendFromJSON(nil, []byte(`{"by":"tcp"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteEvents(ctx, "log",
		[]wire.Event{{Time: uint64(ahead.UnixNano()), Term: body}}); err != nil {
		t.Fatal(err)
	}
	postEvents(t, n, fmt.Sprintf(`{"time":%q,"by":"http"}`+"\n", ahead.Format(time.RFC3339)))
	put(t, n.to("tcp", n.listener("graphite lines")),
		fmt.Appendf(nil, "a 1 %d\nb 2 %d\n", ahead.Unix(), ahead.Unix()))
	put(t, n.to("udp", n.listener("syslog messages")),
		[]byte("<13>1 "+ahead.Format(time.RFC3339)+" h a - - - x"))
	eventually(t, "all are stored or refused", func() bool {
		return n.eventsOf("log") == 2 && n.eventsOf("syslog") == 1 &&
			n.account("graphite").Refused["future"] == 2
	})
	for _, bucket := range []string{"log", "syslog"} {
		resp, err := http.Get("http://" + n.http + "/events?start=2026-01-01&bucket=" + bucket)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		got := string(text)
		if events := strings.Count(got, `"timestamp"`); strings.Count(got,
			`"sent":"`+ahead.Format(time.RFC3339)+`"`) != events {
			t.Errorf("%d events: %s", events, got)
		}
	}
	r := run(t, "ddb", "admin", "account", "--addr", n.http)
	counts := map[string]string{"graphite": "2", "syslog": "1", "tcp": "1", "http": "1"}
	for want, count := range counts {
		found := false
		for line := range strings.SplitSeq(r.out, "\n") {
			fields := strings.Fields(line)
			found = found || len(fields) > 3 && fields[0] == "127.0.0.1" && fields[2] == count &&
				fields[3] == want
		}
		if !found {
			t.Errorf("%s is not in the account: %s", want, r.out)
		}
		if !strings.Contains(n.log.String(), "listener="+want+" peer=127.0.0.1") {
			t.Errorf("%s is not in the log", want)
		}
	}
	if got := n.figure("events_ahead_total"); got != 2 {
		t.Errorf("%v events are counted", got)
	}
	if n.figure("bucket_series{bucket=\"graphite\"}") != 0 {
		t.Error("refused points have made series")
	}
	n.stop()
}
