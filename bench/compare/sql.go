package compare

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const questTable = "CREATE TABLE metrics (agent SYMBOL, metric SYMBOL CAPACITY 65536, value " +
	"LONG, timestamp TIMESTAMP) TIMESTAMP(timestamp) PARTITION BY DAY WAL"

// questDB is the library of Maven Central, which is the whole server.
func questDB() *competitor {
	const name, version = "questdb-9.3.4", "9.3.4"
	jar := file{"org.questdb:questdb", version,
		"939bc53ab22f93dbaa6545143a6e7c536d4904c07b7f2d381e8eef10436be062"}
	var program string
	return &competitor{
		name: "QuestDB", settings: "partitions of a day, symbols without an index; -XX:+UseParallelGC",
		fsync: "never (cairo.commit.mode=nosync, its default)",
		obtain: func(ctx context.Context, c *cache) (string, error) {
			program = filepath.Join(c.dir, name, "program.jar")
			if _, err := exec.LookPath("java"); err != nil {
				return "", err
			}
			return version, c.maven(ctx, name, jar)
		},
		ports: []string{"http"},
		command: func(s *instance) (*exec.Cmd, error) {
			data := filepath.Join(s.dir, "data")
			cmd := exec.Command("java", "-XX:+UseParallelGC", "-cp", program, "io.questdb.ServerMain", "-d",
				data)
			cmd.Env = append(os.Environ(), "QDB_HTTP_BIND_TO="+s.addr("http"), "QDB_HTTP_MIN_ENABLED=false",
				"QDB_PG_ENABLED=false",
				"QDB_LINE_TCP_ENABLED=false", "QDB_TELEMETRY_ENABLED=false")
			return cmd, os.MkdirAll(data, 0o755)
		},
		ready: answers("http", "/ping"),
		prepare: func(ctx context.Context, s *instance) error {
			_, err := s.get(ctx, "http", questPath(questTable))
			return err
		},
		protocols: []protocol{{influxProtocol, influxLines, overHTTP("http", "/write?precision=n")}},
		// It applies its log to the table behind the answers.
		flush: func(ctx context.Context, s *instance) error {
			return until(ctx, "its log is applied", func() (bool, error) {
				behind, err := s.questCount(ctx,
					"SELECT count() FROM wal_tables() WHERE writerTxn < sequencerTxn")
				return behind == 0, err
			})
		},
		count: func(ctx context.Context, s *instance) (int64, error) {
			return s.questCount(ctx, "SELECT count() FROM metrics")
		},
		logs: []string{"data/db/metrics*/wal*", "data/db/metrics*/txn_seq", "data/log", "data/public",
			"data/conf", "data/import"},
		ask: askQuest, answer: readQuest,
		playings: []playing{playQuest()},
	}
}

func questPath(query string) string { return "/exec?query=" + url.QueryEscape(query) }

func (s *instance) questCount(ctx context.Context, query string) (int64, error) {
	body, err := s.get(ctx, "http", questPath(query))
	if err != nil {
		return 0, err
	}
	var got struct{ Dataset [][]int64 }
	if err := json.Unmarshal(body, &got); err != nil {
		return 0, err
	}
	if len(got.Dataset) != 1 || len(got.Dataset[0]) != 1 {
		return 0, fmt.Errorf("its count is %s", clip(body))
	}
	return got.Dataset[0][0], nil
}

// quoted lists the names of a question in SQL.
func (q *question) quoted() string { return "'" + strings.Join(q.names(), "', '") + "'" }

func askQuest(q *question) (port, path string) {
	where := fmt.Sprintf("FROM metrics WHERE agent = '%s' AND timestamp >= %d AND timestamp < %d",
		agentName(q.agent), q.from*1e6, q.to*1e6)
	if q.mean {
		return "http", questPath(fmt.Sprintf("SELECT timestamp, '', avg(value) %s SAMPLE BY %ds", where,
			q.every))
	}
	return "http", questPath(fmt.Sprintf("SELECT timestamp, metric, max(value) %s AND metric IN "+
		"(%s) SAMPLE BY %ds", where, q.quoted(), q.every))
}

// readQuest reads rows of time, metric, value.
func readQuest(body []byte, _ *question) (answer, error) {
	var got struct{ Dataset [][3]json.RawMessage }
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	return readRows(got.Dataset)
}

func readRows(rows [][3]json.RawMessage) (answer, error) {
	out := answer{}
	for _, row := range rows {
		var name string
		var value float64
		if err := errors.Join(json.Unmarshal(row[1], &name), json.Unmarshal(row[2], &value)); err != nil {
			return nil, err
		}
		out[name] = append(out[name], value)
	}
	return out, nil
}

//go:embed clickhouse.py
var clickHouseServer []byte

