// Package config reads the configuration of a node: a file in the form of the original's
// ddb.conf (key = value, # starts a comment), --set overrides and flags.
//
// A setting is one key and value with the place it came from. Build takes settings in
// order of precedence, the strongest last, and returns the effective Config. Every error
// names the place, the key, the value, the limit and what to write instead. Keys of the
// original keep their names where the meaning is the same. Keys that have no job any more
// give a warning with the name of their replacement, so that a node starts with an old
// file. Unknown keys are errors.
package config

import (
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/host/suggest"
)

// Put has the keys of the old UDP form.
type Put struct {
	UDPListeners int    // udp.listeners, 0 for off
	UDPAddr      string // udp.addr, host:port
}

// Syslog has the keys of syslog's listener.
type Syslog struct {
	Addr           string         // syslog.addr, host:port of messages over TCP and UDP; empty for off
	Bucket         string         // syslog.bucket
	MaxConnections int            // syslog.max_connections
	Idle           time.Duration  // syslog.idle_timeout
	Zone           *time.Location // syslog.timezone
}

// OpenTSDB has the keys of OpenTSDB's lines, and of its JSON over HTTP.
type OpenTSDB struct {
	Addr           string        // opentsdb.addr, host:port of lines over TCP; empty for off
	Bucket         string        // opentsdb.bucket
	MaxConnections int           // opentsdb.max_connections
	Idle           time.Duration // opentsdb.idle_timeout
}

// StatsD has the keys of StatsD's listener.
type StatsD struct {
	Addr           string        // statsd.addr, host:port of lines over UDP and TCP; empty for off
	Socket         string        // statsd.socket, path of a unix socket of datagrams; empty for off
	Bucket         string        // statsd.bucket
	Interval       time.Duration // statsd.interval
	Percentiles    []float64     // statsd.percentiles
	MaxSeries      int           // statsd.max_series
	MaxConnections int           // statsd.max_connections
	Idle           time.Duration // statsd.idle_timeout
}

// Collectd has the keys of collectd's packets, and of its JSON over HTTP.
type Collectd struct {
	Addr     string // collectd.addr, host:port of packets over UDP; empty for off
	Bucket   string // collectd.bucket
	AuthFile string // collectd.auth_file, of lines user: password; empty for none
	Security string // collectd.security_level: none, sign or encrypt
	TypesDB  string // collectd.types_db, a file of data sources; empty for none
}

// Agents has the keys of protocols that agents of metrics speak.
type Agents struct {
	OpenTSDB OpenTSDB // opentsdb.*
	StatsD   StatsD   // statsd.*
	Collectd Collectd // collectd.*
}

// Config is the effective configuration of a node. Field comments name the
// key; the registry in keys.go holds defaults, limits and help.
type Config struct {
	DataDir  string // data_dir
	Node     string // nodename
	LogLevel string // log.level: debug, info, warn or error

	TCPAddr           string        // tcp.addr, host:port
	TCPMaxConnections int           // tcp_max_connections
	TCPMaxFrame       int64         // tcp.max_frame, bytes
	TCPIdle           time.Duration // tcp.idle_timeout
	InputStall        time.Duration // input.stall_timeout
	ReplyStall        time.Duration // reply.stall_timeout
	GraphiteIdle      time.Duration // graphite.idle_timeout
	TCPMaxSlots       int64

	HTTP

	GraphiteAddr           string // graphite.addr, host:port of lines over TCP and UDP; empty for off
	GraphitePickleAddr     string // graphite.pickle_addr, host:port; empty for off
	GraphiteBucket         string // graphite.bucket
	GraphiteMaxConnections int    // graphite.max_connections
	GraphiteMaxLine        int64  // graphite.max_line, bytes
	Syslog                 Syslog // syslog.*
	Agents
	Put                 // udp.*
	UDPReadBuffer int64 // udp.read_buffer, bytes, of every UDP socket

	Cluster     Cluster       // cluster.*, n, r, w, ring_size, distributed_cookie*
	CachePoints int           // cache_points, points of a series in a head block
	HeadGrace   time.Duration // head.grace
	MaxFuture   time.Duration // ingest.max_future
	LateMemory  int64         // late.memory, bytes
	MinFree     int64         // storage.min_free, bytes
	// storage.max_open_files; MaxOpenFilesAuto for a share of what the system allows
	MaxOpenFiles int
	BlockCache   int64 // storage.block_cache, bytes; 0 for none
	// memory.limit, bytes; 0 for off, MemoryAuto for a share of the machine's
	MemoryLimit int64

	WALSync     string        // wal.sync: always, interval or off
	WALInterval time.Duration // wal.interval
	WALMaxSize  int64         // wal.max_size, bytes

	FlushBytes    int64         // flush.bytes
	FlushInterval time.Duration // flush.interval

	MergeBackground bool // merge.background

	AutoCreate    bool          // bucket.auto_create
	Resolution    time.Duration // bucket.resolution of auto-created buckets
	PointsPerFile int64         // points_per_file of auto-created buckets
	Lifetime      int64         // lifetime of new buckets in points, 0 = infinite

	Query

	SelfMonitor bool // self_monitor

	// Version is what the program says it is. It is no key: the program's main
	// function sets it.
	Version string

	origins map[string]string
}

