// Package node puts a store, its listeners and its monitor together into a running
// node.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi"
	"dalmatiner/internal/api/httpapi/ducksproxy"
	"dalmatiner/internal/api/httpapi/figures"
	"dalmatiner/internal/api/httpapi/senders"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/collectd"
	"dalmatiner/internal/ingest/ddbtcp"
	"dalmatiner/internal/ingest/exposition"
	"dalmatiner/internal/ingest/influx"
	"dalmatiner/internal/ingest/jsonlines"
	"dalmatiner/internal/ingest/loki"
	"dalmatiner/internal/ingest/opentsdb"
	"dalmatiner/internal/ingest/otlp"
	"dalmatiner/internal/ingest/remotewrite"
	"dalmatiner/internal/ingest/scrape"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/local"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/write"
)

// drainTimeout is how long HTTP requests under way may take at shutdown.
const drainTimeout = 5 * time.Second

// node is a running node.
type node struct {
	cfg       config.Config
	logger    *slog.Logger
	recent    *recentLog
	memory    *processMemory
	results   *query.Cache
	store     *store.Store
	cluster   *clusterPart      // nil: the node is on its own
	ducks     *ducksproxy.Proxy // nil: none is known
	points    write.Target      // where all points go
	rec       *monitor.Recorder
	tcp       *ddbtcp.Server
	listeners *listeners
	writers   []*acked.Writers // of all senders over HTTP and gRPC, and of what is scraped
	otlp      *otlp.Server     // over HTTP and gRPC
	loki      *loki.Server
	figures   *prometheus.Registry // of /metrics
	scraper   *scrape.Scraper      // nil: nothing is scraped
	hangups   chan os.Signal       // that make the scraper read its file anew
	http      *http.Server
	ahead     *ahead.Senders // whose clocks are ahead
	up        atomic.Bool
	status    status
	failed    chan error // the first failure after which the node must end
}

// Run runs a node until ctx ends or it can no longer keep its promises; in
// both cases everything that can be made durable is. ready is called with the
// addresses the node listens on once it answers.
func Run(ctx context.Context, cfg config.Config, logger *slog.Logger,
	ready func(tcpAddr, httpAddr string)) (err error) {
	if err := checkCluster(&cfg); err != nil {
		return err
	}
	recent, logger := keepRecent(logger)
	n := &node{
		cfg:    cfg,
		logger: logger,
		recent: recent,
		rec:    monitor.New(),
		failed: make(chan error, 8),
	}
	if err := n.openDucks(); err != nil {
		return err
	}
	n.memory = newMemory(&cfg)
	n.results = newQueryCache(&cfg, n.memory.budget)
	defer n.memory.forget()
	opts, err := n.storeOptions()
	if err != nil {
		return err
	}
	// The listeners come first: a port that is taken should not cost a replay.
	tcpLn, err := listen("tcp.addr", cfg.TCPAddr)
	if err != nil {
		return inUse(ctx, err, &cfg)
	}
	httpLn, err := listen("http.addr", cfg.HTTPAddr)
	if err != nil {
		return errors.Join(inUse(ctx, err, &cfg), tcpLn.Close())
	}
	n.warnExposed("tcp.addr", tcpLn.Addr(), "write, read and delete")
	n.warnExposed("http.addr", httpLn.Addr(), "write, read and delete")
	if n.listeners, err = openListeners(&n.cfg); err != nil {
		return errors.Join(err, tcpLn.Close(), httpLn.Close())
	}
	start := time.Now()
	if n.store, err = store.Open(opts); err != nil {
		return errors.Join(err, tcpLn.Close(), httpLn.Close(), n.listeners.close())
	}
	if n.cluster, err = n.openCluster(); err != nil {
		return errors.Join(err, n.store.Close(), tcpLn.Close(), httpLn.Close(), n.listeners.close())
	}
	if n.points = n.store.Intake(); n.cluster != nil {
		n.points = n.cluster.Points()
	}
	n.figures = figures.NewRegistry(n.store)
	if err := n.startScraper(); err != nil {
		return errors.Join(err, n.cluster.Close(), n.store.Close(), tcpLn.Close(), httpLn.Close(),
			n.listeners.close())
	}
	st := n.store.Stats()
	logger.Info("store open", "took", time.Since(start).Round(time.Millisecond), "series", st.Series,
		"segments", st.Segments.Count, "replayed_records", st.Replay.Records)
	return n.serve(ctx, tcpLn, httpLn, ready)
}

