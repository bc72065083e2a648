package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/suggest"
	"dalmatiner/internal/model/metric"
)

// Env is what a command runs in.
type Env struct {
	Context context.Context
	Out     io.Writer
	Err     io.Writer // progress of long work
}

// Target says which node a command talks to.
type Target struct {
	Addr string `aliases:"server" help:"HTTP address of the node, ${default} by default." default:"127.0.0.1:8080" env:"DDB_ADDR" placeholder:"HOST:PORT"`
}

func (t *Target) client(env *Env) *Client { return &Client{Addr: t.Addr, Tell: env.Err} }

// Output says in which form a command prints what it learned.
type Output struct {
	JSON bool `help:"Print JSON."`
}

// Write prints value as JSON, or as text does.
func (o *Output) Write(env *Env, value any, text func(io.Writer) error) error {
	if !o.JSON {
		return text(env.Out)
	}
	enc := json.NewEncoder(env.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// Commands is the command tree of ddb admin and ddb-admin.
type Commands struct {
	Status   StatusCommand  `cmd:"" help:"Show the state of the node on one screen."`
	Buckets  Buckets        `cmd:"" help:"List, create and delete buckets, and set how long their points live."`
	Metrics  MetricsTree    `cmd:"" help:"List metrics."`
	Series   SeriesTree     `cmd:"" help:"Delete series."`
	Tags     TagsTree       `cmd:"" help:"Set, show and export the tags of series, and show what has most series."`
	Flush    FlushCommand   `cmd:"" help:"Write everything in memory to a segment."`
	Account  AccountCommand `cmd:"" help:"Show what became of every received point."`
	Stats    StatsCommand   `cmd:"" help:"Print the node's figures, one name and value per line."`
	Segments Segments       `cmd:"" help:"List the files that hold the points."`
	Cache    Cache          `cmd:"" help:"Show what is kept in memory."`
	Check    CheckCommand   `cmd:"" help:"Verify every file of a running node, or of a directory."`
	Cluster  ClusterTree    `cmd:"" help:"Show a cluster, and change who belongs to it."`
	Audit    AuditCommand   `cmd:"" help:"Show how well the copies of a cluster agree."`
	Snapshot Snapshots      `cmd:"" help:"Make, list and delete snapshots, from which ddb restore makes data directories."`
}

// Buckets is the command tree of ddb admin buckets.
type Buckets struct {
	List   ListCommand   `cmd:"" help:"List all buckets."`
	Create CreateCommand `cmd:"" help:"Create a bucket."`
	Delete DeleteCommand `cmd:"" help:"Delete a bucket and every point in it."`
	TTL    TTLCommand    `cmd:"" name:"ttl" help:"Show or set how long a bucket's points live."`
	Quorum QuorumCommand `cmd:"" help:"Show or set how many copies of a bucket count in a cluster."`
}

// ListCommand prints all buckets.
type ListCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the table of buckets.
func (c *ListCommand) Run(env *Env) error {
	buckets, err := c.client(env).Buckets(env.Context)
	if err != nil {
		return err
	}
	sortBuckets(buckets)
	return c.Write(env, buckets, func(w io.Writer) error { return writeBuckets(w, buckets) })
}

// CreateCommand creates a bucket from durations.
type CreateCommand struct {
	Target     `embed:""`
	Output     `embed:""`
	Bucket     string `arg:"" help:"Name of the bucket."`
	Resolution string `arg:"" help:"Time between two points, such as 1s."`
	File       string `arg:"" name:"file-duration" help:"Time that one file of the original covered, such as 1w; clients cut their reads at it."`
	HPTS       string `arg:"" name:"hpts" help:"High precision timestamps: true or false."`
	TTL        string `arg:"" optional:"" help:"How long points live, such as 52w; a bare number counts points; infinity without it."`
	Grace      string `arg:"" optional:"" help:"How late events may come, such as 5s; 0 without it."`
	Copies     int    `name:"n" placeholder:"N" help:"Copies of the bucket in a cluster, for all time; that of the ring without it."`
	Quorums    `embed:""`
}

// Help is shown below the usage of the command.
func (c *CreateCommand) Help() string {
	return `Examples:
  ddb admin buckets create metrics 1s 1w false
  ddb admin buckets create metrics 1s 1w false 52w    keep points for a year
  ddb admin buckets create metrics 1s 1w false --w 3  in a cluster: three copies before a point counts`
}

// Run creates the bucket and prints what was created.
func (c *CreateCommand) Run(env *Env) error {
	b, err := c.bucket()
	if err == nil {
		_, err = c.numbers(b.Name)
	}
	if err != nil {
		return err
	}
	b, err = c.client(env).CreateBucket(env.Context, b)
	if problem := (*statusError)(nil); errors.As(err, &problem) &&
		problem.Status == http.StatusConflict {
		return fmt.Errorf("%w; only its TTL can be changed, %s: delete it first or choose another name",
			err, command("ddb admin buckets ttl", c.Addr))
	}
	if err != nil {
		return err
	}
	if err := c.set(env.Context, c.client(env), b.Name); err != nil {
		return fmt.Errorf("%s was created, with r and w of the cluster: %w", b.Name, err)
	}
	return c.Write(env, b, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Created %s with a resolution of %s and %s worth of points per file.\n",
			b.Name, pointsAsTime(1, b.Resolution), pointsAsTime(b.PPF, b.Resolution))
		return err
	})
}

