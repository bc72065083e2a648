package compare

import (
	"context"
	"os/exec"
	"time"
)

// competitor is a store that is measured.
type competitor struct {
	name     string
	settings string // what differs from its defaults, for the reader
	fsync    string // when points are on disk
	// obtain gets the programs into the cache, or tells why it cannot. What it
	// returns is the version.
	obtain func(ctx context.Context, c *cache) (version string, err error)
	ports  []string // names of the ports it listens on
	// command returns what starts it on s.dir and s.ports; it is started anew
	// on the same directory.
	command func(s *instance) (*exec.Cmd, error)
	ready   func(ctx context.Context, s *instance) error
	// protocols it is measured over, its best first.
	protocols []protocol
	// prepare makes what it needs before the first point; or nil.
	prepare func(ctx context.Context, s *instance) error
	// flush writes what is in memory and merges; nil where it cannot be told.
	flush func(ctx context.Context, s *instance) error
	// quiet is how long it may be idle before it writes or merges by itself.
	quiet time.Duration
	// count returns the number of points it has taken since it started, or
	// all it has; nil where it cannot tell.
	count func(ctx context.Context, s *instance) (int64, error)
	// logs are patterns of paths below its directory that are not counted as
	// space: logs that are written again from their start, caches.
	logs []string
	// ask returns the path of the question on the port it names, and answer
	// reads the reply.
	ask    func(q *question) (port, path string)
	answer func(body []byte, q *question) (answer, error)
	// behind is whether its steps lie behind their begin and have their end, as
	// ranges of PromQL do; else they have their begin, and end before the next.
	behind bool
	// uncached is what is added to the path of a question so that the answer is
	// computed; "" where answers are not kept.
	uncached string
	// playings are the ways in which it takes recordings; none where it is not
	// measured with them.
	playings []playing
	// tagging is how it takes series with tags; nil where that is not measured.
	tagging *tagging
	// asked returns what starts the server of the questions where it is not
	// that of command; or nil.
	asked func(s *instance) (*exec.Cmd, error)
	// advance is whether it closes what it has once its data goes on: a point
	// hours further on is sent before its space is looked at.
	advance bool
	// recent is whether it takes only points of the last day.
	recent bool
	// rows limits those of the load of many series for one that takes long; 0 is
	// no limit.
	rows int
}

// competitors are in the order in which they run.
func competitors(bin string) []*competitor {
	return []*competitor{
		dalmatiner(bin), victoriaMetrics(), prometheus(), influxDB(), graphite(), questDB(), clickHouse(),
	}
}