func listen(key, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another address with --%s", key, err,
			strings.ReplaceAll(key, ".", "-"))
	}
	return ln, nil
}

// inUse adds to the error of a taken address the node that answers there and the process that uses
// the data directory. Most often both are the same.
func inUse(ctx context.Context, err error, cfg *config.Config) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	there := admin.Client{Addr: dialable(cfg.HTTPAddr)}
	if _, who := there.Who(ctx); who != "" {
		err = fmt.Errorf("%w; there is %s", err, who)
	}
	if pid := datadir.Holder(cfg.DataDir); pid != 0 {
		err = fmt.Errorf("%w; process %d has data directory %s in use", err, pid, cfg.DataDir)
	}
	return err
}

// dialable returns where a node answers that listens on an address: on all of them is on the
// loopback.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return addr
}

func (n *node) storeOptions() (store.Options, error) {
	c := n.cfg
	mode, err := wal.ParseSyncMode(c.WALSync)
	if err != nil {
		return store.Options{}, err
	}
	o := store.DefaultOptions(c.DataDir)
	o.Logger = n.logger
	o.UnknownBuckets = store.UnknownBuckets{
		Create:     c.AutoCreate,
		Resolution: c.Resolution.Milliseconds(),
		PPF:        c.PointsPerFile,
		TTL:        c.Lifetime,
	}
	o.CachePoints, o.HeadGrace, o.MaxFuture = c.CachePoints, c.HeadGrace, c.MaxFuture
	o.WALSync, o.WALInterval, o.WALMaxSize = mode, c.WALInterval, c.WALMaxSize
	o.FlushBytes, o.FlushInterval, o.LateMemory, o.MinFree = c.FlushBytes, c.FlushInterval,
		c.LateMemory, c.MinFree
	if o.MaxOpenFiles = c.MaxOpenFiles; o.MaxOpenFiles == config.MaxOpenFilesAuto {
		o.MaxOpenFiles = openFiles()
	}
	o.BlockCache = c.BlockCache
	o.BackgroundMerge, o.Memory = c.MergeBackground, n.memory.budget
	o.SharedTags = c.Cluster.IsEnabled()
	o.OnFatal = n.fail
	o.FlushTook = func(d time.Duration) {
		n.rec.Observe(monitor.StoreWrite, d)
		n.memory.flushed.Store(true)
	}
	return o, nil
}

