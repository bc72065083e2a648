package config

import (
	"math"
	"net/url"
	"slices"
	"time"
)

// key is one row of the registry. Rows that alter another key are spellings of
// the original for a part of it and are not listed.
type key struct {
	name    string
	old     string // the original's name for the same thing
	def     string
	help    string
	secret  bool // its value is never shown
	cluster bool // changes nothing without cluster.listen

	alters string // of another spelling: the key that it sets
	set    func(c *Config, text string) error
	get    func(c *Config) string
	warn   func(c *Config, text string) string
}

// inert reports whether the key changes nothing with what the others say.
func (k *key) inert(c *Config) bool { return k.cluster && !c.Cluster.IsEnabled() }

// Limits that more than one row or message needs.
const (
	maxCachePoints = 720 // a chunk's length: a block must not span two
	maxRing        = 4096

	// A line must fit a read buffer, and no name is longer.
	maxGraphiteLine = 64 << 10
	// More sockets than cores only spread the senders thinner.
	maxUDPListeners = 64
)

// Values of http.pprof.
const (
	PprofOff      = "off"
	PprofLoopback = "loopback"
	PprofOn       = "on"
)

// keys is the registry: the one place where a key is named.
var keys = slices.Concat(nodeKeys, clusterKeys)

// nodeKeys are those of keys that every node has.
var nodeKeys = []key{
	textKey("data_dir", "data", "directory of everything the node keeps; created when missing",
		func(c *Config) *string { return &c.DataDir }).withOldName("platform_data_dir"),
	textKey("nodename", "dalmatinerdb@127.0.0.1",
		"this node's name: the first part of its self-metrics",
		func(c *Config) *string { return &c.Node }),
	choiceKey("log.level", "info", []string{"debug", "info", "warn", "error"},
		"least severe log line that is printed",
		func(c *Config) *string { return &c.LogLevel }),

	addrKey("tcp.addr", "127.0.0.1:5555", "address of the binary protocol; port 0 takes a free one",
		func(c *Config) *string { return &c.TCPAddr }),
	addrKey("http.addr", "127.0.0.1:8080",
		"address of queries, admin and metrics; port 0 takes a free one",
		func(c *Config) *string { return &c.HTTPAddr }),
	portKey("tcp_port", "tcp.addr", func(c *Config) *string { return &c.TCPAddr }),
	portKey("http_port", "http.addr", func(c *Config) *string { return &c.HTTPAddr }),
	intKey("tcp_max_connections", "1024", 1, 1<<20,
		"open client connections; beyond them the idlest is closed, or the new one is refused",
		func(c *Config) *int { return &c.TCPMaxConnections }),
	sizeKey("tcp.max_frame", "17MB", 1<<10, 1<<30, "largest request frame",
		func(c *Config) *int64 { return &c.TCPMaxFrame }),
	int64Key("tcp.max_slots", "67108864", 1, math.MaxUint32,
		"slots that one GET of the binary protocol may ask for",
		func(c *Config) *int64 { return &c.TCPMaxSlots }),
	durationKey("tcp.idle_timeout", "1h", time.Second, 366*24*time.Hour,
		"a connection of the binary protocol that sends nothing for this long is closed",
		func(c *Config) *time.Duration { return &c.TCPIdle }),
	durationKey("input.stall_timeout", "30s", time.Second, time.Hour,
		"a sender that sends less than 16KB of a large message or body in this time is cut off",
		func(c *Config) *time.Duration { return &c.InputStall }),
	durationKey("reply.stall_timeout", "10s", time.Second, time.Hour,
		"a client that reads less than 32KB of its answer in this time is cut off",
		func(c *Config) *time.Duration { return &c.ReplyStall }),
	intKey("http.max_connections", "1024", 1, 1<<20,
		"open HTTP connections; beyond them the idlest or the new one is closed",
		func(c *Config) *int { return &c.HTTPMaxConnections }),
	durationKey("http.idle_timeout", "2m", time.Second, 24*time.Hour,
		"an HTTP connection without a request for this long is closed",
		func(c *Config) *time.Duration { return &c.HTTPIdle }),
	sizeKey("http.max_write", "16MB", 1<<10, 1<<30,
		"largest body of points over HTTP, such as remote write, packed and unpacked",
		func(c *Config) *int64 { return &c.HTTPMaxWrite }),
	bucketKey("influx.bucket", "influx",
		"bucket for points in the line protocol of InfluxDB whose requests name none",
		func(c *Config) *string { return &c.InfluxBucket }),
	bucketKey("remote_write.bucket", "prometheus",
		"bucket for points of Prometheus' remote write, where its path names none",
		func(c *Config) *string { return &c.RemoteWriteBucket }),
	bucketKey("otlp.bucket", "otlp", "bucket for metrics of OpenTelemetry",
		func(c *Config) *string { return &c.OTLPBucket }),
	offAddrKey("otlp.grpc_addr", "127.0.0.1:4317",
		"address of OpenTelemetry's gRPC, such as 127.0.0.1:4317, or off; its HTTP goes to http.addr",
		func(c *Config) *string { return &c.OTLPGRPCAddr }),
	intKey("otlp.max_connections", "1024", 1, 1<<20,
		"open connections of OpenTelemetry's gRPC; further ones wait",
		func(c *Config) *int { return &c.OTLPMaxConnections }),
	noneKey("otlp.promote",
		"attributes of resources, separated by commas, that become labels of all their series",
		func(c *Config) *string { return &c.OTLPPromote }),
	bucketKey("loki.bucket", "loki", "bucket for lines that are pushed as to Loki: events",
		func(c *Config) *string { return &c.LokiBucket }),
	noneKey("scrape.config",
		"file in the form of prometheus.yml whose scrape_configs say what the node scrapes",
		func(c *Config) *string { return &c.ScrapeConfig }),
	bucketKey("scrape.bucket", "prometheus", "bucket for points that are scraped",
		func(c *Config) *string { return &c.ScrapeBucket }),
	sizeKey("http.max_body", "1MB", 1<<10, 1<<30, "largest HTTP request body, except of points",
		func(c *Config) *int64 { return &c.HTTPMaxBody }),
	textKey("http.hosts", "localhost",
		"host names, separated by commas, under which admin requests are answered, reads included; IP "+
			"addresses always are",
		func(c *Config) *string { return &c.HTTPHosts }),
	choiceKey("http.pprof", PprofOff, []string{PprofOff, PprofLoopback, PprofOn},
		"who may take profiles of the process at /debug/pprof/: nobody, this machine, everyone who "+
			"reaches http.addr",
		func(c *Config) *string { return &c.HTTPPprof }),
	ducksURLKey("ducks.url", "the ducks whose rooms the page shows, such as http://127.0.0.1:8091",
		func(c *Config) **url.URL { return &c.Ducks.URL }),
	noneKey("ducks.ca",
		"certificate of the CA of an https ducks.url, in PEM: none is those of the system",
		func(c *Config) *string { return &c.Ducks.CA }),

	offAddrKey("graphite.addr", "127.0.0.1:2003",
		"address of Graphite's lines, TCP and UDP, such as 127.0.0.1:2003, or off",
		func(c *Config) *string { return &c.GraphiteAddr }),
	offAddrKey("graphite.pickle_addr", "127.0.0.1:2004",
		"address of Graphite's pickled lists, such as 127.0.0.1:2004, or off",
		func(c *Config) *string { return &c.GraphitePickleAddr }),
	bucketKey("graphite.bucket", "graphite", "bucket for points from Graphite senders",
		func(c *Config) *string { return &c.GraphiteBucket }),
	intKey("graphite.max_connections", "1024", 1, 1<<20,
		"open connections of Graphite senders; beyond them the idlest or the new one is closed",
		func(c *Config) *int { return &c.GraphiteMaxConnections }),
	durationKey("graphite.idle_timeout", "1h", time.Second, 366*24*time.Hour,
		"a connection of a Graphite sender that sends nothing for this long is closed",
		func(c *Config) *time.Duration { return &c.GraphiteIdle }),
	sizeKey("graphite.max_line", "16KB", 128, maxGraphiteLine,
		"largest line of a Graphite sender; longer ones are skipped",
		func(c *Config) *int64 { return &c.GraphiteMaxLine }),
	offAddrKey("syslog.addr", "127.0.0.1:5514",
		"address of syslog messages, TCP and UDP, such as 127.0.0.1:5514, or off",
		func(c *Config) *string { return &c.Syslog.Addr }),
	bucketKey("syslog.bucket", "syslog", "bucket for events from syslog senders",
		func(c *Config) *string { return &c.Syslog.Bucket }),
	intKey("syslog.max_connections", "1024", 1, 1<<20,
		"open connections of syslog senders; beyond them the idlest or the new one is closed",
		func(c *Config) *int { return &c.Syslog.MaxConnections }),
	durationKey("syslog.idle_timeout", "1d", time.Second, 366*24*time.Hour,
		"a connection of a syslog sender that sends nothing for this long is closed",
		func(c *Config) *time.Duration { return &c.Syslog.Idle }),
	zoneKey("syslog.timezone", "UTC",
		"time zone of syslog times that name none, such as Europe/Berlin",
		func(c *Config) **time.Location { return &c.Syslog.Zone }),
	offAddrKey("opentsdb.addr", "127.0.0.1:4242",
		"address of OpenTSDB's lines, TCP, such as 127.0.0.1:4242, or off; its JSON goes to http.addr",
		func(c *Config) *string { return &c.OpenTSDB.Addr }),
	bucketKey("opentsdb.bucket", "opentsdb",
		"bucket for points from OpenTSDB senders, in lines and in JSON",
		func(c *Config) *string { return &c.OpenTSDB.Bucket }),
	intKey("opentsdb.max_connections", "1024", 1, 1<<20,
		"open connections of OpenTSDB's lines; beyond them the idlest or the new one is closed",
		func(c *Config) *int { return &c.OpenTSDB.MaxConnections }),
	durationKey("opentsdb.idle_timeout", "1h", time.Second, 366*24*time.Hour,
		"a connection of OpenTSDB's lines that sends nothing for this long is closed",
		func(c *Config) *time.Duration { return &c.OpenTSDB.Idle }),
	offAddrKey("statsd.addr", "127.0.0.1:8125",
		"address of StatsD's lines, UDP and TCP, such as 127.0.0.1:8125, or off",
		func(c *Config) *string { return &c.StatsD.Addr }),
	noneKey("statsd.socket", "path of a unix socket that takes datagrams of StatsD's lines",
		func(c *Config) *string { return &c.StatsD.Socket }),
	bucketKey("statsd.bucket", "statsd", "bucket for points and events from StatsD senders",
		func(c *Config) *string { return &c.StatsD.Bucket }),
	durationKey("statsd.interval", "10s", time.Second, time.Hour,
		"time for which the values of StatsD senders are added up to one point",
		func(c *Config) *time.Duration { return &c.StatsD.Interval }),
	percentilesKey("statsd.percentiles", "50,90,95,99",
		"percentiles of timers, histograms and distributions, separated by commas; none has none",
		func(c *Config) *[]float64 { return &c.StatsD.Percentiles }),
	intKey("statsd.max_series", "100000", 1, 1<<24,
		"series of StatsD senders that are added up at a time; what is beyond them is refused",
		func(c *Config) *int { return &c.StatsD.MaxSeries }),
	intKey("statsd.max_connections", "1024", 1, 1<<20,
		"open connections of StatsD senders; beyond them the idlest or the new one is closed",
		func(c *Config) *int { return &c.StatsD.MaxConnections }),
	durationKey("statsd.idle_timeout", "1h", time.Second, 366*24*time.Hour,
		"a connection of a StatsD sender that sends nothing for this long is closed",
		func(c *Config) *time.Duration { return &c.StatsD.Idle }),
	offAddrKey("collectd.addr", "127.0.0.1:25826",
		"address of collectd's packets, UDP, such as 127.0.0.1:25826, or off; its JSON goes to http.addr",
		func(c *Config) *string { return &c.Collectd.Addr }),
	bucketKey("collectd.bucket", "collectd",
		"bucket for points and events from collectd, in packets and in JSON",
		func(c *Config) *string { return &c.Collectd.Bucket }),
	noneKey("collectd.auth_file",
		"file of lines user: password, of those who sign or encrypt packets of collectd",
		func(c *Config) *string { return &c.Collectd.AuthFile }),
	choiceKey("collectd.security_level", "none", []string{"none", "sign", "encrypt"},
		"which packets of collectd are taken: all, signed or encrypted ones, or encrypted ones",
		func(c *Config) *string { return &c.Collectd.Security }),
	noneKey("collectd.types_db",
		"file in the form of collectd's types.db, of types that collectd itself does not have",
		func(c *Config) *string { return &c.Collectd.TypesDB }),
	intKey("udp.listeners", "0", 0, maxUDPListeners,
		"sockets that take points in the original's old UDP form; 0 is off",
		func(c *Config) *int { return &c.UDPListeners }),
	addrKey("udp.addr", "127.0.0.1:4444", "address of the old UDP form",
		func(c *Config) *string { return &c.UDPAddr }),
	sizeKey("udp.read_buffer", "8MB", 64<<10, 1<<30,
		"receive buffer of every UDP socket, as far as net.core.rmem_max allows",
		func(c *Config) *int64 { return &c.UDPReadBuffer }),

	powerKey("ring_size", "64", 2, maxRing,
		"partitions of a cluster, a power of two, the same on all nodes; changes nothing on a single node",
		func(c *Config) *int { return &c.Cluster.RingSize }),
	{
		name: "cache_points", def: "60",
		help: "points of a series in one block in memory, which is then encoded; raised to cover 60 s",
		set:  func(c *Config, text string) error { return setCachePoints(c, text) },
		get:  func(c *Config) string { return formatInt(int64(c.CachePoints)) },
		warn: warnCachePoints,
	},
	durationKey("head.grace", "1m", time.Second, time.Hour,
		"a block without writes for this long is encoded",
		func(c *Config) *time.Duration { return &c.HeadGrace }),
	durationKey("ingest.max_future", "10m", time.Second, 366*24*time.Hour,
		"points further ahead of the clock are refused",
		func(c *Config) *time.Duration { return &c.MaxFuture }),
	memoryKey("memory.limit", 128<<20,
		"memory of the process: auto is 60 % of the machine's or the control group's, at least 256MB; "+
			"off is no limit",
		func(c *Config) *int64 { return &c.MemoryLimit }),
	sizeKey("late.memory", "64MB", 1<<20, math.MaxInt64,
		"memory for points older than the open blocks",
		func(c *Config) *int64 { return &c.LateMemory }),
	sizeKey("storage.min_free", "1GB", 0, math.MaxInt64,
		"points are refused while less than this is free on the disk",
		func(c *Config) *int64 { return &c.MinFree }),
	filesKey("storage.max_open_files", 2,
		"files of segments that are open at a time: auto is half of what the system allows the process",
		func(c *Config) *int { return &c.MaxOpenFiles }),
	sizeKey("storage.block_cache", "64MB", 0, math.MaxInt64,
		"memory for verified blocks of segments that queries read again; 0 keeps none",
		func(c *Config) *int64 { return &c.BlockCache }),

	choiceKey("wal.sync", "interval", []string{"always", "interval", "off"},
		"when the log is synced to disk: before each acknowledgement, every wal.interval, or when the "+
			"system writes it back",
		func(c *Config) *string { return &c.WALSync }),
	durationKey("wal.interval", "1s", time.Millisecond, time.Hour,
		"longest time between syncs of the log: a power failure can take the points of this time",
		func(c *Config) *time.Duration { return &c.WALInterval }),
	sizeKey("wal.max_size", "1GB", 16<<20, math.MaxInt64, "size of the log that forces a flush",
		func(c *Config) *int64 { return &c.WALMaxSize }),
	sizeKey("flush.bytes", "64MB", 1<<20, math.MaxInt64, "encoded bytes that make a flush",
		func(c *Config) *int64 { return &c.FlushBytes }),
	durationKey("flush.interval", "12m", time.Second, 24*time.Hour, "longest time between flushes",
		func(c *Config) *time.Duration { return &c.FlushInterval }),

	switchKey("merge.background", "on", "merge segments into windows as these close",
		func(c *Config) *bool { return &c.MergeBackground }),

	switchKey("bucket.auto_create", "on", "create an unknown bucket when points arrive for it",
		func(c *Config) *bool { return &c.AutoCreate }),
	durationKey("bucket.resolution", "1s", time.Millisecond, 366*24*time.Hour,
		"time between points of an auto-created bucket",
		func(c *Config) *time.Duration { return &c.Resolution }),
	int64Key("points_per_file", "604800", 1, math.MaxInt32,
		"points per file of an auto-created bucket",
		func(c *Config) *int64 { return &c.PointsPerFile }),
	pointsKey("lifetime", "infinity", "points after which a new bucket's values expire, or infinity",
		func(c *Config) *int64 { return &c.Lifetime }),

	int64Key("query.max_points", "500000000", 1, math.MaxInt64, "points one query may read",
		func(c *Config) *int64 { return &c.QueryMaxPoints }),
	int64Key("query.max_series", "100000", 1, math.MaxInt64, "series one query may read",
		func(c *Config) *int64 { return &c.QueryMaxSeries }),
	int64Key("query.max_output", "5000000", 1, math.MaxInt64, "points one reply may hold",
		func(c *Config) *int64 { return &c.QueryMaxOutput }),
	sizeKey("query.max_memory", "1GB", 1<<20, math.MaxInt64,
		"memory that one query may hold while it runs",
		func(c *Config) *int64 { return &c.QueryMaxMemory }),
	sizeKey("query.cache", "64MB", 0, math.MaxInt64,
		"memory for results of queries that may be asked again; 0 keeps none",
		func(c *Config) *int64 { return &c.QueryCache }),
	switchKey("dql.compat", "off", "queries answer as the original does, its mistakes included",
		func(c *Config) *bool { return &c.DQLCompat }),
	durationKey("query.timeout", "1m", time.Millisecond, 24*time.Hour, "longest run of one query",
		func(c *Config) *time.Duration { return &c.QueryTimeout }),
	durationKey("query.slow", "5s", time.Millisecond, 24*time.Hour,
		"queries that run this long are logged",
		func(c *Config) *time.Duration { return &c.QuerySlow }),

	switchKey("self_monitor", "on",
		"write the node's own figures into bucket dalmatinerdb every second",
		func(c *Config) *bool { return &c.SelfMonitor }),
}

