package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// SeriesChoice is the body of POST /admin/series/delete.
type SeriesChoice struct {
	Bucket string `json:"bucket"`           // escaped
	Metric string `json:"metric,omitempty"` // text of a metric, or
	Prefix string `json:"prefix,omitempty"` // of the parts that metrics begin with
	DryRun bool   `json:"dry_run,omitempty"`
}

// DeletedSeries is the answer to POST /admin/series/delete.
type DeletedSeries struct {
	Series   int64 `json:"series"`
	DryRun   bool  `json:"dry_run"`  // they were counted only
	Segments int64 `json:"segments"` // of the bucket: they may hold the points until they are merged
	Bytes    int64 `json:"bytes"`    // of these segments
}

// DeleteSeries deletes series with all their points.
func (c *Client) DeleteSeries(ctx context.Context, choice SeriesChoice) (DeletedSeries, error) {
	var out DeletedSeries
	return out, c.post(ctx, "/admin/series/delete", choice, &out)
}

// SeriesTree is the command tree of ddb admin series.
type SeriesTree struct {
	Delete SeriesDeleteCommand `cmd:"" help:"Delete a series, or all that begin with a prefix, and every point in them."`
}

// SeriesDeleteCommand deletes series.
type SeriesDeleteCommand struct {
	Target `embed:""`
	Output `embed:""`
	Bucket string `arg:"" help:"Name of the bucket."`
	Metric string `arg:"" optional:"" help:"The metric, such as web.eu.requests; parts with dots in quotes: \"'web'.'10.0.0.1'\"."`
	Prefix string `help:"Delete all metrics that begin with these whole parts." placeholder:"PARTS"`
	DryRun bool   `help:"Only count the series."`
	Yes    bool   `help:"Delete. Without it nothing is, and the series are counted."`
}

// Help is shown below the usage of the command.
func (c *SeriesDeleteCommand) Help() string {
	return `The points are gone from every answer when the command returns, and no crash
brings them back. A point that comes later begins the series anew. The account
keeps counting them as received.

Space: segments in which more than 5 % of the series are deleted are rewritten
after the next flush, flushes when they are merged, the rest when it expires. To
have it at once: ddb admin flush --merge

Examples:
  ddb admin series delete metrics web.eu.requests --yes
  ddb admin series delete metrics --prefix web.eu --dry-run
  ddb admin series delete metrics --prefix "'web'.'10.0.0.1'" --yes`
}

// Run deletes, or counts, and says what.
func (c *SeriesDeleteCommand) Run(env *Env) error {
	if (c.Metric == "") == (c.Prefix == "") {
		return &UsageError{
			errors.New("name one metric, or --prefix with the parts that metrics begin with")}
	}
	name, err := canonical(c.Bucket)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	d, err := c.client(env).DeleteSeries(env.Context,
		SeriesChoice{name, c.Metric, c.Prefix, c.DryRun || !c.Yes})
	if problem := (*statusError)(nil); errors.As(err, &problem) &&
		problem.Status == http.StatusConflict {
		return fmt.Errorf("%w: %s does both", err, command("ddb admin flush --merge", c.Addr))
	}
	if err != nil {
		return err
	}
	if err := c.Write(env, d, func(w io.Writer) error {
		return writeDeleted(w, name, d, c.Addr)
	}); err != nil {
		return err
	}
	if d.DryRun && !c.DryRun && d.Series > 0 {
		return &UsageError{errors.New("nothing was deleted: add --yes to delete")}
	}
	return nil
}

func writeDeleted(w io.Writer, bucket string, d DeletedSeries, addr string) error {
	if d.Series == 0 {
		_, err := fmt.Fprintf(w, "No series of %s begins with the prefix: nothing was deleted.\n", bucket)
		return err
	}
	if d.DryRun {
		_, err := fmt.Fprintf(w, "%d series of %s would be deleted.\n", d.Series, bucket)
		return err
	}
	if d.Segments == 0 {
		_, err := fmt.Fprintf(w, "Deleted %d series of %s. No segment holds points of the bucket.\n",
			d.Series, bucket)
		return err
	}
	_, err := fmt.Fprintf(w,
		"Deleted %d series of %s. The %d segments of the bucket, %s, keep the space until they are "+
			"merged: %s does it now.\n",
		d.Series, bucket, d.Segments, size(d.Bytes), command("ddb admin flush --merge", addr))
	return err
}
