package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"dalmatiner/internal/query"
)

// TestResultsSayTheirLength: a result that fits into a piece has a
// Content-Length, and any result is the same, compressed or not.
func TestResultsSayTheirLength(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Engine = engineFunc(func(_ context.Context, text string) (*query.Result, error) {
		n, err := strconv.Atoi(text)
		return &query.Result{
				Series: []query.Series{{Name: "x", Resolution: 1000, Values: make([]float64, n)}, {Name: "y"}}},
			err
	})
	server := httptest.NewServer(New(o))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	for _, n := range []int{0, 1, 800, worthPacking/2 - 100, worthPacking/2 - 60, worthPacking / 2,
		6000, 12_000, replyBuffer/2 - 50, replyBuffer / 2, 50_000} {
		// Every value is "0,".
		most := 2*n + 500
		want := []byte(nil)
		for _, coding := range []string{"identity", "gzip"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				server.URL+"/?q="+url.QueryEscape(strconv.Itoa(n)), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", coding)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // it was read to its end
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%d values: %s, %v", n, resp.Status, err)
			}
			packed := resp.Header.Get("Content-Encoding") == "gzip"
			if whole := !packed && most < replyBuffer-2*pieceSize; whole &&
				resp.ContentLength != int64(len(body)) {
				t.Errorf("%d values, %s: a length of %d, the body has %d bytes", n, coding, resp.ContentLength,
					len(body))
			}
			if packed {
				body = unzip(t, body)
			}
			if packed != (coding == "gzip" && len(body) >= worthPacking) {
				t.Errorf("%d values, %s: compressed %v", n, coding, packed)
			}
			if want == nil {
				want = body
			}
			if !bytes.Equal(body, want) {
				t.Errorf("%d values, %s: another answer", n, coding)
			}
		}
	}
}

// TestTimesOfTheCalendar: values of spans of the calendar come with their times, in both forms.
func TestTimesOfTheCalendar(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	const q = `SELECT count(t BUCKET b, 1d), count(t BUCKET b, 60s) BETWEEN 1000 AND 120000`
	target := "/?tz=%2B23:59&q=" + url.QueryEscape(q) // where a day begins 60 s behind 1970
	const want = `"resolution":86400000,"times":[1000,60000],"values":[59,60]`
	if body := get(target).send(h).Body.String(); !strings.Contains(body, want) ||
		strings.Count(body, "times") != 1 {
		t.Errorf("%s, want %s", body, want)
	}
	v, rest := unpack(t, get(target, "Accept: application/msgpack").send(h).Body.Bytes())
	list := v.(map[string]any)["results"].([]any)
	days, minutes := list[0].(map[string]any), list[1].(map[string]any)
	if len(rest) != 0 || fmt.Sprint(days["times"], days["values"]) != "[1000 60000] [59 60]" ||
		minutes["times"] != nil {
		t.Errorf("%v and %d bytes", v, len(rest))
	}
}