// clusterKeys are those of keys that nodes of a cluster have.
var clusterKeys = []key{
	offAddrKey("cluster.listen", "10.0.0.1:8599",
		"address for the other nodes of a cluster, such as 10.0.0.1:8599, or off: a node on its own",
		func(c *Config) *string { return &c.Cluster.Listen }),
	autoAddrKey("cluster.gossip", "10.0.0.1:8600",
		"address for gossip with the other nodes: auto is the port after that of cluster.listen",
		func(c *Config) *string { return &c.Cluster.Gossip }).inCluster(),
	autoAddrKey("cluster.advertise", "10.0.0.1:8599",
		"address where other nodes reach cluster.listen: auto is cluster.listen itself",
		func(c *Config) *string { return &c.Cluster.Advertise }).inCluster(),
	listKey("cluster.join",
		"where other nodes gossip, separated by commas: host:port, or a host alone for the port of "+
			"this node's gossip; none founds a cluster",
		func(c *Config) *[]string { return &c.Cluster.Join }).inCluster(),
	noneKey("cluster.zone",
		"what fails together with this node, such as a rack: copies go to different zones first",
		func(c *Config) *string { return &c.Cluster.Zone }).inCluster(),
	quorumKey("n", "copies of a point in a cluster that this node founds: auto is 3, and 1 without "+
		"a cluster; later ddb admin cluster set-n changes it",
		func(c *Config) *int { return &c.Cluster.Copies }),
	quorumKey("r", "copies whose answers a read waits for: auto is the fewest that meet every write "+
		"to a majority",
		func(c *Config) *int { return &c.Cluster.Reads }),
	quorumKey("w", "copies whose acknowledgements a write waits for: auto is the majority of those "+
		"that there can be",
		func(c *Config) *int { return &c.Cluster.Writes }),
	secretKey("distributed_cookie",
		"secret that all nodes of a cluster share, at least 16 bytes; distributed_cookie_file keeps it "+
			"out of this file",
		func(c *Config) *Secret { return &c.Cluster.Cookie }).inCluster(),
	noneKey("distributed_cookie_file", "file with distributed_cookie that only its owner can read",
		func(c *Config) *string { return &c.Cluster.CookieFile }).inCluster(),
	noneKey("cluster.tls_dir",
		"directory with ca.crt, NODENAME.crt and NODENAME.key, as ddb tls create makes it",
		func(c *Config) *string { return &c.Cluster.TLSDir }).inCluster(),
	noneKey("cluster.tls_ca", "certificate of the CA of all nodes, instead of that in cluster.tls_dir",
		func(c *Config) *string { return &c.Cluster.TLSCA }).inCluster(),
	noneKey("cluster.tls_cert", "certificate of this node, instead of that in cluster.tls_dir",
		func(c *Config) *string { return &c.Cluster.TLSCert }).inCluster(),
	noneKey("cluster.tls_key", "key of this node, instead of that in cluster.tls_dir",
		func(c *Config) *string { return &c.Cluster.TLSKey }).inCluster(),
	sizeKey("cluster.hints_max", "1GB", 1<<20, math.MaxInt64,
		"disk for what other nodes missed while they were down; beyond it this node stands in for nobody",
		func(c *Config) *int64 { return &c.Cluster.HintsMax }).inCluster(),
	intKey("cluster.move_rate", "1000000", 1000, 1_000_000_000,
		"points a second that this node exchanges at most with nodes that it compares itself with, as "+
			"those of partitions that move to it",
		func(c *Config) *int { return &c.Cluster.MoveRate }).inCluster(),
	durationKey("cluster.drop_after", "15m", 0, 30*24*time.Hour,
		"points that other nodes own by now are kept for this long after all of these have them",
		func(c *Config) *time.Duration { return &c.Cluster.DropAfter }).inCluster(),
	durationKey("cluster.heartbeat", "1s", 10*time.Millisecond, time.Minute,
		"time between two signs of life of this node",
		func(c *Config) *time.Duration { return &c.Cluster.Heartbeat }).inCluster(),
	durationKey("cluster.timeout", "5s", 20*time.Millisecond, time.Hour,
		"a node without a sign of life for this long is down",
		func(c *Config) *time.Duration { return &c.Cluster.Timeout }).inCluster(),
	durationKey("read_repair.delay", "15s", time.Second, 24*time.Hour,
		"where a read meets copies that differ in points older than this, they are compared soon",
		func(c *Config) *time.Duration { return &c.Cluster.Repair }).inCluster(),
}

