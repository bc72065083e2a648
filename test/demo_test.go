package test

import (
	"strings"
	"testing"

	"dalmatiner/internal/codec/point"
)

// The command makes the bucket, changes nothing when it runs again, and leaves a bucket alone
// that holds anything else.
func TestDemoShop(t *testing.T) {
	n := startNode(t, t.TempDir())
	demo := func() result { return run(t, "ddb", "demo", "shop", "--addr", n.http) }
	first := demo()
	if first.code != 0 || !strings.HasPrefix(first.out, "Made bucket shop: ") {
		t.Fatalf("%d: %s%s", first.code, first.out, first.errOut)
	}
	received := n.account("shop")
	again := demo()
	if again.code != 0 || !strings.HasPrefix(again.out, "Bucket shop was there already; 0 points") {
		t.Fatalf("%d: %s%s", again.code, again.out, again.errOut)
	}
	after := n.account("shop")
	if after.Received != received.Received || received.Accepted != received.Received {
		t.Errorf("first %+v, then %+v", received, after)
	}
	for line := range strings.Lines(first.out) {
		q, ok := strings.CutPrefix(strings.TrimSpace(line), "ddb query '")
		if !ok {
			continue
		}
		r := run(t, "ddb", "query", strings.TrimSuffix(q, "'"), "--addr", n.http)
		if r.code != 0 {
			t.Errorf("%s: %d: %s%s", q, r.code, r.out, r.errOut)
		}
	}
	send(t, n, "shop", key(t, "other"), shopStart, point.FromInt(1))
	if r := demo(); r.code != 1 || !strings.Contains(r.errOut, "did not make: it holds 'other'") {
		t.Errorf("%d: %s%s", r.code, r.out, r.errOut)
	}
}

// A node whose bucket of the name has another resolution keeps it as it is.
func TestDemoShopOfAnotherResolution(t *testing.T) {
	n := startNode(t, t.TempDir())
	r := run(t, "ddb", "admin", "buckets", "create", "shop", "10s", "1w", "false", "--addr", n.http)
	if r.code != 0 {
		t.Fatalf("%s%s", r.out, r.errOut)
	}
	r = run(t, "ddb", "demo", "shop", "--addr", n.http)
	if r.code != 1 || !strings.Contains(r.errOut, "its resolution") {
		t.Errorf("%d: %s%s", r.code, r.out, r.errOut)
	}
}
