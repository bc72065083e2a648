package test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/testkit/golden"
)

// shop is the data of docs/dql.md and docs/http.md: a point a second from
// 2026-11-20 12:00:00 UTC, -1 for none.
var shop = []struct {
	metric []string
	values []int64
}{
	{[]string{"web", "eu", "requests"}, []int64{10, 12, 11, 13, 15, 14, 10, 9, 11, 12}},
	{[]string{"web", "us", "requests"}, []int64{20, 21, 19, 25, 24, 22, 20, 18, 21, 23}},
	{[]string{"web", "eu", "errors"}, []int64{0, 0, 1, 0, 2, 0, 0, 1, 0, 0}},
	{[]string{"temp"}, []int64{-1, 21, -1, -1, 22, -1, -1, -1, 20, -1}},
}

const shopStart = 1795176000 // s

func fillShop(t *testing.T, n *node) {
	t.Helper()
	for _, m := range shop {
		for i, v := range m.values {
			if v >= 0 {
				send(t, n, "shop", key(t, m.metric...), shopStart+int64(i), point.FromInt(v))
			}
		}
	}
}

// exchange is one request of testdata/http.txt. The file has lines of a
// request behind "> ", whose body stands after a lone ">"; lines behind "| "
// are regular expressions of the lines of the body that are shown; then comes
// the answer. Blanks in a target are sent as %20.
type exchange struct {
	head  []string // the lines as they are in the file
	lines []string // without marks
	show  []*regexp.Regexp
}

func readExchanges(t *testing.T, text string) (list []exchange) {
	t.Helper()
	var e exchange
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, ">"):
			e.lines = append(e.lines, strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
		case strings.HasPrefix(line, "| "):
			e.show = append(e.show, regexp.MustCompile(line[2:]))
		default:
			if e.lines != nil {
				list = append(list, e)
				e = exchange{}
			}
			continue
		}
		e.head = append(e.head, line)
	}
	return list
}

// shownHeaders are those that the file holds.
var shownHeaders = []string{
	"Content-Type", "Content-Encoding", "Vary", "Allow", "Access-Control-Allow-Origin",
	"Access-Control-Allow-Methods",
	"Access-Control-Allow-Headers", "Access-Control-Max-Age",
}

var (
	queryTime  = regexp.MustCompile(`"query_time":\d+`)
	eventsTime = regexp.MustCompile(`"t":\d+\}`)
)

// send sends the request byte for byte and returns the answer as the file
// shows it.
func (e exchange) send(t *testing.T, n *node) string {
	t.Helper()
	method, target, _ := strings.Cut(e.lines[0], " ")
	lines := []string{
		method + " " + strings.ReplaceAll(target, " ", "%20") + " HTTP/1.1", "Host: " + n.http,
		"Connection: close",
	}
	body, rest := "", e.lines[1:]
	for i, line := range rest {
		if line == "" {
			rest, body = rest[:i], strings.Join(rest[i+1:], "\n")
			lines = append(lines, fmt.Sprint("Content-Length: ", len(body)))
			break
		}
	}
	conn, err := net.Dial("tcp", n.http)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn,
		strings.Join(append(lines, rest...), "\r\n")+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", e.lines[0], err)
	}
	defer resp.Body.Close()
	var out strings.Builder
	fmt.Fprintf(&out, "< %d\n", resp.StatusCode)
	for _, name := range shownHeaders {
		if v := resp.Header.Get(name); v != "" {
			fmt.Fprintf(&out, "< %s: %s\n", name, v)
		}
	}
	e.writeBody(t, &out, resp)
	return out.String()
}

func (e exchange) writeBody(t *testing.T, out *strings.Builder, resp *http.Response) {
	t.Helper()
	from := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	body, err := io.ReadAll(from)
	if err != nil {
		t.Fatalf("%s: %v", e.lines[0], err)
	}
	text := queryTime.ReplaceAllString(string(body), `"query_time":0`)
	text = eventsTime.ReplaceAllString(text, `"t":0}`)
	if !utf8.ValidString(text) || strings.Contains(resp.Header.Get("Content-Type"), "msgpack") {
		text = fmt.Sprintf("%x\n", body)
	}
	for line := range strings.Lines(text) {
		shown := e.show == nil
		for _, re := range e.show {
			shown = shown || re.MatchString(line)
		}
		if shown {
			out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
}

// TestHTTPGolden sends the requests of testdata/http.txt, byte for byte, and
// compares the answers. -update rewrites them.
func TestHTTPGolden(t *testing.T) {
	t.Parallel()
	const file = "testdata/http.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off", "--set", "query.max_points=1000000")
	fillShop(t, n)
	var out strings.Builder
	for _, e := range readExchanges(t, string(text)+"\n") {
		fmt.Fprintf(&out, "%s\n%s\n", strings.Join(e.head, "\n"), e.send(t, n))
	}
	golden.Same(t, file, out.String())
}