// clickHouse is chdb, the library that is a whole ClickHouse, in a process that
// takes CSV and queries over HTTP.
func clickHouse() *competitor {
	const name, version = "chdb-core-26.9.0", "26.9.0"
	wheel := file{"chdb-core", version,
		"707e2ec3fe0f7953bac97942eaeb7a1ed1d66b1e56ecef3f0aa2130f61f6e735"}
	var root string
	return &competitor{
		name: "ClickHouse (chdb)",
		settings: "in process; inserts of what came within a second or of 500,000 points; MergeTree " +
			"ordered by agent, metric, time; Delta, DoubleDelta and ZSTD(1); OPTIMIZE FINAL is its merge",
		fsync: "never (its default)",
		obtain: func(ctx context.Context, c *cache) (string, error) {
			root = filepath.Join(c.dir, name)
			return version, c.wheel(ctx, name, wheel)
		},
		ports: []string{"http"},
		command: func(s *instance) (*exec.Cmd, error) {
			script := filepath.Join(s.dir, "clickhouse.py")
			cmd := exec.Command(python, script, filepath.Join(s.dir, "data"), fmt.Sprint(s.ports["http"]))
			cmd.Env = append(os.Environ(), "PYTHONPATH="+root)
			return cmd, os.WriteFile(script, clickHouseServer, 0o644)
		},
		ready:     answers("http", "/ping"),
		protocols: []protocol{{"CSV", csvLines, overClickHouse}},
		flush: func(ctx context.Context, s *instance) error {
			_, err := s.get(ctx, "http", clickPath("OPTIMIZE TABLE metrics FINAL"))
			return err
		},
		quiet: 5 * time.Second,
		count: counted(clickPath("SELECT toUnixTimestamp(now()), '', count() FROM metrics FORMAT "+
			"JSONCompact"), readClickHouse),
		logs: []string{"clickhouse.py"},
		ask:  askClickHouse, answer: readClickHouse,
		playings: []playing{playClickHouse()},
	}
}

// overClickHouse ends with what is buffered being inserted.
func overClickHouse(ctx context.Context, s *instance) (conn, error) {
	c, err := overHTTP("http", "/insert")(ctx, s)
	return &drained{c, s}, err
}

type drained struct {
	conn
	s *instance
}

func (d *drained) finish(ctx context.Context) error {
	_, err := d.s.get(ctx, "http", "/drain")
	return errors.Join(err, d.conn.finish(ctx))
}

func clickPath(query string) string { return "/query?q=" + url.QueryEscape(query) }

func askClickHouse(q *question) (port, path string) {
	where := fmt.Sprintf("FROM metrics WHERE agent = '%s' AND time >= toDateTime(%d, 'UTC') AND "+
		"time < toDateTime(%d, 'UTC')", agentName(q.agent), q.from, q.to)
	step := fmt.Sprintf("toStartOfInterval(time, INTERVAL %d SECOND) AS step", q.every)
	if q.mean {
		return "http", clickPath(fmt.Sprintf("SELECT %s, '', avg(value) %s GROUP BY step ORDER BY step "+
			"FORMAT JSONCompact", step, where))
	}
	return "http", clickPath(fmt.Sprintf("SELECT %s, metric, toFloat64(max(value)) %s AND metric IN "+
		"(%s) GROUP BY metric, step ORDER BY metric, step FORMAT JSONCompact",
		step, where, q.quoted()))
}

// readClickHouse reads rows of time, metric, value.
func readClickHouse(body []byte, _ *question) (answer, error) {
	var got struct{ Data [][3]json.RawMessage }
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	return readRows(got.Data)
}

// Tables of recordings take the place of those of the generated mix, under their
// name: a series is named by one text, and values are doubles.

func playQuest() playing {
	p := playParts(overHTTP("http", "/write?precision=n"), questPart, false)
	p.prepare = func(ctx context.Context, s *instance) error {
		return s.all(ctx, questPath("DROP TABLE metrics"),
			questPath("CREATE TABLE metrics (series SYMBOL CAPACITY 4096, value DOUBLE, timestamp "+
				"TIMESTAMP) TIMESTAMP(timestamp) PARTITION BY DAY WAL"))
	}
	return p
}

func playClickHouse() playing {
	p := playParts(overClickHouse, clickHousePart, false)
	p.prepare = func(ctx context.Context, s *instance) error {
		return s.all(ctx, clickPath("DROP TABLE metrics SYNC"),
			clickPath("CREATE TABLE metrics (series LowCardinality(String), value Float64 CODEC(Gorilla, "+
				"ZSTD(1)), time DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1))) "+
				"ENGINE = MergeTree ORDER BY (series, time) SETTINGS old_parts_lifetime = 1, "+
				"cleanup_delay_period = 1, max_cleanup_delay_period = 1, "+
				"cleanup_delay_period_random_add = 0, merge_tree_clear_old_parts_interval_seconds = 1"))
	}
	return p
}

// all gets paths one after the other.
func (s *instance) all(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if _, err := s.get(ctx, "http", path); err != nil {
			return err
		}
	}
	return nil
}
