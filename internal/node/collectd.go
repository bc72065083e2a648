package node

import (
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/ingest/collectd"
	"dalmatiner/internal/ingest/datagram"
)

// collectdListener takes packets of collectd over UDP. A nil one is off.
type collectdListener struct {
	packets *datagram.Sockets
	users   *collectd.Users // nil: nobody can sign or encrypt
	types   *collectd.Types
	server  *collectd.Server // once it serves
}

// openCollectd reads the file of users and opens the socket; it returns nil where the listener is
// off.
func openCollectd(c *config.Config, types *collectd.Types) (*collectdListener, error) {
	if c.Collectd.Addr == "" {
		return nil, nil
	}
	l := &collectdListener{types: types}
	if path := c.Collectd.AuthFile; path != "" {
		text, err := os.ReadFile(path)
		if err == nil {
			l.users, err = collectd.NewUsers(text)
		}
		if err != nil {
			return nil, fmt.Errorf("collectd.auth_file %s: %w", path, err)
		}
	}
	if l.users == nil && c.Collectd.Security != "none" {
		return nil, fmt.Errorf("collectd.security_level is %s: name a file of users with "+
			"collectd.auth_file", c.Collectd.Security)
	}
	var err error
	if l.packets, err = datagram.Listen(c.Collectd.Addr, 1, int(c.UDPReadBuffer)); err != nil {
		return nil, fmt.Errorf("collectd.addr: %w; choose another address with --set "+
			"collectd.addr=HOST:PORT", err)
	}
	return l, nil
}

// collectdTypes returns the data sources of types.
func collectdTypes(c *config.Config) (*collectd.Types, error) {
	var db []byte
	if path := c.Collectd.TypesDB; path != "" {
		var err error
		if db, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("collectd.types_db %s: %w", path, err)
		}
	}
	types, err := collectd.NewTypes(db)
	if err != nil {
		return nil, fmt.Errorf("collectd.types_db %s: %w", c.Collectd.TypesDB, err)
	}
	return types, nil
}

// serve serves the socket; start runs a server until it ends.
func (l *collectdListener) serve(n *node, start func(what string, serve func() error)) {
	if l == nil {
		return
	}
	required, _ := collectd.ParseSecurity(n.cfg.Collectd.Security) // the key takes no other names
	_, shared := n.shared()
	l.server = collectd.New(collectd.Options{
		Points: n.points, Tags: n.tagger(), Events: shared, Memory: n.store.Memory(),
		Account: n.store.Account(), Logger: n.logger, Monitor: n.rec, Now: n.store.Now,
		Bucket: n.cfg.Collectd.Bucket, Types: l.types, Users: l.users, Required: required,
	})
	start("collectd UDP socket", func() error { return l.server.ServePackets(l.packets) })
	n.logger.Info("collectd packets", "addr", l.packets.Addr().String(), "bucket",
		n.cfg.Collectd.Bucket)
	if required == collectd.None {
		n.warnExposed("collectd.addr", l.packets.Conns()[0].LocalAddr(), "write")
	}
	n.reportBuffer(l.packets)
}

// close closes the socket.
func (l *collectdListener) close() error {
	if l == nil {
		return nil
	}
	return l.packets.Close()
}

// shutdown ends the server. The socket is closed.
func (l *collectdListener) shutdown() {
	if l != nil {
		l.server.Shutdown()
	}
}

// register adds the counters to /metrics.
func (l *collectdListener) register(reg *prometheus.Registry) {
	if l == nil {
		return
	}
	st := l.server.Stats()
	registerCounters(reg, []senderCounter{
		{"collectd_read_bytes_total", "Bytes received in packets of collectd.", st.BytesRead.Load},
		{"collectd_packets_total", "Packets of collectd received, refused ones included.",
			st.Packets.Load},
		{"collectd_values_total", "Values in packets of collectd.", st.Values.Load},
		{"collectd_notifications_total", "Notifications in packets of collectd.", st.Notices.Load},
		{"collectd_udp_kernel_drop_total",
			"Packets of collectd that the kernel dropped because they came too fast.",
			func() int64 { return int64(l.server.KernelDrops()) }},
	})
}