func (c *CreateCommand) bucket() (Bucket, error) {
	fail := func(what, text string, err error) (Bucket, error) {
		return Bucket{}, fmt.Errorf("%s %s: %w", what, text, err)
	}
	name, err := canonical(c.Bucket)
	if err != nil {
		return fail("bucket", c.Bucket, err)
	}
	resolution, err := config.ParseDuration(c.Resolution)
	if err == nil && (resolution < time.Millisecond || resolution%time.Millisecond != 0) {
		err = errors.New("must be whole milliseconds, at least 1ms")
	}
	if err != nil {
		return fail("resolution", c.Resolution, err)
	}
	file, err := config.ParseDuration(c.File)
	if err == nil && (file < resolution || file%resolution != 0) {
		err = fmt.Errorf("must be a multiple of the resolution, %s", config.FormatDuration(resolution))
	}
	if err != nil {
		return fail("file duration", c.File, err)
	}
	hpts, err := config.ParseSwitch(c.HPTS)
	if err != nil {
		return fail("hpts", c.HPTS, errors.New("must be true or false"))
	}
	b := Bucket{
		Name:       name,
		Resolution: resolution.Milliseconds(),
		PPF:        int64(file / resolution),
		HPTS:       hpts,
		Copies:     c.Copies,
	}
	if c.TTL != "" {
		if b.TTL, err = parseTTL(c.TTL, b.Resolution); err != nil {
			return fail("ttl", c.TTL, err)
		}
	}
	if c.Grace != "" {
		grace, err := config.ParseDuration(c.Grace)
		if err != nil {
			return fail("grace", c.Grace, err)
		}
		b.Grace = int64(grace)
	}
	return b, nil
}

// canonical returns the escaped form of a name as typed: quotes and other
// printable characters may be typed bare or escaped.
func canonical(typed string) (string, error) {
	name, err := metric.Unescape(typed)
	return metric.Escape(name), err
}

// parseTTL reads infinity, a number of points, or a duration, which is rounded
// up to whole points. The original took bare numbers for milliseconds.
func parseTTL(text string, resolution int64) (TTL, error) {
	if text == infinity || text == "inf" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n <= 0 {
			return 0, errors.New("must be at least 1 point, or infinity")
		}
		return TTL(n), nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	res := resolution * int64(time.Millisecond)
	if d <= 0 || resolution > math.MaxInt64/int64(time.Millisecond) {
		return 0, errors.New("must be more than nothing, or infinity")
	}
	return TTL((int64(d)-1)/res + 1), nil
}

