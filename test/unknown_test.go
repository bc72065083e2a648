package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
)

// TestALostRewriteInAnswers: a segment that overwrote points loses a bit. Answers name
// the slots as unknown, nothing old is shown as current, and older values are there for
// those who ask for them.
func TestALostRewriteInAnswers(t *testing.T) {
	const count, from, to = 600, 100, 200 // slots; those that are written again
	dir := t.TempDir()
	quiet := []string{"--set", "self_monitor=off", "--set", "merge.background=off"}
	base := past(3*time.Hour) / 720 * 720
	seven := slices.Repeat([]uint64{point.FromInt(7)}, count)
	n := startNode(t, dir, quiet...)
	send(t, n, "shop", key(t, "temp"), base, seven...)
	send(t, n, "shop", key(t, "whole"), base, seven...)
	flushed(t, n)
	// Only one of the two is written again, so that the other is whole.
	send(t, n, "shop", key(t, "temp"), base+from,
		slices.Repeat([]uint64{point.FromInt(9)}, to-from)...)
	flushed(t, n)
	n.stop()
	flip(t, last(files(t, dir, "flush/*.seg")), 20)
	n = startNode(t, dir, quiet...)

	text := fmt.Sprintf("SELECT temp BUCKET shop, whole BUCKET shop AFTER %d FOR %ds", base*1000,
		count)
	hidden, shown := ask(t, n, text, url.Values{"gaps": {"null"}}),
		ask(t, n, text, url.Values{"gaps": {"null"}, "damaged": {"show"}})
	for name, r := range map[string]admin.Result{"hidden": hidden, "shown": shown} {
		u := r.Results[0].Unknown
		if u == nil || r.Results[1].Unknown != nil {
			t.Fatalf("%s: unknown are %+v and %+v", name, u, r.Results[1].Unknown)
		}
		lost := map[int]bool{}
		for _, p := range u.Ranges {
			for ms := p[0]; ms < p[1]; ms += 1000 {
				lost[int(ms/1000-base)] = true
			}
		}
		if int64(len(lost)) != u.Slots || len(u.Why) != 1 ||
			!strings.Contains(u.Why[0], "0000000000000002.seg") {
			t.Errorf("%s: unknown are %+v", name, u)
		}
		for i := range count {
			v := r.Results[0].Values[i]
			switch {
			case from <= i && i < to && !lost[i]:
				t.Fatalf("%s: slot %d was written again and lost, and is not unknown", name, i)
			case lost[i] && name == "hidden" && v != nil:
				t.Fatalf("slot %d is unknown and shows %v", i, *v)
			case (!lost[i] || name == "shown") && (v == nil || *v != 7):
				t.Fatalf("%s: slot %d is %v, want 7", name, i, v)
			}
		}
		if want := float64(count-len(lost)) / count; name == "hidden" && r.Results[0].Coverage != want {
			t.Errorf("coverage is %v, want %v", r.Results[0].Coverage, want)
		}
	}
	if hidden.Damaged != "" || shown.Damaged != "shown" {
		t.Errorf("damaged is %q and %q", hidden.Damaged, shown.Damaged)
	}
	said :=
		`(?s).*\nunknown: series 1, \d+ slots from .* to .* \(damage in flush/0000000000000002\.seg\)\n.*:\d\d +\? +7\n.*`
	perform(t, n, "ddb", []step{
		{[]string{"query", text}, 0, said},
		{[]string{"query", "--damaged", text}, 0, strings.NewReplacer(` \(`, `, with older values \(`,
			` +\?`, ` +7\?`).Replace(said)},
		{[]string{"query", "EXPLAIN " + text}, 0,
			`(?s).*, unknown \d+ \(damage in flush/0000000000000002\.seg\).*`},
	})
	n.stop()
}

func flushed(t *testing.T, n *node) {
	t.Helper()
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// ask returns the answer to a query with more parameters.
func ask(t *testing.T, n *node, text string, more url.Values) (r admin.Result) {
	t.Helper()
	more.Set("q", text)
	resp, err := http.Get("http://" + n.http + "/?" + more.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return r
}

// step is one command line and what it must answer: a regular expression for
// the whole output of either kind.
type step struct {
	args []string
	code int
	out  string
}

// perform runs the steps in their order; the node's address is in the
// environment.
func perform(t *testing.T, n *node, program string, steps []step) {
	t.Helper()
	t.Setenv("DDB_ADDR", n.http)
	for _, s := range steps {
		r := run(t, program, s.args...)
		text := r.out
		if s.code != 0 {
			text = r.errOut
		}
		if r.code != s.code || !regexp.MustCompile(`\A`+s.out+`\z`).MatchString(text) {
			t.Errorf("%s %q ends with %d\n%s%swant %d\n%s", program, s.args, r.code, r.out, r.errOut, s.code,
				s.out)
		}
	}
}
