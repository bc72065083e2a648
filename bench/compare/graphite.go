package compare

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// carbonConfig takes the limits away with which carbon spares its disks.
const carbonConfig = `[cache]
USER =
STORAGE_DIR = %[1]s
LOCAL_DATA_DIR = %[1]s/whisper
CONF_DIR = %[1]s
LOG_DIR = %[1]s
PID_DIR = %[1]s
ENABLE_LOGROTATION = False
MAX_CACHE_SIZE = inf
MAX_UPDATES_PER_SECOND = inf
MAX_CREATES_PER_MINUTE = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = %[2]d
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = %[3]d
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = %[4]d
LOG_UPDATES = False
LOG_CREATES = False
LOG_CACHE_HITS = False
LOG_CACHE_QUEUE_SORTS = False
LOG_LISTENER_CONN_SUCCESS = False
CACHE_WRITE_STRATEGY = sorted
WHISPER_FALLOCATE_CREATE = True
ENABLE_TAGS = False
CARBON_METRIC_INTERVAL = 0
`

// carbonSchemas keeps no more than what is sent and the time that takes: files
// have their full size from the start.
const carbonSchemas = `[day]
pattern = ^agent\.%s\.
retentions = 1s:87600
[hour]
pattern = ^agent\.%s\.
retentions = 1s:4800
[rest]
pattern = .*
retentions = 1s:900
`

// graphite is carbon-cache of Debian with whisper's files, and graphite-web for
// the questions.
func graphite() *competitor {
	const name = "graphite-carbon-1.1.7-web-1.1.8"
	var root string
	return &competitor{
		name: "Graphite (carbon-cache)",
		settings: "no limits of cache, updates and creations; retentions of 15 min, and of 24 h 20 min " +
			"and 80 min for the day and the hour. Queries: graphite-web 1.1.8, by itself",
		fsync: "never",
		obtain: func(ctx context.Context, c *cache) (string, error) {
			root = filepath.Join(c.dir, name)
			if err := c.debian(ctx, name, graphitePackages()); err != nil {
				return "", err
			}
			return "1.1.7, web 1.1.8", run(ctx, root, carbonEnv(root), python, "-W", "ignore", "-c",
				"import carbon, whisper, twisted, graphite, django, cairocffi")
		},
		ports: []string{"lines", "pickle", "query"},
		command: func(s *instance) (*exec.Cmd, error) {
			config := filepath.Join(s.dir, "carbon.conf")
			schemas := fmt.Appendf(nil, carbonSchemas, agentName(dayAgent), agentName(hourAgent))
			err := errors.Join(
				os.WriteFile(config, fmt.Appendf(nil, carbonConfig, s.dir, s.ports["lines"], s.ports["pickle"],
					s.ports["query"]), 0o644),
				os.WriteFile(filepath.Join(s.dir, "storage-schemas.conf"), schemas, 0o644))
			cmd := exec.Command(python, "-W", "ignore", filepath.Join(root, "usr/bin/carbon-cache"),
				"--config="+config, "--nodaemon", "start")
			cmd.Env = append(os.Environ(), carbonEnv(root)...)
			return cmd, err
		},
		ready: func(ctx context.Context, s *instance) error {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", s.addr("lines"))
			if err != nil {
				return err
			}
			return c.Close()
		},
		protocols: []protocol{{graphiteProtocol, graphiteLines, overTCP("lines")}},
		quiet:     5 * time.Second, recent: true, rows: 10,
		logs: []string{"*.log", "*.conf", "*.pid"},
		asked: func(s *instance) (*exec.Cmd, error) {
			script := filepath.Join(s.dir, "graphite_web.py")
			cmd := exec.Command(python, "-W", "ignore", script, s.dir, strconv.Itoa(s.ports["lines"]))
			cmd.Env = append(os.Environ(), carbonEnv(root)...)
			return cmd, os.WriteFile(script, graphiteWeb, 0o644)
		},
		ask: askGraphite, answer: readGraphite,
	}
}

