package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"dalmatiner/internal/store"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/snapshot"
)

// Status is the answer to GET /admin/status.
type Status struct {
	Version   string  `json:"version"`
	Node      string  `json:"node"`
	Ready     bool    `json:"ready"`
	UptimeS   float64 `json:"uptime_s"`
	DataDir   string  `json:"data_dir"`
	TCPAddr   string  `json:"tcp_addr"`
	HTTPAddr  string  `json:"http_addr"`
	Buckets   int64   `json:"buckets"`
	Series    int64   `json:"series"`
	PointsIn  float64 `json:"points_in_per_s"`  // stored in the last second
	PointsOut float64 `json:"points_out_per_s"` // slots read by queries in the last second

	RSSBytes  int64 `json:"rss_bytes"` // 0 where the system does not say
	HeapBytes int64 `json:"heap_bytes"`
	HeadBytes int64 `json:"head_bytes"` // blocks, encoded chunks and late points

	StatusMemory
	StatusNeighbours

	Segments      int64   `json:"segments"`
	SegmentBytes  int64   `json:"segment_bytes"`
	SegmentPoints int64   `json:"segment_points"`
	WALSync       string  `json:"wal_sync"`
	WALBytes      int64   `json:"wal_bytes"`
	WALUnsynced   int64   `json:"wal_unsynced_bytes"`
	Flushes       int64   `json:"flushes"`
	SinceFlushS   float64 `json:"since_flush_s"`
	FreeDisk      int64   `json:"free_disk_bytes"`
	DiskFull      bool    `json:"disk_full"`
	Damage        uint64  `json:"damage"` // places found since the start
}

// StatusMemory says how near a node is to its limit of memory.
type StatusMemory struct {
	MemoryLimit int64  `json:"memory_limit_bytes"` // 0 = none
	MemoryUsed  int64  `json:"memory_used_bytes"`
	MemoryLevel string `json:"memory_level"` // calm, urgent, no_queries, no_series or hold
	SendersHeld int64  `json:"senders_held"`
}

// StatusNeighbours says who else a node speaks of.
type StatusNeighbours struct {
	Cluster *ClusterLine `json:"cluster,omitempty"` // of a node that is on its own: nil
	// the address of the ducks whose rooms the page shows
	Ducks string `json:"ducks,omitempty"`
	// the bucket of what the node scrapes
	Scrapes string `json:"scrapes,omitempty"`
}

// ClusterLine is what the status of a node says of its cluster.
type ClusterLine struct {
	Ring     string   `json:"ring"`
	Members  int      `json:"members"`
	Up       int      `json:"up"`
	Down     []string `json:"down"`
	Changing bool     `json:"changing"`
	Copies   int      `json:"n"`
	Reads    int      `json:"r"`
	Writes   int      `json:"w"`
	Joining  string   `json:"joining,omitempty"` // why the node takes no part yet
}

// LogLine is an element of the answer to GET /admin/log, the last lines of the
// node's log, oldest first.
type LogLine struct {
	Number  uint64 `json:"n"`       // from 1, without gaps
	TimeMS  int64  `json:"time_ms"` // unix
	Level   string `json:"level"`
	Message string `json:"message"`
	Fields  string `json:"fields,omitempty"` // key=value …
}

// SnapshotName is the body of POST /admin/snapshots/create and …/delete.
type SnapshotName struct {
	Name string `json:"name"`
}

// CheckRequest is the body of POST /admin/check.
type CheckRequest struct {
	Rate int64 `json:"rate"` // bytes per second to read, 0 = as fast as possible
}

// CheckMessage is one line of the answer to POST /admin/check: any number of
// lines with Progress, then one with Report or with Error.
type CheckMessage struct {
	Progress *fsck.Progress `json:"progress,omitempty"`
	Report   *fsck.Report   `json:"report,omitempty"`
	Error    string         `json:"error,omitempty"`
}

// maxCheckLine bounds one line of the answer to a check: a report with
// fsck.MaxDamages places.
const maxCheckLine = 16 << 20

// Status reads the state of the node.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var out Status
	return out, c.get(ctx, "/admin/status", &out)
}

// Segments lists the committed segments, of all buckets or of one.
func (c *Client) Segments(ctx context.Context, bucket string) ([]inventory.Segment, error) {
	q := url.Values{}
	if bucket != "" {
		q.Set("bucket", bucket)
	}
	var out []inventory.Segment
	return out, c.get(ctx, "/admin/segments?"+q.Encode(), &out)
}

// Caches lists what the node keeps in memory.
func (c *Client) Caches(ctx context.Context) ([]store.Cache, error) {
	var out []store.Cache
	return out, c.get(ctx, "/admin/caches", &out)
}

// Snapshot makes a snapshot and returns it.
func (c *Client) Snapshot(ctx context.Context, name string) (snapshot.Info, error) {
	var out snapshot.Info
	return out, c.post(ctx, "/admin/snapshots/create", SnapshotName{name}, &out)
}

// Snapshots lists the snapshots by name.
func (c *Client) Snapshots(ctx context.Context) ([]snapshot.Info, error) {
	var out []snapshot.Info
	return out, c.get(ctx, "/admin/snapshots", &out)
}

// DeleteSnapshot deletes a snapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, name string) error {
	return c.post(ctx, "/admin/snapshots/delete", SnapshotName{name}, nil)
}

// Check makes the node verify its files. It takes as long as the rate makes
// it; progress is called in between.
func (c *Client) Check(ctx context.Context, rate int64,
	progress func(fsck.Progress)) (fsck.Report, error) {
	patient := Client{Addr: c.Addr, HTTP: c.HTTP}
	if patient.HTTP == nil {
		patient.HTTP = &http.Client{} // a check of a large node takes hours
	}
	body, err := patient.postRaw(ctx, "/admin/check", CheckRequest{rate})
	if err != nil {
		return fsck.Report{}, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxCheckLine)
	for lines.Scan() {
		var m CheckMessage
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fsck.Report{}, fmt.Errorf("the answer is not what a node sends: %w", err)
		}
		switch {
		case m.Error != "":
			return fsck.Report{}, errors.New(m.Error)
		case m.Report != nil:
			return *m.Report, nil
		case m.Progress != nil:
			progress(*m.Progress)
		}
	}
	if err := lines.Err(); err != nil {
		return fsck.Report{}, fmt.Errorf("the check was cut: %w", err)
	}
	return fsck.Report{}, errors.New("the check was cut: the node ended the answer before the report")
}

// postRaw sends a message and returns the body of a successful answer, which
// the caller closes.
func (c *Client) postRaw(ctx context.Context, path string, in any) (io.ReadCloser, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, http.MethodPost, path, "application/json", bytes.NewReader(text))
}
