package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Header is the header, with any value, that every request which changes
// something carries. A foreign web page cannot add it without asking first.
const Header = "X-Dalmatiner"

// Bounds of one exchange.
const (
	maxReply       = 256 << 20 // bytes of a decoded reply
	maxErrorText   = 4 << 10   // bytes of an error's text
	defaultTimeout = 5 * time.Minute
)

// defaultAddr is the address of a node that was told none, and of commands likewise.
const defaultAddr = "127.0.0.1:8080"

// Client talks to the HTTP address of a node. The zero HTTP field is a client
// with a timeout.
type Client struct {
	Addr string // host:port
	HTTP *http.Client
	Tell io.Writer // gets a line that names the node before the first change; nil gets none
	told bool

	NoCache bool   // queries are computed anew
	Zone    string // time zone of queries whose text has none; empty is UTC
	Damaged bool   // queries show older values in place of those that damage took
	Width   int    // queries give at most so many columns of each series; 0 is all values
}

// statusError is an answer that is no success: the status and the text the
// node gave with it.
type statusError struct {
	Status int
	Text   string
}

// Error returns the node's text.
func (e *statusError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("the node answered with status %d", e.Status)
	}
	return e.Text
}

// Buckets lists all buckets, sorted by name.
func (c *Client) Buckets(ctx context.Context) ([]Bucket, error) {
	var out []Bucket
	return out, c.get(ctx, "/buckets", &out)
}

// CreateBucket creates a bucket and returns what was created.
func (c *Client) CreateBucket(ctx context.Context, b Bucket) (Bucket, error) {
	var out Bucket
	return out, c.post(ctx, "/admin/buckets/create", b, &out)
}

// DeleteBucket deletes a bucket and everything in it.
func (c *Client) DeleteBucket(ctx context.Context, name string) error {
	return c.post(ctx, "/admin/buckets/delete", BucketName{name}, nil)
}

// SetTTL sets the lifetime of a bucket's points.
func (c *Client) SetTTL(ctx context.Context, name string, ttl TTL) error {
	return c.post(ctx, "/admin/buckets/ttl", BucketTTL{name, &ttl}, nil)
}

// Flush makes the node write everything in memory to a segment.
func (c *Client) Flush(ctx context.Context) (Flushed, error) {
	var out Flushed
	return out, c.post(ctx, "/admin/flush", struct{}{}, &out)
}

// Merge makes the node merge its segments until nothing is left to merge.
func (c *Client) Merge(ctx context.Context) (Merged, error) {
	var out Merged
	return out, c.post(ctx, "/admin/merge", struct{}{}, &out)
}

// Account reads the account: totals of all buckets or of one, or with minutes
// above 0 one row for each of the last minutes.
func (c *Client) Account(ctx context.Context, bucket string, minutes int) (Account, error) {
	q := url.Values{}
	if bucket != "" {
		q.Set("bucket", bucket)
	}
	if minutes > 0 {
		q.Set("minutes", strconv.Itoa(minutes))
	}
	var out Account
	return out, c.get(ctx, "/admin/account?"+q.Encode(), &out)
}

// Stats reads the node's figures.
func (c *Client) Stats(ctx context.Context) ([]Stat, error) {
	var out []Stat
	return out, c.get(ctx, "/admin/stats", &out)
}

// Query runs a DQL query.
func (c *Client) Query(ctx context.Context, text string) (*Result, error) {
	body, err := c.openQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	out := new(Result)
	return out, decode(body, out)
}

// CopyQuery runs a DQL query and copies the JSON of the answer to w.
func (c *Client) CopyQuery(ctx context.Context, w io.Writer, text string) error {
	body, err := c.openQuery(ctx, text)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

func (c *Client) openQuery(ctx context.Context, text string) (io.ReadCloser, error) {
	form := url.Values{"q": {text}}
	if c.Damaged {
		form.Set("damaged", "show")
	}
	if c.NoCache {
		form.Set("cache", "off")
	}
	if c.Zone != "" {
		form.Set("tz", c.Zone)
	}
	if c.Width > 0 {
		form.Set("width", strconv.Itoa(c.Width))
	}
	return c.open(ctx, http.MethodPost, "/", "application/x-www-form-urlencoded",
		strings.NewReader(form.Encode()))
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	body, err := c.open(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return decode(body, out)
}

func (c *Client) post(ctx context.Context, path string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	body, err := c.change(ctx, path, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer body.Close()
	if out == nil {
		return nil
	}
	return decode(body, out)
}

// change is open for a request that changes something: the node is named before it acts.
func (c *Client) change(ctx context.Context, path, contentType string,
	body io.Reader) (io.ReadCloser, error) {
	if c.Tell != nil && !c.told {
		c.told = true
		if _, who := c.Who(ctx); who != "" {
			if _, err := fmt.Fprintln(c.Tell, who); err != nil {
				return nil, err
			}
		}
	}
	return c.open(ctx, http.MethodPost, path, contentType, body)
}

// whoTimeout is how long a node may take to say who it is.
const whoTimeout = 2 * time.Second

// Who asks who answers at the address, for at most two seconds. It returns the status of the node,
// and a text with its name, its data directory and its version: "" where none answers, or nothing
// that is a node.
func (c *Client) Who(ctx context.Context) (s Status, who string) {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	s, err := c.Status(ctx)
	if err != nil || s.Node == "" {
		return s, ""
	}
	return s, fmt.Sprintf("node %s at %s, data directory %s, ddb %s", s.Node, c.Addr, s.DataDir,
		s.Version)
}

// open sends a request and returns the body of a successful answer, which the
// caller closes.
func (c *Client) open(ctx context.Context, method, path, contentType string,
	body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.Addr+path, body)
	if err != nil {
		return nil, fmt.Errorf("%q is no address, write host:port: %w", c.Addr, err)
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
		req.Header.Set(Header, "1")
	}
	client := c.HTTP
	if client == nil {
		client = &http.Client{Timeout: defaultTimeout}
	}
	resp, err := client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no node answers at %s: start one with ddb serve, or name the HTTP "+
			"address of a running one with --addr", c.Addr)
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) && lookup.IsNotFound {
		return nil, fmt.Errorf("there is no host %q: name the HTTP address of a running node, "+
			"HOST:PORT, with --addr", lookup.Name)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err != nil {
		return nil, err
	}
	return nil, &statusError{resp.StatusCode, problemText(text, c.Addr)}
}

func decode(body io.Reader, out any) error {
	limited := &io.LimitedReader{R: body, N: maxReply}
	if err := json.NewDecoder(limited).Decode(out); err != nil {
		if limited.N <= 0 {
			return fmt.Errorf("the answer has more than %d bytes: ask for less, or use --json", maxReply)
		}
		return fmt.Errorf("the answer is not what a node sends: %w", err)
	}
	return nil
}
