// Package client is a client for the store's TCP port (docs/protocol.md). A Client is one
// connection, which carries one request at a time.
//
// One of the Open methods turns the connection into a Stream of points. From then on only the
// Stream may be used. Neither is safe for concurrent use, except as Stream.ReadAck says.
//
// Values are words: Int and Float make them, and Value reads them. A slot is the time in
// milliseconds since 1970 divided by the resolution of the bucket. Key makes the key of a
// metric, Term the body of an event. The methods keep nothing that they are given, and what they
// return is the caller's own.
package client

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"dalmatiner/internal/wire"
)

// The limits of a client.
const (
	// DialTimeout is how long Dial waits for a connection.
	DialTimeout = 5 * time.Second
	// DefaultTimeout is the Timeout of a new Client: that of the original's client.
	DefaultTimeout = 30 * time.Second

	// MaxReply is the most bytes of one frame of a reply: a list of some four million
	// metrics.
	MaxReply = 256 << 20
	// MaxGet is the most slots that one Get asks for: half a gigabyte of words.
	MaxGet = 1 << 26
)

// ServerError is an ERROR frame of the server, which refuses a request with it. The server
// closes the connection behind it.
type ServerError struct {
	Message string // of the server, for people (docs/protocol.md, "Errors")
}

// Error returns the message, and says that it is the server's.
func (e *ServerError) Error() string { return "the server says: " + e.Message }

// Client is one connection to a store.
//
// The error of a request wraps a *ServerError, the error of its context, that of the
// connection, or wire.ErrMalformed and wire.ErrTooLarge for a wrong reply. Afterwards the
// reply may still be under way: the caller closes the Client and dials again.
type Client struct {
	// Timeout bounds every request, besides its context. 0 is no bound.
	Timeout time.Duration

	conn net.Conn
	r    *bufio.Reader
	out  []byte // the request being encoded
	in   []byte // the last reply
	dec  wire.Decoder
}

// Dial connects to the store at addr (host:port). The caller closes the Client.
func Dial(ctx context.Context, addr string) (*Client, error) {
	d := net.Dialer{Timeout: DialTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the store: %w", err)
	}
	return NewClient(conn), nil
}

// NewClient returns a client on conn, which is open and belongs to the client from then on.
func NewClient(conn net.Conn) *Client {
	return &Client{Timeout: DefaultTimeout, conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

// Close closes the connection, also under a Stream.
func (c *Client) Close() error { return c.conn.Close() }

// start bounds the request that follows by ctx and the timeout. The function
// it returns ends the bound.
func (c *Client) start(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var deadline time.Time
	if c.Timeout > 0 {
		deadline = time.Now().Add(c.Timeout)
	}
	// The deadline of ctx is left to ctx, so that a request it ends says so.
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }, nil
}

// send writes requests as frames in one write.
func (c *Client) send(requests ...wire.Request) error {
	c.out = c.out[:0]
	for i := range requests {
		var mark int
		var err error
		c.out, mark = wire.BeginFrame(c.out)
		if c.out, err = wire.AppendRequest(c.out, &requests[i]); err != nil {
			return err
		}
		wire.EndFrame(c.out, mark)
	}
	_, err := c.conn.Write(c.out)
	if err != nil {
		// A server that refuses an earlier message closes; its reason may
		// still be there to read.
		if _, reason := c.reply(); isServerError(reason) {
			return reason
		}
	}
	return err
}

// reply reads one frame. Its payload is valid until the next.
func (c *Client) reply() ([]byte, error) {
	payload, err := wire.ReadFrame(c.r, c.in, MaxReply)
	if err != nil {
		return nil, err
	}
	c.in = payload
	if msg, ok := wire.ParseError(payload); ok {
		return nil, &ServerError{Message: msg}
	}
	return payload, nil
}

func isServerError(err error) bool {
	_, ok := err.(*ServerError)
	return ok
}

// ask sends requests and returns the one reply they have together.
func (c *Client) ask(ctx context.Context, requests ...wire.Request) ([]byte, error) {
	done, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := c.send(requests...); err != nil {
		return nil, c.wrap(ctx, requests, err)
	}
	payload, err := c.reply()
	if err != nil {
		return nil, c.wrap(ctx, requests, err)
	}
	return payload, nil
}

func (c *Client) wrap(ctx context.Context, requests []wire.Request, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if b := requests[0].Bucket; b != nil {
		return fmt.Errorf("request %d for bucket %q: %w", requests[0].Op, b, err)
	}
	return fmt.Errorf("request %d: %w", requests[0].Op, err)
}
