package opentsdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/lines"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// Options configure a server of lines. All but Monitor and Idle are required; zero limits take
// their defaults.
type Options struct {
	Points  write.Target
	Tags    write.Tagger
	Memory  *memory.Budget
	Account *account.Account // that refused lines are counted in
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil
	Now     func() time.Time

	Bucket         string // that all points go to
	Version        string // of the program
	MaxConnections int    // 1024
	Idle           time.Duration
}

const defaultMaxConnections = 1024

// Telnet serves connections of lines. A line that is stored has no answer; one that is not has
// one, as from OpenTSDB.
type Telnet struct {
	*lines.Server
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals
	tagger   *labels.Tagger
	ctx      context.Context // ends waits for the store of tags at shutdown
	cancel   context.CancelFunc
	points   atomic.Int64
}

// NewTelnet returns a server that serves nothing yet.
func NewTelnet(o Options) *Telnet {
	t := &Telnet{o: o, log: loglimit.New(o.Logger, time.Now)}
	t.refusals = unacked.NewRefusals(Listener, o.Account, t.log)
	t.tagger = labels.NewTagger(o.Tags, o.Memory, Listener+"-lines", t.refusals)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.Server = lines.New(lines.Options{
		Listener: Listener, Limit: cmp.Or(o.MaxConnections, defaultMaxConnections),
		LimitKey: "opentsdb.max_connections", Memory: o.Memory, Log: t.log, Refusals: t.refusals,
		Idle: o.Idle, Open: t.open,
	})
	o.Memory.Add(memory.Pool{
		Name:  Listener + "-points",
		Holds: "points of lines on their way into the store, 92 KiB for each connection",
		Use:   func() int64 { return int64(t.Connections().Open()) * appender.Size },
	})
	return t
}

// Shutdown closes all connections and waits for them; what they had received is in the store when
// it returns. The caller closes the listeners first.
func (t *Telnet) Shutdown() {
	t.cancel()
	t.Server.Shutdown()
	t.log.Close()
}

func (t *Telnet) open(nc *conns.Conn) lines.Sender {
	bucket := unacked.NewBucket(t.o.Points, t.o.Bucket, t.o.Monitor)
	bucket.Form(appender.Form())
	return &session{t: t, nc: nc, peer: conns.PeerOf(nc), to: appender.New(t.ctx, bucket, t.tagger)}
}

// session is one connection.
type session struct {
	t       *Telnet
	nc      *conns.Conn
	peer    netip.AddrPort
	to      *appender.Appender
	point   datapoint
	missing error  // why there is no bucket to write to
	reason  string // the same for the account

	answer []byte
	mute   bool // the other side takes no answers
}

const (
	// maxAnswer is how much of the answers to one read is sent: a sender of many bad lines has
	// seen enough by then.
	maxAnswer = 16 << 10

	// answerTimeout is how long a sender may leave answers unread. Afterwards it gets none: many
	// never read any, and their points are worth more.
	answerTimeout = time.Second
)

// Begin prepares for the lines of a read.
func (s *session) Begin() error {
	s.missing = s.to.Begin(s.t.o.Now(), s.peer)
	if s.missing == nil {
		return nil
	}
	var ok bool
	if s.reason, ok = unacked.Refused(s.missing); ok {
		return nil
	}
	return s.missing
}

// Line does what a line says.
func (s *session) Line(line []byte) (more bool) {
	word, rest := cutWord(line)
	switch string(word) {
	case "put":
		s.put(line, rest)
	case "version":
		s.say("dalmatiner %s, lines and JSON of OpenTSDB 2.4", s.t.o.Version)
	case "stats":
		s.stats()
	case "help":
		s.say("available commands: exit help put stats version")
	case "exit":
		return false
	default:
		if bytes.HasSuffix(line, []byte(" HTTP/1.1")) {
			s.t.refusals.Count("http_request", s.peer, line)
			s.say("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nlines only: OpenTSDB's HTTP is " +
				"answered at http.addr, POST /api/put")
			return false
		}
		s.t.refusals.Count("unknown_command", s.peer, line)
		s.say("unknown command: %.64s.  Try `help'.", word)
	}
	return true
}

// put stores the point of a line.
func (s *session) put(line, rest []byte) {
	if s.missing != nil {
		s.t.refusals.Count(s.reason, s.peer, line)
		s.say("put: %v", s.missing)
		return
	}
	d := &s.point
	d.metric, rest = cutWord(rest)
	d.time, rest = cutWord(rest)
	d.value, rest = cutWord(rest)
	err := d.lineTags(rest)
	if len(d.value) == 0 {
		err = errArguments
	}
	if err == nil {
		err = d.store(s.to)
	}
	if err != nil {
		s.t.refusals.Count("bad_line", s.peer, line)
		s.say("put: illegal argument: %v: %.120s", err, line)
		return
	}
	s.t.points.Add(1)
}

var errArguments = errors.New("not enough arguments, want metric, time, value and tags")

// lineTags reads the tags of a line.
func (d *datapoint) lineTags(rest []byte) error {
	d.tags = d.tags[:0]
	for len(rest) > 0 {
		var tag []byte
		tag, rest = cutWord(rest)
		name, value, _ := bytes.Cut(tag, []byte("="))
		if len(name) == 0 || len(value) == 0 {
			return errTag
		}
		d.tags = append(d.tags, labels.Label{Name: name, Value: value})
	}
	return nil
}

// cutWord returns what stands before the next blanks, and what behind them.
func cutWord(src []byte) (word, rest []byte) {
	i := bytes.IndexByte(src, ' ')
	if i < 0 {
		return src, nil
	}
	for word, rest = src[:i], src[i+1:]; len(rest) > 0 && rest[0] == ' '; {
		rest = rest[1:]
	}
	return word, rest
}

// stats answers with counters, in the form of points.
func (s *session) stats() {
	now := s.t.o.Now().Unix()
	st := s.t.Stats()
	s.say("dalmatiner.opentsdb.lines %d %d", now, st.Lines.Load())
	s.say("dalmatiner.opentsdb.points %d %d", now, s.t.points.Load())
	s.say("dalmatiner.opentsdb.read_bytes %d %d", now, st.BytesRead.Load())
	s.say("dalmatiner.opentsdb.connections %d %d", now, s.t.Connections().Open())
}

// say answers, unless the answers are too long or nobody reads them.
func (s *session) say(format string, args ...any) {
	if !s.mute && len(s.answer) < maxAnswer {
		s.answer = append(fmt.Appendf(s.answer, format, args...), '\n')
	}
}

// Commit hands the points of a read over, and sends the answers.
func (s *session) Commit() error {
	if s.missing == nil {
		if err := s.to.Commit(); err != nil {
			return err
		}
	}
	if len(s.answer) > 0 {
		s.mute = s.nc.SetWriteDeadline(time.Now().Add(answerTimeout)) != nil
		if _, err := s.nc.Write(s.answer); err != nil {
			s.mute = true // a sender that has left is found out by the next read
		}
		s.answer = s.answer[:0]
	}
	return nil
}

// Close hands over what is left.
func (s *session) Close() error { return s.to.Close() }