// replaced names the keys of the original, and of its frontend, that do
// nothing here, and what does their job. A name that ends in * is a prefix.
var replaced = []struct{ name, instead string }{
	{"tcp_listeners", "every connection has its own reader, see tcp_max_connections"},
	{"tcp.max_batch_size", "points are stored per batch as it arrives"},
	{"async_workers", "listings read a sorted catalogue"},
	{"handoff*", "see cluster.listen and cluster.advertise"},
	{"mstore.max_files", "files stay open as needed"},
	{"vacuum_interval", "expired points are hidden at once and removed by merging"},
	{"run_user_home", "use data_dir"},
	{"schema_dir", "the keys are part of the program"},
	{"log.*", "logs go to standard error, see log.level"},
	{"platform_*", "use data_dir"},
	{"metrics.transport_compression", "nodes send points as they are"},
	{"read_repair.*", "nodes of a cluster compare what they have, and copy what one of them lacks"},
	{"io.*", "flushing replaces the queue per partition, see flush.bytes and flush.interval"},
	{"vnode.cache.*", "see cache_points, head.grace and flush.bytes"},
	{"vnode_management_timer", "partitions have no processes"},
	{"bkt_dict", "the stream buffer has one form"},
	{"transfer_limit", "transfers yield to points by themselves"},
	{"target_n_val", "copies are put on different members, and in different zones, where there are " +
		"enough"},
	{"erlang.*", "there is no virtual machine to set up"},
	{"riak_core.*", "see ring_size and cluster.*"},
	{"idx.*", "the index is built in"},
	{"http_listeners", "every connection has its own handler"},
	{"ddb_connection.*", "queries read the store in the same process, see query.max_points"},
	{"pool.*", "queries read the store in the same process"},
	{"dqe.*", "see query.max_points"},
	{"debug.*", "see log.level"},
	{"otters.*", "see log.level"},
}
