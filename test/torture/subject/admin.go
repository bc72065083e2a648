package subject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

var client = &http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}

// Post asks for a change; body may be nil.
func (n *Node) Post(path string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+n.HTTP+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Dalmatiner", "1")
	req.Header.Set("Content-Type", "application/json")
	return do(req)
}

// PostLines sends a body of JSON lines, and reads the answer into out.
func (n *Node) PostLines(path string, body []byte, out any) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+n.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Dalmatiner", "1")
	b, err := do(req)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// Read asks without changing anything.
func (n *Node) Read(path string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+n.HTTP+path, nil)
	if err != nil {
		return nil, err
	}
	return do(req)
}

// StatusError is an answer that is no 200.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Code, e.Text) }

func do(req *http.Request) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &StatusError{resp.StatusCode, string(bytes.TrimSpace(b))}
	}
	return b, nil
}

// Flush writes everything to a segment, and merges what can be merged.
func (n *Node) Flush(merge bool) error {
	if _, err := n.Post("/admin/flush", nil); err != nil {
		return err
	}
	if !merge {
		return nil
	}
	_, err := n.Post("/admin/merge", nil)
	return err
}

// Segment is a line of the list of segments.
type Segment struct {
	File   string `json:"file"`
	Points int64  `json:"points"`
	From   int64  `json:"from_ms"`
	To     int64  `json:"to_ms"`
}

// Segments lists the committed segments.
func (n *Node) Segments() ([]Segment, error) {
	b, err := n.Read("/admin/segments")
	if err != nil {
		return nil, err
	}
	var out []Segment
	return out, json.Unmarshal(b, &out)
}

// Row says what became of what came for a bucket.
type Row struct {
	Bucket      string            `json:"bucket"`
	Received    uint64            `json:"received"`
	Accepted    uint64            `json:"accepted"`
	Duplicate   uint64            `json:"duplicate"`
	Conflicting uint64            `json:"conflicting"`
	Late        uint64            `json:"late"`
	Unset       uint64            `json:"unset"`
	Refused     map[string]uint64 `json:"refused"`
}

func (r Row) refused() uint64 {
	n := uint64(0)
	for _, v := range r.Refused {
		n += v
	}
	return n
}

// Ledger is the account of points, or that of events.
type Ledger struct {
	Rows      []Row             `json:"rows"`
	Lost      map[string]uint64 `json:"lost_total"` // both only grow
	Recovered map[string]uint64 `json:"recovered_total"`
}

// Account is both.
type Account struct {
	Ledger
	Events   Ledger `json:"events"`
	TagsLost int64  `json:"tags_lost"`

	RefusedRequests map[string]uint64 `json:"refused_requests"`
}

// Of returns how many were stored and refused of a bucket.
func (l *Ledger) Of(bucket string) (stored, refused uint64) {
	for _, r := range l.Rows {
		if r.Bucket == bucket {
			return r.Accepted + r.Duplicate + r.Conflicting + r.Late, r.refused()
		}
	}
	return 0, 0
}

// Missing is what is lost and has not been recovered.
func (a *Ledger) Missing() int64 {
	var n int64
	for _, v := range a.Lost {
		n += int64(v)
	}
	for _, v := range a.Recovered {
		n -= int64(v)
	}
	return n
}

// Account returns the ledger; an error says which line is no sum of its parts.
func (n *Node) Account() (*Account, error) {
	b, err := n.Read("/admin/account")
	if err != nil {
		return nil, err
	}
	var a Account
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, err
	}
	for _, r := range slices.Concat(a.Rows, a.Events.Rows) {
		sum := r.Accepted + r.Duplicate + r.Conflicting + r.Late + r.Unset + r.refused()
		if sum != r.Received {
			return &a, fmt.Errorf("account: the parts of %+v make %d", r, sum)
		}
	}
	return &a, nil
}

// Result is one series of an answer.
type Result struct {
	Resolution int64      `json:"resolution"`
	Values     []*float64 `json:"values"`
	Coverage   float64    `json:"coverage"`
}

// Query runs a query; gaps are nil.
func (n *Node) Query(q string) ([]Result, error) {
	b, err := n.Read("/?gaps=null&q=" + url.QueryEscape(q))
	if err != nil {
		return nil, err
	}
	var a struct {
		Results []Result `json:"results"`
	}
	return a.Results, json.Unmarshal(b, &a)
}

// Metric returns a line of /metrics without its prefix, 0 when it is not there.
func (n *Node) Metric(name string) (float64, error) {
	b, err := n.Read("/metrics")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("dalmatiner_"+name+" ")); ok {
			return strconv.ParseFloat(string(bytes.TrimSpace(v)), 64)
		}
	}
	return 0, nil
}

// Held returns which pools of input and of answers are not empty.
func (n *Node) Held() ([]string, error) {
	b, err := n.Read("/admin/caches")
	if err != nil {
		return nil, err
	}
	var pools []struct {
		Name  string
		Bytes int64
	}
	if err := json.Unmarshal(b, &pools); err != nil {
		return nil, err
	}
	var held []string
	for _, p := range pools {
		ofInput := strings.HasSuffix(p.Name, "-unfinished") || strings.HasSuffix(p.Name, "-buffers")
		if p.Bytes > 0 && (ofInput || slices.Contains([]string{"http-bodies", "tcp-gets", "event-reads"},
			p.Name)) {
			held = append(held, fmt.Sprintf("%s %d bytes", p.Name, p.Bytes))
		}
	}
	return held, nil
}

// Replayed waits until the log is in memory. A node that does not come so far is
// ended, and the error says what it was doing.
func (n *Node) Replayed() error {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left, err := n.Metric("replay_left_bytes")
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
	}
	return fmt.Errorf("the log is not in memory after %v\n%s", Patience, n.Stacks())
}

// Check is the report of ddb admin check on a stopped directory.
type Check struct {
	Damaged int64 `json:"damaged"`
	Damages []struct {
		File string `json:"file"`
		Part string `json:"part"`
	} `json:"damages"`
	Expected []struct {
		File string `json:"file"`
		Part string `json:"part"`
	} `json:"expected"`
	Text string `json:"-"`
}

// RunCheck runs the check of a directory that no node has open.
func RunCheck(bin, dir string) (*Check, error) {
	cmd := exec.Command(filepath.Join(bin, "ddb"), "admin", "check", "--json", "--data-dir", dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	c := &Check{Text: out.String() + errs.String()}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return c, fmt.Errorf("ddb admin check: %w: %s", err, errs.String())
	}
	if e := json.Unmarshal(out.Bytes(), c); e != nil {
		return c, fmt.Errorf("ddb admin check --json: %w: %s", e, c.Text)
	}
	if (err != nil) != (c.Damaged > 0) {
		return c, fmt.Errorf("ddb admin check: exit status %v with %d damaged places", err, c.Damaged)
	}
	return c, nil
}