// HTTP are the keys of HTTP, and of whom the page speaks to besides the node.
type HTTP struct {
	HTTPAddr           string        // http.addr, host:port
	HTTPIdle           time.Duration // http.idle_timeout
	HTTPMaxBody        int64         // http.max_body, bytes
	HTTPMaxWrite       int64         // http.max_write, bytes
	RemoteWriteBucket  string        // remote_write.bucket
	InfluxBucket       string        // influx.bucket
	OTLPBucket         string        // otlp.bucket
	OTLPGRPCAddr       string        // otlp.grpc_addr, "": off
	OTLPMaxConnections int           // otlp.max_connections
	OTLPPromote        string        // otlp.promote, names separated by commas
	LokiBucket         string        // loki.bucket
	ScrapeConfig       string        // scrape.config, "": nothing is scraped
	ScrapeBucket       string        // scrape.bucket
	HTTPMaxConnections int           // http.max_connections
	HTTPHosts          string        // http.hosts, host names separated by commas
	HTTPPprof          string        // http.pprof: PprofOff, PprofLoopback or PprofOn
	Ducks              Ducks         // ducks.*
}

// Query are the keys of queries.
type Query struct {
	QueryMaxPoints int64 // query.max_points read by one query
	QueryMaxSeries int64 // query.max_series read by one query
	QueryMaxOutput int64 // query.max_output, points in one reply
	QueryMaxMemory int64 // query.max_memory, bytes that one query holds
	QueryCache     int64 // query.cache, bytes of results that are kept; 0 for none
	DQLCompat      bool  // dql.compat, answers of the original

	QueryTimeout time.Duration // query.timeout, longest run of one query
	QuerySlow    time.Duration // query.slow, runs from which on a query is logged
}

// Setting is one key and value and the place it came from, such as
// "ddb.conf:12" or "--set".
type Setting struct {
	Origin string
	Key    string
	Value  string
}

// Error is one complaint about one setting.
type Error struct {
	Setting
	Problem string
}

// Error returns the place, the key, the value and what is wrong.
func (e *Error) Error() string {
	where := e.Origin
	if where != "" {
		where += ": "
	}
	if e.Value == "" {
		return fmt.Sprintf("%s%s: %s", where, e.Key, e.Problem)
	}
	return fmt.Sprintf("%s%s = %s: %s", where, e.Key, e.Value, e.Problem)
}

// Entry is one key as a listing shows it.
type Entry struct {
	Key     string `json:"key"`
	Value   string `json:"value"` // effective, in the form a file takes
	Default string `json:"default"`
	Origin  string `json:"origin"` // "default" or the place that set it
	Help    string `json:"help"`
	Effect  bool   `json:"effect"` // false for keys that are accepted but change nothing
	Secret  bool   `json:"secret"` // the value is not shown: Value says whether there is one
}

// Default returns the configuration without any settings.
func Default() Config {
	c := Config{origins: map[string]string{}}
	for i := range keys {
		k := &keys[i]
		if k.alters != "" {
			continue
		}
		if err := k.set(&c, k.def); err != nil {
			panic(fmt.Sprintf("default of %s: %v", k.name, err))
		}
	}
	return c
}

// Build applies settings to the defaults, later ones over earlier ones. It
// returns warnings for settings that are accepted without effect, and all
// errors joined, each an *Error.
func Build(settings ...Setting) (c Config, warnings []string, err error) {
	c = Default()
	var errs []error
	wrong := make(map[string]bool)
	for _, s := range settings {
		k, canonical := lookup(s.Key)
		if k == nil {
			if instead, ok := replacement(s.Key); ok {
				// Without the value: idx.pg.password is a secret.
				warnings = append(warnings,
					(&Error{Setting{s.Origin, s.Key, ""}, "ignored: " + instead}).Error())
				continue
			}
			errs = append(errs, &Error{Setting{s.Origin, s.Key, ""}, unknownKey(s.Key)})
			continue
		}
		if err := k.set(&c, s.Value); err != nil {
			if wrong[canonical] = true; k.secret {
				s.Value = ""
			}
			errs = append(errs, &Error{s, err.Error()})
			continue
		}
		c.origins[canonical] = s.Origin
		if k.warn != nil {
			if text := k.warn(&c, s.Value); text != "" {
				warnings = append(warnings, (&Error{s, text}).Error())
			}
		}
	}
	for _, clash := range c.Cluster.clashes() {
		if k, _ := lookup(clash.key); !wrong["cluster.listen"] {
			errs = append(errs, &Error{Setting{c.origins[clash.key], clash.key, k.get(&c)}, clash.problem})
		}
	}
	return c, warnings, errors.Join(errs...)
}

// Entries lists all keys with their effective values, in the order of the
// registry.
func (c Config) Entries() []Entry {
	var out []Entry
	for i := range keys {
		k := &keys[i]
		if k.alters != "" {
			continue
		}
		e := Entry{
			Key:     k.name,
			Value:   k.get(&c),
			Default: k.def,
			Origin:  c.origins[k.name],
			Help:    k.help,
			Effect:  !k.inert(&c),
			Secret:  k.secret,
		}
		if e.Origin == "" {
			e.Origin = "default"
		}
		out = append(out, e)
	}
	return out
}

func unknownKey(name string) string {
	if known := nearestKeys(name); len(known) > 0 {
		return "unknown key" + suggest.Hint(known)
	}
	return "unknown key; ddb config show --all lists those that there are"
}
