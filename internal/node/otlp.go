package node

import (
	"net"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/ingest/otlp"
	"dalmatiner/internal/ingest/otlpgrpc"
)

// otlpListener takes OpenTelemetry's gRPC. A nil one is off.
type otlpListener struct {
	ln     net.Listener
	server *otlpgrpc.Server // once it serves
}

// openOTLP opens the socket; it returns nil where the listener is off.
func openOTLP(c *config.Config) (*otlpListener, error) {
	if c.OTLPGRPCAddr == "" {
		return nil, nil
	}
	ln, err := listen("otlp.grpc_addr", c.OTLPGRPCAddr)
	if err != nil {
		return nil, err
	}
	return &otlpListener{ln: ln}, nil
}

// serve serves the socket; start runs a server until it ends.
func (l *otlpListener) serve(n *node, start func(what string, serve func() error)) {
	if l == nil {
		return
	}
	l.server = otlpgrpc.New(otlpgrpc.Options{Metrics: n.otlp, Bucket: n.cfg.OTLPBucket,
		MaxMessage: int(n.cfg.HTTPMaxWrite), MaxConnections: n.cfg.OTLPMaxConnections,
		Refuse: func(reason string) { n.store.Account().RefuseRequest(otlp.Listener + "_" + reason) },
	})
	start("otlp listener", func() error { return l.server.Serve(l.ln) })
	n.logger.Info("otlp over gRPC", "addr", l.ln.Addr().String(), "bucket", n.cfg.OTLPBucket)
	n.warnExposed("otlp.grpc_addr", l.ln.Addr(), "write")
}

// shutdown ends the connections. The socket is closed.
func (l *otlpListener) shutdown() {
	if l != nil {
		l.server.Shutdown()
	}
}

// newOTLP returns the server of OpenTelemetry's metrics, over HTTP and gRPC.
func (n *node) newOTLP() *otlp.Server {
	return otlp.New(otlp.Options{Writers: n.newWriters(otlp.Listener),
		Promote: commaList(n.cfg.OTLPPromote)})
}
