// Package collectd takes what collectd sends: the binary protocol of its plugin network, which may
// be signed or encrypted, and the JSON of its plugin write_http. Values become points, and
// notifications become events. DESIGN.md says under which names.
package collectd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

// Listener is the name under which the account counts what was refused.
const Listener = "collectd"

// Options configure a Server. All but Users and Monitor are required.
type Options struct {
	Points  write.Target
	Tags    write.Tagger
	Events  Events
	Memory  *memory.Budget
	Account *account.Account // that refused packets are counted in
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil
	Now     func() time.Time

	Bucket   string // of points and notifications
	Types    *Types
	Users    *Users   // nil: nobody can sign or encrypt
	Required Security // less safe parts of packets are refused
}

// Events is where notifications go: an events.Store.
type Events interface {
	Write(bucket string, list []events.Event) (events.Written, error)
}

// Stats counts what a server did. The fields only grow.
type Stats struct {
	BytesRead atomic.Int64
	Packets   atomic.Int64 // refused ones included
	Values    atomic.Int64 // refused ones excluded
	Notices   atomic.Int64 // refused ones included
}

// Server takes datagrams.
type Server struct {
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals
	tagger   *labels.Tagger
	packets  datagram.Group
	stats    Stats
	ctx      context.Context // ends waits for the store of tags at Shutdown
	cancel   context.CancelFunc
}

// New returns a server that serves nothing yet. Shutdown must be called.
func New(o Options) *Server {
	s := &Server{o: o, log: loglimit.New(o.Logger, time.Now)}
	s.refusals = unacked.NewRefusals(Listener, o.Account, s.log)
	s.tagger = labels.NewTagger(o.Tags, o.Memory, Listener+"-packets", s.refusals)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// KernelDrops returns how many datagrams the kernel dropped because they came faster than they
// were read.
func (s *Server) KernelDrops() uint64 { return s.packets.Drops() }

// ServePackets takes packets until the sockets are closed, when it returns nil. It closes them when
// one of them fails.
func (s *Server) ServePackets(socks *datagram.Sockets) error {
	return s.packets.Serve(socks, s.readPackets)
}

// Shutdown ends waits. The caller closes the sockets first.
func (s *Server) Shutdown() {
	s.cancel()
	s.log.Close()
}

func (s *Server) readPackets(nc *net.UDPConn) error {
	bucket := unacked.NewBucket(s.o.Points, s.o.Bucket, s.o.Monitor)
	bucket.Form(appender.Form())
	bucket.NeverWait()
	rd := &reader{s: s, to: appender.New(s.ctx, bucket, s.tagger),
		packet: packet{users: s.o.Users, required: s.o.Required}}
	buf := make([]byte, datagram.MaxPayload)
	for {
		n, peer, err := nc.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return rd.to.Close()
		}
		if err == nil {
			rd.peer = peer
			err = rd.take(buf[:n])
		}
		if err != nil {
			return errors.Join(err, rd.to.Close())
		}
	}
}

// reader takes the packets of one socket.
type reader struct {
	s      *Server
	to     *appender.Appender
	packet packet
	peer   netip.AddrPort
	now    time.Time
	events []events.Event
}

// take stores a packet. An error means that nothing can be stored any more.
func (rd *reader) take(src []byte) error {
	rd.s.stats.BytesRead.Add(int64(len(src)))
	rd.s.stats.Packets.Add(1)
	rd.now = rd.s.o.Now()
	if err := rd.to.Begin(rd.now, rd.peer); err != nil {
		reason, ok := unacked.Refused(err)
		if !ok {
			return err
		}
		rd.s.refusals.Count(reason, rd.peer, []byte(err.Error()))
		return nil
	}
	refuse := func(err error) { rd.s.refusals.Count(reason(err), rd.peer, []byte(err.Error())) }
	if err := rd.packet.parse(src, rd, refuse); err != nil {
		refuse(err)
	}
	return errors.Join(rd.to.Commit(), rd.writeEvents())
}

// reason returns the reason under which the account counts an error of a packet.
func reason(err error) string {
	switch {
	case errors.Is(err, errUser):
		return "unknown_user"
	case errors.Is(err, errSignature), errors.Is(err, errChecksum):
		return "bad_signature"
	case errors.Is(err, errInsecure):
		return "insecure"
	case errors.Is(err, errPart), errors.Is(err, errNested):
		return "bad_packet"
	}
	return "bad_values"
}

func (rd *reader) values(r *reading) error {
	if err := r.store(rd.to, rd.s.o.Types, rd.now.UnixNano()); err != nil {
		return err
	}
	rd.s.stats.Values.Add(int64(len(r.words)))
	return nil
}

func (rd *reader) notice(n *notice) error {
	rd.s.stats.Notices.Add(1)
	rd.events = append(rd.events, events.Event{Time: n.ns, Body: n.appendTerm(nil)})
	return nil
}

// writeEvents stores the notifications of a packet.
func (rd *reader) writeEvents() error {
	if len(rd.events) == 0 {
		return nil
	}
	_, err := rd.s.o.Events.Write(rd.s.o.Bucket, rd.events)
	if reason, ok := unacked.Refused(err); ok {
		for range rd.events {
			rd.s.refusals.Count(reason, rd.peer, []byte(err.Error()))
		}
		err = nil
	}
	clear(rd.events)
	rd.events = rd.events[:0]
	if err != nil {
		return fmt.Errorf("storing events: %w", err)
	}
	return nil
}

// severities are the names of the severities of notifications.
var severities = map[uint64]string{1: "failure", 2: "warning", 4: "okay"}

// appendTerm appends a notification as the body of an event.
func (n *notice) appendTerm(dst []byte) []byte {
	dst, mark := term.BeginMap(term.Begin(dst))
	keys := 1
	for _, f := range []struct {
		name string
		text []byte
	}{
		{"severity", []byte(severities[n.severity])}, {"host", n.host}, {"plugin", n.plugin},
		{"plugin_instance", n.instance}, {"type", n.kind}, {"type_instance", n.kindInstance},
	} {
		if len(f.text) > 0 {
			dst = term.AppendText(term.AppendText(dst, f.name), f.text)
			keys++
		}
	}
	dst = term.AppendText(term.AppendText(dst, "message"), n.text)
	term.EndMap(dst, mark, keys)
	return dst
}
