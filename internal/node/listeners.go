package node

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/ingest/collectd"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/ddbudp"
	"dalmatiner/internal/ingest/graphite"
	"dalmatiner/internal/model/account"
)

// listeners are the ways in that are off unless they are configured: Graphite and
// the original's old UDP form.
type listeners struct {
	text, pickle net.Listener      // nil when off
	packets      *datagram.Sockets // of Graphite; nil when off
	put          *datagram.Sockets // of the old form; nil when off

	syslog   *syslogListener   // nil when off
	openTSDB *openTSDBListener // nil when off
	statsD   *statsDListener   // nil when off
	otlp     *otlpListener     // nil when off
	collectd *collectdListener // nil when off

	collectdTypes *collectd.Types // of packets and JSON
	graphite      *graphite.Server
	udp           *ddbudp.Server // nil when off
	serving       sync.WaitGroup

	dropsMu sync.Mutex
	counted map[*datagram.Sockets]uint64 // drops that are in the account
}

// openListeners opens the sockets of the listeners that are on.
func openListeners(c *config.Config) (*listeners, error) {
	d := &listeners{counted: make(map[*datagram.Sockets]uint64)}
	var err error
	if c.GraphiteAddr != "" {
		d.text, d.packets, err = listenBoth("graphite.addr", c.GraphiteAddr, int(c.UDPReadBuffer))
	}
	if err == nil {
		d.syslog, err = openSyslog(c)
	}
	if err == nil {
		d.openTSDB, err = openOpenTSDB(c)
	}
	if err == nil {
		d.statsD, err = openStatsD(c)
	}
	if err == nil {
		d.otlp, err = openOTLP(c)
	}
	if err == nil {
		d.collectdTypes, err = collectdTypes(c)
	}
	if err == nil {
		d.collectd, err = openCollectd(c, d.collectdTypes)
	}
	if err == nil && c.GraphitePickleAddr != "" {
		d.pickle, err = listen("graphite.pickle_addr", c.GraphitePickleAddr)
	}
	if err == nil && c.UDPListeners > 0 {
		d.put, err = datagram.Listen(c.UDPAddr, c.UDPListeners, int(c.UDPReadBuffer))
		if err != nil {
			err = fmt.Errorf("udp.addr: %w; choose another address with --set udp.addr=HOST:PORT", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// portTries is how often a free TCP port is taken until the UDP port of the
// same number is free as well.
const portTries = 20

// close closes the sockets.
func (d *listeners) close() error {
	errs := []error{d.statsD.close(), d.collectd.close()}
	lines, packets := []net.Listener{d.text, d.pickle}, []*datagram.Sockets{d.packets, d.put}
	if d.syslog != nil {
		lines, packets = append(lines, d.syslog.text), append(packets, d.syslog.packets)
	}
	if d.openTSDB != nil {
		lines = append(lines, d.openTSDB.text)
	}
	if d.otlp != nil {
		lines = append(lines, d.otlp.ln)
	}
	for _, ln := range lines {
		if ln != nil {
			errs = append(errs, ln.Close())
		}
	}
	for _, s := range packets {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// serve serves the open listeners until shutdown. One that fails ends the node.
func (d *listeners) serve(n *node) {
	d.graphite = graphite.New(graphite.Options{
		Points: n.points, Tags: n.tagger(), Memory: n.store.Memory(), Account: n.store.Account(),
		Now:    n.store.Now,
		Logger: n.logger, Monitor: n.rec, Bucket: n.cfg.GraphiteBucket,
		MaxConnections: n.cfg.GraphiteMaxConnections, MaxLine: int(n.cfg.GraphiteMaxLine),
		Idle: n.cfg.GraphiteIdle, InputStall: n.cfg.InputStall, MaxFuture: n.cfg.MaxFuture,
		Ahead: n.ahead,
	})
	start := func(what string, serve func() error) {
		d.serving.Go(func() {
			if err := serve(); err != nil {
				n.fail(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	if d.text != nil {
		start("graphite listener", func() error { return d.graphite.ServeText(d.text) })
		start("graphite UDP socket", func() error { return d.graphite.ServePackets(d.packets) })
		n.logger.Info("graphite lines", "addr", d.text.Addr().String(), "bucket", n.cfg.GraphiteBucket)
		n.warnExposed("graphite.addr", d.text.Addr(), "write")
		n.reportBuffer(d.packets)
	}
	if d.pickle != nil {
		start("graphite pickle listener", func() error { return d.graphite.ServePickle(d.pickle) })
		n.logger.Info("graphite pickled lists", "addr", d.pickle.Addr().String(), "bucket",
			n.cfg.GraphiteBucket)
		n.warnExposed("graphite.pickle_addr", d.pickle.Addr(), "write")
	}
	d.syslog.serve(n, start)
	d.openTSDB.serve(n, start)
	d.statsD.serve(n, start)
	d.otlp.serve(n, start)
	d.collectd.serve(n, start)
	if d.put != nil {
		d.udp = ddbudp.New(ddbudp.Options{
			Points:  n.points,
			Account: n.store.Account(),
			Logger:  n.logger,
			Monitor: n.rec,
		}, d.put)
		start("UDP sockets", d.udp.Serve)
		n.logger.Info("udp put", "addr", d.put.Addr().String(), "listeners", n.cfg.UDPListeners)
		n.warnExposed("udp.addr", d.put.Conns()[0].LocalAddr(), "write")
		n.reportBuffer(d.put)
	}
}

// reportBuffer says when the system gave a socket less than was asked for.
func (n *node) reportBuffer(s *datagram.Sockets) {
	if got := int64(s.Buffer()); got < n.cfg.UDPReadBuffer {
		n.logger.Warn("the receive buffer of a UDP socket is smaller than udp.read_buffer; raise "+
			"net.core.rmem_max",
			"addr", s.Addr().String(), "buffer", config.FormatSize(got), "wanted",
			config.FormatSize(n.cfg.UDPReadBuffer))
	}
}

// shutdown closes the listeners and waits until what they received is in the
// store.
func (d *listeners) shutdown(acc *account.Account) {
	d.statsD.drain()
	_ = d.close() // a listener may have failed already, which ended the node
	d.graphite.Shutdown()
	d.syslog.shutdown()
	d.openTSDB.shutdown()
	d.statsD.shutdown()
	d.otlp.shutdown()
	d.collectd.shutdown()
	d.serving.Wait()
	d.countDrops(acc)
}

// countDrops enters into the account what the kernel has dropped since the last
// call. Datagrams are requests there: nobody knows how many points they held.
func (d *listeners) countDrops(acc *account.Account) {
	d.dropsMu.Lock()
	defer d.dropsMu.Unlock()
	sockets := map[string]*datagram.Sockets{"graphite_udp_kernel_drop": d.packets,
		"udp_kernel_drop": d.put}
	if d.syslog != nil {
		sockets["syslog_udp_kernel_drop"] = d.syslog.packets
	}
	if d.statsD != nil {
		sockets["statsd_udp_kernel_drop"] = d.statsD.packets
	}
	if d.collectd != nil {
		sockets["collectd_udp_kernel_drop"] = d.collectd.packets
	}
	for reason, s := range sockets {
		if s == nil {
			continue
		}
		n := s.Drops()
		acc.RefuseRequests(reason, n-d.counted[s])
		d.counted[s] = n
	}
}

// register adds the counters of the listeners that are on to /metrics.
func (d *listeners) register(reg *prometheus.Registry) {
	counter := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_" + name,
			Help: help}, value))
	}
	if d.text != nil || d.pickle != nil {
		st := d.graphite.Stats()
		registerConns(reg, "graphite", "connections of Graphite senders", d.graphite.Connections())
		counter("graphite_read_bytes_total", "Bytes received from Graphite senders.", func() float64 {
			return float64(st.BytesRead.Load())
		})
		counter("graphite_lines_total", "Lines received, refused ones included.", func() float64 {
			return float64(st.Lines.Load())
		})
		counter("graphite_frames_total", "Pickled lists received, refused ones included.",
			func() float64 {
				return float64(st.Frames.Load())
			})
		counter("graphite_datagrams_total", "Datagrams of lines received.", func() float64 {
			return float64(st.Datagrams.Load())
		})
		counter("graphite_udp_kernel_drop_total",
			"Datagrams of lines that the kernel dropped because they came too fast.",
			func() float64 { return float64(d.graphite.KernelDrops()) })
	}
	d.syslog.register(reg)
	d.openTSDB.register(reg)
	d.statsD.register(reg)
	d.collectd.register(reg)
	if d.udp != nil {
		st := d.udp.Stats()
		counter("udp_datagrams_total", "Datagrams of points received, refused ones included.",
			func() float64 {
				return float64(st.Datagrams.Load())
			})
		counter("udp_read_bytes_total", "Bytes received in datagrams of points.", func() float64 {
			return float64(st.BytesRead.Load())
		})
		counter("udp_kernel_drop_total",
			"Datagrams of points that the kernel dropped because they came too fast.",
			func() float64 { return float64(d.udp.KernelDrops()) })
	}
}
