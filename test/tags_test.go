package test

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestTagsAreShown: tags that were imported are exported, all, of a bucket, and of a metric.
func TestTagsAreShown(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	fillShop(t, n)
	const eu = `{"bucket":"shop","metric":["web","eu","requests"],"name":["requests"],"tags":{"k8s:app":"shop","site":"eu"}}` + "\n"
	const us = `{"bucket":"shop","metric":["web","us","requests"],"name":["requests"],"tags":{"site":"us"}}` + "\n"
	in, err := n.admin().ImportTags(context.Background(),
		strings.NewReader(eu+us+`{"bucket":"nope","metric":["a"]}`))
	if err != nil || in.Lines != 3 || in.Changed != 2 || in.Refused != 1 {
		t.Fatalf("%+v, %v", in, err)
	}
	for _, c := range []struct {
		bucket, metric string
		want           []string
	}{
		{"", "", []string{eu, us}},
		{"shop", "", []string{eu, us}},
		{"shop", "web.us.requests", []string{us}},
		{"dalmatinerdb", "", nil},
	} {
		var out bytes.Buffer
		if err := n.admin().ExportTags(context.Background(), &out, c.bucket, c.metric); err != nil {
			t.Errorf("%q %q: %v", c.bucket, c.metric, err)
		}
		for _, line := range c.want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("%q %q lacks %s", c.bucket, c.metric, line)
			}
		}
		if got := strings.Count(out.String(), "\n"); got != len(c.want) {
			t.Errorf("%q %q: %d lines, want %d: %s", c.bucket, c.metric, got, len(c.want), out.String())
		}
	}
}
