package rows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/client"
	"dalmatiner/haggar"
	"dalmatiner/internal/codec/point"
)

const (
	restartBudget = 2 // seconds to ingest
	answerBudget  = 5 // seconds to a query

	fullLog        = 900 << 20 // bytes; at wal.max_size, 1 GiB, the store flushes
	restartRows    = 50        // sent at a time
	restartTimeout = 2 * time.Minute
)

// restart fills the log with 1 M series, kills the store, drops its files from
// the page cache and takes the time from the start of a new process to an
// acknowledged point and to an answered query.
func (b *bench) restart(ctx context.Context) error {
	data := filepath.Join(b.Dir, "restart")
	// Only the size of the log is to make the store flush.
	s, err := b.Start(data, "flush.bytes=8GB")
	if err != nil {
		return err
	}
	defer func() { s.Remove() }()
	c, sent, err := b.fillLog(ctx, s)
	if err != nil {
		return err
	}
	u, err := diskUsage(data)
	if err != nil {
		return err
	}
	s.Kill()
	if err := evict(data); err != nil {
		return err
	}
	again, err := server.Launch(b.Command(data, "tcp.addr="+s.TCP, "http.addr="+s.HTTP,
		"wal.sync=always", "flush.bytes=8GB"), data)
	if err != nil {
		return err
	}
	again.TCP, again.HTTP = s.TCP, s.HTTP
	s = again
	begun := time.Now()
	ingest, query, err := firstAnswers(ctx, s, &c, begun)
	if err != nil {
		return fmt.Errorf("%w: %s", err, s.LastLines())
	}
	whole, err := untilInMemory(ctx, s, begun)
	if err != nil {
		return err
	}
	recovered, err := s.Received(ctx, c.Bucket)
	if err != nil {
		return err
	}
	_, peak, err := s.Memory()
	if err != nil {
		return err
	}
	area := "restart after kill -9, 1 M series"
	b.table.Add(report.Figure{Area: area, What: "to an acknowledged point", Unit: "s",
		Value: ingest.Seconds(), Budget: restartBudget}.
		Because("from the start of the process, wal.sync = always; log files of %d MiB, not in the "+
			"page cache; no segments", u.log>>20))
	b.table.Add(report.Figure{Area: area, What: "to an answered query", Unit: "s",
		Value: query.Seconds(), Budget: answerBudget}.
		Because("one minute of one series by HTTP; %d of %d M points were recovered, %.1f %% stood in "+
			"the process's buffers",
			(recovered-1)/1e6, sent/1e6, 100*(1-float64(recovered-1)/float64(sent))))
	b.table.Add(report.Figure{Area: area, What: "to all points in memory", Unit: "s",
		Value: whole.Seconds()}.
		Because("points of known series and queries are taken meanwhile; peak memory %.0f MiB",
			measure.Mebi(peak)))
	return s.Stop()
}

// fillLog sends rows until the log is nearly full. The configuration it returns
// is that of the last rows.
func (b *bench) fillLog(ctx context.Context,
	s *server.Server) (c haggar.Config, sent int64, err error) {
	c = load.Uniform(load.Connections, 489*load.GroupWidth, restartRows)
	c.Start = c.Start.Add(-6 * time.Hour)
	for last := 0.0; ; c.Start = c.Start.Add(restartRows * time.Second) {
		sum, err := load.Send(ctx, b.Env, s, c)
		if err != nil {
			return c, 0, err
		}
		sent += sum.Points
		size, err := s.Stat(ctx, "wal_bytes")
		if err != nil {
			return c, 0, err
		}
		b.Logf("  the log has %.0f MiB", size/(1<<20))
		if size < last {
			return c, 0, fmt.Errorf("the log shrank from %.0f to %.0f bytes before it had %d: the store "+
				"flushed", last, size, fullLog)
		}
		if size >= fullLog {
			return c, sent, nil
		}
		last = size
	}
}

// firstAnswers returns how long after begun a point was acknowledged and a
// query answered. Both are asked at once, again and again while nobody listens.
func firstAnswers(ctx context.Context, s *server.Server, c *haggar.Config, begun time.Time) (ingest,
	query time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	var ingestErr, queryErr error
	var both sync.WaitGroup
	both.Go(func() {
		ingestErr = untilUp(ctx, s, func() error { return onePoint(ctx, s.TCP, c) })
		ingest = time.Since(begun)
	})
	both.Go(func() {
		queryErr = untilUp(ctx, s, func() error { return oneQuery(ctx, s, c) })
		query = time.Since(begun)
	})
	both.Wait()
	return ingest, query, errors.Join(ingestErr, queryErr)
}

// untilInMemory returns how long after begun all points of the log were in memory.
func untilInMemory(ctx context.Context, s *server.Server, begun time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	for {
		left, err := s.Stat(ctx, "replay_left_bytes")
		if err != nil || left == 0 {
			return time.Since(begun), err
		}
		if err := measure.Pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// untilUp tries again while load.Connections are refused.
func untilUp(ctx context.Context, s *server.Server, try func() error) error {
	retry := time.NewTicker(2 * time.Millisecond)
	defer retry.Stop()
	for {
		err := try()
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		select {
		case <-retry.C:
		case <-s.Exited():
			return errors.New("the server ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// onePoint writes a point of a new slot of a known series and waits for its
// acknowledgement.
func onePoint(ctx context.Context, addr string, c *haggar.Config) error {
	conn, err := client.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.OpenAckStream(c.Bucket)
	if err != nil {
		return err
	}
	slot := c.Start.Unix() + restartRows
	if err := stream.Point(c.AppendKey(nil, 0, 0), slot, point.FromInt(1)); err != nil {
		return err
	}
	if _, err := stream.FlushAck(); err != nil {
		return err
	}
	if err := stream.SetDeadline(time.Now().Add(restartTimeout)); err != nil {
		return err
	}
	ack, err := stream.ReadAck()
	if err == nil && (ack.Received != 1 || ack.Refused != 0) {
		err = fmt.Errorf("one point was acknowledged as %+v", ack)
	}
	return err
}

// oneQuery asks for rows from the middle of the last load and compares them:
// the very last may have been in the process's buffers.
func oneQuery(ctx context.Context, s *server.Server, c *haggar.Config) error {
	at := c.Start.Unix()
	q := load.Query{
		Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1m) %s", load.Name(c, 1, 7), c.Bucket,
			load.Over(at-60, at, 60).DQL()),
		Want: [][]float64{load.Over(at-60, at, 60).Max(c, 1, 7)},
	}
	admin := s.Client()
	admin.HTTP = &http.Client{Timeout: restartTimeout,
		Transport: &http.Transport{DisableKeepAlives: true}}
	// Only a refusal to connect is tried again, and the client words it anew.
	resp, err := admin.HTTP.Get("http://" + s.HTTP + "/health")
	if err != nil {
		return err
	}
	resp.Body.Close()
	var body bytes.Buffer
	if err := admin.CopyQuery(ctx, &body, q.Text); err != nil {
		return err
	}
	return q.Check(body.Bytes())
}

// fadviseDontNeed is POSIX_FADV_DONTNEED.
const fadviseDontNeed = 4

// evict writes the files of a directory to disk and drops them from the page
// cache.
func evict(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil {
			return err
		}
		if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, fadviseDontNeed, 0,
			0); e != 0 {
			return fmt.Errorf("drop %s from the page cache: %w", path, e)
		}
		return nil
	})
}