// graphitePackages are carbon, graphite-web and what they import, of Debian 12.
func graphitePackages() []file {
	return []file{
		{"graphite-carbon", "1.1.7-1.1",
			"ae77c055767fcf363db7f1be41ae62a62738aac906d6699f8e91027a00db3622"},
		{"graphite-web", "1.1.8-2", "96887ac8155a10e3dbb6407d78842fe1c80e5775a05d16248fb28add01e7127a"},
		{"python3-asgiref", "3.6.0-1",
			"5c7835a18144105fc24172c2fb27a2d2e0b10d80df7bf9615664cefc8b065258"},
		{"python3-attr", "22.2.0-1", "6a12ea96a8a909445a982975279f96d7b9a1ff96c912efff39abc8d92372694a"},
		{"python3-automat", "22.10.0-1",
			"924851ef1170de752c0ee1407e06b4dfc846204a4ed6d83e6e23e61691fe1bbc"},
		{"python3-cachetools", "5.2.0-1",
			"fb845e9f029b60a02e52314da773967da5c828489a92d81fa420b05da1e9d562"},
		{"python3-cairocffi", "1.4.0-1",
			"bd43244af311061f91ec4f6b376b08e718b7429ed6b1baa2861f5704769d5673"},
		{"python3-cffi-backend", "1.15.1-5+b1",
			"185bd768cc37fb96ac4a2fd6f8c0c31df3e7513d472d9b60015149761955955f"},
		{"python3-constantly", "15.1.0-4",
			"2220b99a7d976aa403b23fd846f4dc7cc3ac5e66efe5aa04ad9b4fa437bd8041"},
		{"python3-django", "3:3.2.25-0+deb12u7",
			"9ad8ed29d9026207970777e194f658c39b3a7a96a932967f043503fc25bdc319"},
		{"python3-django-tagging", "1:0.5.0-4",
			"935753e23f59f4db8c9bb3bfe7cc3fcb0751f6cc240ed937f082e698efb75b3a"},
		{"python3-hamcrest", "2.0.3-2",
			"89b904b29301b763ade1b240b3868502a510ecc48fc56aa3beaeed9a987d8777"},
		{"python3-hyperlink", "21.0.0-5",
			"1263f1a7d7127f8800a655675febe87fe318fe72a7124624f84316f9119f41c9"},
		{"python3-incremental", "21.3.0-2",
			"7a632d4c182dc125205e1520df1383e7033c6b6ab885577646a15b622a4f099b"},
		{"python3-pyparsing", "3.0.9-1",
			"891dcf12a125dcadbae7166ad8e9d1fd22a6f1bf431ca4bce9f810da30dcd472"},
		{"python3-simplejson", "3.18.3-1",
			"9c24ebc73f42fc2ffa9f483b078b2ac35ebe53c0f9b734eb28198ffe0aa7fbf8"},
		{"python3-six", "1.16.0-4", "fd189e9cecbcf17a1fc20aec30055c8afa9c1eec00cd6e7ab385087a2ab3b0d3"},
		{"python3-sqlparse", "0.4.2-1+deb12u1",
			"edd31cf6974984723034321451333ff375d0551baf375e8bc0ececaff661eabb"},
		{"python3-twisted", "22.4.0-4+deb12u1",
			"d8194df7c9b8a524ce7d350fcb4c6a734410a2c701f2bfa8c0d3f01864f51f6a"},
		{"python3-tz", "2022.7.1-4", "b165d30ef171f9426c496900449b85d290d4c6d2de50e1c3f4adc2b55b6fd534"},
		{"python3-urllib3", "1.26.12-1+deb12u4",
			"9dd6fef10317e437f2195cb5ea8b38d8e39e02106c5fda7b16d58b4bb9a85886"},
		{"python3-whisper", "1.1.4-2.2",
			"b3d2c5d228b70fe08b938693540d102d9e732fd09f3e55da83ce33114592d1df"},
		{"python3-xcffib", "0.11.1-4",
			"61726ce284bef3a9887707a32d30d1b23137db824798a06c1ce3b44b15ec5304"},
		{"python3-zope.interface", "5.5.2-1+b1",
			"6a9445cac3ab669424d11812c5dcb620a92d66e889ace616b14072216242e010"},
	}
}

func carbonEnv(root string) []string {
	return []string{"PYTHONPATH=" + filepath.Join(root, "usr/lib/python3/dist-packages"),
		"PYTHONDONTWRITEBYTECODE=1"}
}

//go:embed graphite_web.py
var graphiteWeb []byte

// askGraphite asks for what is after from, up to and with until.
func askGraphite(q *question) (port, path string) {
	v := url.Values{"format": {"json"}, "from": {strconv.FormatInt(q.from-1, 10)},
		"until": {strconv.FormatInt(q.to-1, 10)}}
	prefix := "agent." + agentName(q.agent) + ".metrics."
	if q.mean {
		v.Add("target", fmt.Sprintf(`summarize(averageSeries(%s*),"%ds","avg",true)`, prefix, q.every))
	}
	for _, i := range q.metrics {
		v.Add("target", fmt.Sprintf(`summarize(%s%s,"%ds","max",true)`, prefix, metricName(i), q.every))
	}
	return "lines", "/render?" + v.Encode()
}

// readGraphite reads series in the order in which they were asked for.
func readGraphite(body []byte, q *question) (answer, error) {
	var got []struct{ Datapoints [][2]*float64 } // value, time
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, err
	}
	names := q.names()
	if len(got) != len(names) {
		return nil, fmt.Errorf("%d series, want %d", len(got), len(names))
	}
	out := answer{}
	for i, s := range got {
		for _, p := range s.Datapoints {
			if p[0] == nil {
				return nil, fmt.Errorf("series %d has gaps", i)
			}
			out[names[i]] = append(out[names[i]], *p[0])
		}
	}
	return out, nil
}