// DeleteCommand deletes a bucket.
type DeleteCommand struct {
	Target `embed:""`
	Output `embed:""`
	Bucket string `arg:"" help:"Name of the bucket."`
	Yes    bool   `help:"Delete. Without it nothing is, and what would go is shown."`
}

// Help is shown below the usage of the command.
func (c *DeleteCommand) Help() string {
	return `The bucket and its points are gone from every answer when the command returns,
and no crash brings them back. The account keeps counting them as received. A
bucket created again under the name begins empty.

Examples:
  ddb admin buckets delete metrics          show what would go
  ddb admin buckets delete metrics --yes`
}

// bucketDeletion is what ddb admin buckets delete did, or would do.
type bucketDeletion struct {
	Name     string `json:"name"` // escaped
	Deleted  bool   `json:"deleted"`
	Segments int    `json:"segments"` // that hold points of the bucket
	Points   int64  `json:"points"`   // in them; others are in memory
}

// Run deletes the bucket, or shows what it holds.
func (c *DeleteCommand) Run(env *Env) error {
	name, err := canonical(c.Bucket)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	segments, err := c.client(env).Segments(env.Context, name)
	if err != nil {
		return err
	}
	d := bucketDeletion{Name: name, Deleted: c.Yes, Segments: len(segments)}
	for i := range segments {
		d.Points += segments[i].Points
	}
	if c.Yes {
		if err := c.client(env).DeleteBucket(env.Context, name); err != nil {
			return err
		}
	}
	if err := c.Write(env, d, d.write); err != nil {
		return err
	}
	if !c.Yes {
		return &UsageError{
			errors.New("nothing was deleted: add --yes to delete the bucket and every point in it")}
	}
	return nil
}

func (d *bucketDeletion) write(w io.Writer) error {
	if d.Deleted {
		_, err := fmt.Fprintf(w, "Deleted %s.\n", d.Name)
		return err
	}
	if d.Segments == 0 {
		_, err := fmt.Fprintf(w,
			"Bucket %s would be deleted. No segment holds points of it: what it has is in memory.\n", d.Name)
		return err
	}
	_, err := fmt.Fprintf(w,
		"Bucket %s would be deleted: %d points in %d segments, and those in memory.\n", d.Name, d.Points,
		d.Segments)
	return err
}

// TTLCommand shows or sets the lifetime of a bucket's points.
type TTLCommand struct {
	Target `embed:""`
	Output `embed:""`
	Bucket string `arg:"" help:"Name of the bucket."`
	TTL    string `arg:"" optional:"" name:"ttl" help:"How long points live, such as 52w, a number of points, or infinity; shown when left out."`
}

// Run prints the lifetime, after it was set when one is given.
func (c *TTLCommand) Run(env *Env) error {
	b, err := c.find(env)
	if err != nil {
		return err
	}
	if c.TTL != "" {
		if b.TTL, err = parseTTL(c.TTL, b.Resolution); err != nil {
			return fmt.Errorf("ttl %s: %w", c.TTL, err)
		}
		if err := c.client(env).SetTTL(env.Context, b.Name, b.TTL); err != nil {
			return err
		}
	}
	text := ttlAsTime(b.TTL, b.Resolution)
	if b.TTL != 0 {
		text += fmt.Sprintf(" (%d points)", b.TTL)
	}
	return c.Write(env, BucketTTL{b.Name, &b.TTL}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "TTL of %s: %s\n", b.Name, text)
		return err
	})
}

func (c *TTLCommand) find(env *Env) (Bucket, error) {
	name, err := canonical(c.Bucket)
	if err != nil {
		return Bucket{}, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	buckets, err := c.client(env).Buckets(env.Context)
	if err != nil {
		return Bucket{}, err
	}
	near := suggest.NewCollector(name)
	for _, b := range buckets {
		if b.Name == name {
			return b, nil
		}
		near.Add(b.Name)
	}
	return Bucket{}, fmt.Errorf("bucket %s does not exist%s%s", name, suggest.Hint(near.Names()),
		listBuckets(c.Addr))
}
