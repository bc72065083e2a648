package test

import (
	"fmt"
	"strings"
	"testing"

	"dalmatiner/client"
	"dalmatiner/internal/wire"
)

// TestImportLines: JSON lines as VictoriaMetrics exports them are stored with their milliseconds.
func TestImportLines(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "http.max_write=4KB")
	second := past(0) - 10
	ms := second * 1000
	line := fmt.Sprintf(`{"metric":{"__name__":"up","job":"x"},"values":[1,null,2.5],`+
		`"timestamps":[%d,%d,%d]}`, ms+7, ms+1008, ms+2009)
	for _, c := range []senderRequest{
		{"lines", "POST", "/api/v1/import", line + "\n", nil, 204, ""},
		{"again", "POST", "/prometheus/api/v1/import", zipped(line), coded("gzip"), 204, ""},
		{"another bucket", "POST", "/prometheus/old/api/v1/import", line, nil, 204, ""},
		{"bad lines", "POST", "/api/v1/import", "{}\n[]", nil, 400,
			"2 bad lines, all others are stored"},
		{"large", "POST", "/api/v1/import", strings.Repeat(" ", 5000), nil, 413, "http.max_write"},
	} {
		c.check(t, n)
	}
	up := key(t, "up", "job=x")
	for _, bucket := range []string{"prometheus", "old"} {
		got, err := n.dial().GetTimestamped(t.Context(), bucket, up, second, 3)
		if err != nil || got[0] != (wire.Timestamped{Word: client.Int(1), Time: uint64(ms+7) * 1e6}) ||
			got[2] != (wire.Timestamped{Word: client.Float(2.5), Time: uint64(ms+2009) * 1e6}) {
			t.Errorf("%s: %+v, %v", bucket, got, err)
		}
	}
	if row := n.account("prometheus"); row.Accepted != 3 || row.Duplicate != 3 {
		t.Errorf("%+v", row)
	}
	if bad := n.refusals("import_bad_line"); bad != 2 {
		t.Errorf("%d bad lines", bad)
	}
}