// fail ends the node; only the first failure matters.
func (n *node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

func (n *node) serve(ctx context.Context, tcpLn, httpLn net.Listener,
	ready func(tcpAddr, httpAddr string)) error {
	n.status.begin(n, tcpLn.Addr(), httpLn.Addr())
	told := loglimit.New(n.logger, time.Now)
	defer told.Close()
	n.ahead = ahead.New(told)
	shared, events := n.shared()
	n.tcp = ddbtcp.New(ddbtcp.Options{
		Points: n.points, Store: shared, Events: events, Logger: n.logger, Monitor: n.rec,
		Memory:         n.memory.queries,
		MaxConnections: n.cfg.TCPMaxConnections, MaxFrame: int(n.cfg.TCPMaxFrame),
		MaxSlots: n.cfg.TCPMaxSlots,
		Idle:     n.cfg.TCPIdle, InputStall: n.cfg.InputStall, ReplyStall: n.cfg.ReplyStall,
		Ahead: n.ahead, NodeFlag: admin.NodeFlag(httpLn.Addr().String()),
	})
	n.otlp = n.newOTLP()
	n.loki = loki.New(loki.Options{Bucket: n.cfg.LokiBucket, Points: n.points, Events: events,
		Account: n.store.Account(), Ahead: n.ahead, Logger: n.logger, Now: n.store.Now})
	defer n.loki.Close()
	n.listeners.serve(n)
	open := newHTTPConns(n.cfg.HTTPMaxConnections, loglimit.New(n.logger, time.Now))
	n.http = httpapi.NewServer(n.handler(open), n.logger, n.cfg.HTTPIdle)
	go func() {
		if err := n.tcp.Serve(tcpLn); err != nil {
			n.fail(fmt.Errorf("tcp listener: %w", err))
		}
	}()
	go func() {
		if err := n.http.Serve(open.Listener(httpLn)); err != nil &&
			!errors.Is(err, http.ErrServerClosed) {
			n.fail(fmt.Errorf("http listener: %w", err))
		}
	}()
	monitorCtx, stopMonitor := context.WithCancel(context.Background())
	monitorDone := make(chan struct{})
	go func() {
		defer close(monitorDone)
		defer n.status.follow(monitorCtx, n)()
		defer n.memory.follow(monitorCtx, n.results.Drop)()
		if n.cfg.SelfMonitor {
			n.selfMonitor(monitorCtx)
		}
	}()
	n.up.Store(true)
	ready(tcpLn.Addr().String(), httpLn.Addr().String())

	var failure error
	select {
	case <-ctx.Done():
	case failure = <-n.failed:
	}
	n.up.Store(false)
	n.store.ReleaseSenders() // who waits for room could not end
	stopMonitor()
	<-monitorDone
	return errors.Join(failure, n.shutdown(tcpLn))
}

// shutdown stops the listeners and then closes the store: what was received is in
// it by then.
func (n *node) shutdown(tcpLn net.Listener) error {
	_ = tcpLn.Close() // it may have failed already
	n.stopScraper()
	n.tcp.Shutdown()
	n.listeners.shutdown(n.store.Account())
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := n.http.Shutdown(ctx); err != nil {
		n.logger.Warn("requests under way were cut", "err", err)
		_ = n.http.Close() // Shutdown's error was logged
	}
	var err error
	for _, w := range n.writers {
		err = errors.Join(err, w.Close())
	}
	return errors.Join(err, n.cluster.Close(), n.store.Close())
}

// sharedStore is the store as all nodes of a cluster show it: that of this node where it is on its
// own.
type sharedStore interface {
	ddbtcp.Store
	httpapi.Store
}

// shared returns what clients read and change: what all nodes of a cluster have, or this node where
// it is on its own.
func (n *node) shared() (sharedStore, events.Store) {
	if n.cluster != nil {
		return n.cluster.Store(), n.cluster.Events()
	}
	return n.store, n.store.Events()
}

// tagger takes the tags of series: for the cluster, or for this node where it is on its own.
func (n *node) tagger() write.Tagger {
	if n.cluster != nil {
		return n.cluster.Tags().Tagger()
	}
	return tagstore.Tagger{Of: n.store.Tags()}
}

// sharedTags returns the tags of the cluster, or of this node where it is on its own.
func (n *node) sharedTags() httpapi.Tags {
	if n.cluster != nil {
		return n.cluster.Tags()
	}
	return n.store.Tags()
}

func (n *node) handler(open *httpConns) http.Handler {
	reg := n.figures
	reg.MustRegister(figures.NewBeside(n.store))
	registerTCP(reg, n.tcp)
	n.listeners.register(reg)
	open.register(reg)
	registerQueryCache(reg, n.results)
	if n.cluster != nil {
		reg.MustRegister(clusterFigures{n.cluster})
	}
	shared, events := n.shared()
	return httpapi.New(httpapi.Options{
		Store: shared, Neighbours: httpapi.Neighbours{
			Cluster: n.cluster.operator(),
			Ducks:   n.ducks,
			Ahead:   n.ahead,
			Scraper: n.scraper,
		}, Points: n.points, Events: events, EventAccount: n.store.Events().Account(),
		Tags: n.sharedTags(), Arrivals: n.store.Intake(), Operator: store.NewOperations(n.store),
		Status: n.report, Log: n.recent.list, Engine: n.engine(), Registry: reg, Logger: n.logger,
		QueryTimeout: n.cfg.QueryTimeout, SlowQuery: n.cfg.QuerySlow,
		MaxBody: n.cfg.HTTPMaxBody, Hosts: commaList(n.cfg.HTTPHosts), Pprof: n.cfg.HTTPPprof,
		Ready: n.up.Load, Version: n.cfg.Version, Compat: n.cfg.DQLCompat,
		Memory: n.memory.queries, Bodies: httpapi.NewBodies(n.memory.budget, n.cfg.InputStall,
			max(n.cfg.HTTPMaxBody, n.cfg.HTTPMaxWrite)), ReplyStall: n.cfg.ReplyStall,
		Senders: n.senders(shared),
	})
}

// source is what queries read of this node.
func (n *node) source() source.Source {
	return local.New(local.Options{Store: n.store, Tags: n.store.Tags().Index(), Latency: n.rec,
		Slots: &n.status.read})
}

// senders are those of points over HTTP.
func (n *node) senders(shared sharedStore) *senders.Options {
	c := &n.cfg
	return &senders.Options{
		RemoteWrite:       remotewrite.New(n.newWriters(remotewrite.Listener)),
		RemoteWriteBucket: c.RemoteWriteBucket,
		Influx:            influx.New(n.newWriters(influx.Listener), n.store.Now),
		InfluxBucket:      c.InfluxBucket,
		OpenTSDB:          opentsdb.New(n.newWriters(opentsdb.Listener)),
		OpenTSDBBucket:    c.OpenTSDB.Bucket,
		OTLP:              n.otlp,
		OTLPBucket:        c.OTLPBucket,
		Loki:              n.loki,
		Exposition:        exposition.New(n.newWriters(exposition.Listener)),
		Collectd:          collectd.NewJSON(n.newWriters(collectd.Listener), n.listeners.collectdTypes),
		CollectdBucket:    c.Collectd.Bucket,
		JSONLines:         jsonlines.New(n.newWriters(jsonlines.Listener)),
		Now:               n.store.Now,
		MaxBody:           c.HTTPMaxWrite,
		Buckets:           shared.Buckets,
	}
}

// newWriters returns the way of a listener's requests into buckets. It is closed with the node.
func (n *node) newWriters(listener string) *acked.Writers {
	w := acked.New(acked.Options{
		Listener: listener, Points: n.points, Tags: n.tagger(), Memory: n.store.Memory(),
		Account: n.store.Account(), Logger: n.logger, Monitor: n.rec, Now: n.store.Now,
	})
	n.writers = append(n.writers, w)
	return w
}

func (n *node) engine() *query.Engine {
	e := &query.Engine{
		Source: n.source(),
		Events: n.store.Events(),
		Now:    time.Now,
		// With its own goroutine a query reads on every processor; many at once
		// have little more than one each, and leave ingest its share.
		Readers: query.NewReaders(runtime.GOMAXPROCS(0) - 1),
		Cache:   n.results,
		Limits: query.Limits{
			MaxPoints: n.cfg.QueryMaxPoints,
			MaxSeries: n.cfg.QueryMaxSeries,
			MaxOutput: n.cfg.QueryMaxOutput,
			MaxMemory: n.cfg.QueryMaxMemory,
		},
	}
	if n.cluster != nil {
		e.Source, e.Events = n.cluster.Source(), n.cluster.Events()
	}
	return e
}

// commaList returns what stands between the commas of a text.
func commaList(text string) (list []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}
