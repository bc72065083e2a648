package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"dalmatiner/client"
)

// Bounds of a load: a server that takes longer has failed.
const (
	sendTimeout   = 5 * time.Minute
	finishTimeout = 10 * time.Minute
)

// protocol is a way to hand points to a server.
type protocol struct {
	name    string
	encoder func(agent, metrics int) encoder
	dial    func(ctx context.Context, s *instance) (conn, error)
}

// conn is one connection of a sender.
type conn interface {
	send(ctx context.Context, message []byte) error
	// finish returns when the server has read everything, and closes.
	finish(ctx context.Context) error
	abandon()
}

// overTCP dials a server that reads until the connection ends, and closes it
// then.
func overTCP(port string) func(context.Context, *instance) (conn, error) {
	return func(ctx context.Context, s *instance) (conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", s.addr(port))
		if err != nil {
			return nil, err
		}
		// A run that is ended does not wait for a server that does not read.
		return &tcpConn{c.(*net.TCPConn), context.AfterFunc(ctx, func() { c.Close() })}, nil
	}
}

type tcpConn struct {
	*net.TCPConn
	stop func() bool // ends the bound by the context
}

func (c *tcpConn) send(_ context.Context, message []byte) error {
	// Flow control may stop a slow server's senders for long.
	if err := c.SetWriteDeadline(time.Now().Add(finishTimeout)); err != nil {
		return err
	}
	_, err := c.Write(message)
	return err
}

func (c *tcpConn) finish(context.Context) error {
	defer c.abandon()
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(finishTimeout)); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		return fmt.Errorf("waiting for the server to read everything: %w", err)
	}
	if len(answer) > 0 {
		return fmt.Errorf("the server answered %q", clip(answer))
	}
	return nil
}

func (c *tcpConn) abandon() {
	c.stop()
	c.Close()
}

// overStream opens the store's own stream.
func overStream(ctx context.Context, s *instance) (conn, error) {
	c, err := client.Dial(ctx, s.addr("tcp"))
	if err != nil {
		return nil, err
	}
	stream, err := c.OpenStream(ddbBucket, 2)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &streamConn{stream}, nil
}

type streamConn struct{ *client.Stream }

func (c *streamConn) send(_ context.Context, message []byte) error { return c.Write(message) }

func (c *streamConn) finish(context.Context) error {
	defer c.Close()
	return c.Finish(finishTimeout)
}

func (c *streamConn) abandon() { c.Close() }

// overHTTP posts every message, one after the other over one connection. The
// answer comes when the server has taken the points.
func overHTTP(port, path string, header ...string) func(context.Context, *instance) (conn, error) {
	return func(_ context.Context, s *instance) (conn, error) {
		return &httpConn{http.Client{Transport: &http.Transport{}, Timeout: sendTimeout}, "http://" +
			s.addr(port) + path, header}, nil
	}
}

type httpConn struct {
	client http.Client
	url    string
	header []string // name, value, name, value …
}

func (c *httpConn) send(ctx context.Context, message []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return err
	}
	for i := 0; i < len(c.header); i += 2 {
		req.Header.Set(c.header[i], c.header[i+1])
	}
	_, err = exchange(&c.client, req)
	return err
}

func (c *httpConn) finish(context.Context) error {
	c.abandon()
	return nil
}

func (c *httpConn) abandon() { c.client.CloseIdleConnections() }

// exchange returns the body of an answer that is a success.
func exchange(c *http.Client, req *http.Request) (body []byte, err error) {
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, resp.Status, clip(body))
	}
	return body, nil
}

// clip returns the beginning of a text for a message.
func clip(text []byte) []byte { return bytes.TrimSpace(text[:min(len(text), 300)]) }
