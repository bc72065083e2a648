package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"dalmatiner/bench/server"
	"dalmatiner/client"
	"dalmatiner/internal/api/eventjson"
	"dalmatiner/internal/wire"
)

const (
	// EventPosts is how many posts of events there are at once. Each waits for the next sync of the
	// log, which comes once a second: with a few of them the wait would be the rate.
	EventPosts = 64
	// EventLines is how many events a post has. They are less than http.max_body.
	EventLines = 4000

	eventList = 1000 // events of a request of opcode 13
)

// parts calls send with ranges of the events, in their order, from some connections at once.
func (e *Events) parts(ctx context.Context, connections, size int,
	send func(ctx context.Context, next func() (from, to int)) error) error {
	var taken atomic.Int64
	next := func() (from, to int) {
		to = int(taken.Add(int64(size)))
		return min(to-size, e.N), min(to, e.N)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			if err := send(ctx, next); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Post sends the events as JSON lines over HTTP. All are durable when it returns.
func (e *Events) Post(ctx context.Context, s *server.Server, bucket string) error {
	httpClient := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: EventPosts}}
	defer httpClient.CloseIdleConnections()
	return e.parts(ctx, EventPosts, EventLines,
		func(ctx context.Context, next func() (from, to int)) error {
			var body []byte
			for {
				from, to := next()
				if from == to {
					return nil
				}
				body = body[:0]
				for i := from; i < to; i++ {
					body = e.AppendLine(body, i)
				}
				if err := post(ctx, httpClient, "http://"+s.HTTP+"/events/"+bucket, body, to-from); err != nil {
					return err
				}
			}
		})
}

func post(ctx context.Context, httpClient *http.Client, url string, body []byte, events int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	var report eventjson.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	if n := report.Accepted + report.Late; n != uint64(events) {
		return fmt.Errorf("%d of %d events of a post are stored: %.200s", n, events, text)
	}
	return nil
}

// Write sends the events with opcode 13. All are stored when it returns.
func (e *Events) Write(ctx context.Context, s *server.Server, bucket string) error {
	return e.parts(ctx, Connections, eventList,
		func(ctx context.Context, next func() (from, to int)) error {
			c, err := client.Dial(ctx, s.TCP)
			if err != nil {
				return err
			}
			defer c.Close()
			for list := make([]wire.Event, 0, eventList); ; list = list[:0] {
				from, to := next()
				if from == to {
					return nil
				}
				for i := from; i < to; i++ {
					list = append(list, e.Term(i))
				}
				if err := c.WriteEvents(ctx, bucket, list); err != nil {
					return err
				}
			}
		})
}

// Syslog sends the events as messages over TCP. The server may not have read all when it returns.
func (e *Events) Syslog(ctx context.Context, addr string) error {
	return e.parts(ctx, Connections, eventList,
		func(ctx context.Context, next func() (from, to int)) error {
			var dial net.Dialer
			c, err := dial.DialContext(ctx, "tcp", addr)
			if err != nil {
				return err
			}
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			var part []byte
			for {
				from, to := next()
				if from == to {
					return nil
				}
				part = part[:0]
				for i := from; i < to; i++ {
					part = e.AppendSyslog(part, i)
				}
				if _, err := c.Write(part); err != nil {
					return err
				}
			}
		})
}
