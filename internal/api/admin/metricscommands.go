package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MetricList are the first metrics of a bucket by name.
type MetricList struct {
	Metrics []string `json:"metrics"` // as a query takes them
	More    int64    `json:"more"`    // how many others there are
}

// Metrics returns the first metrics of a bucket by name, at most limit, of those that contain a
// text, in whatever case.
func (c *Client) Metrics(ctx context.Context, bucket, contains string,
	limit int) (MetricList, error) {
	list := MetricList{Metrics: []string{}}
	body, err := c.open(ctx, http.MethodGet,
		"/buckets/"+url.PathEscape(bucket)+"?contains="+url.QueryEscape(contains), "", nil)
	if err != nil {
		return list, err
	}
	defer body.Close()
	in := json.NewDecoder(body)
	if _, err := in.Token(); err != nil {
		return list, fmt.Errorf("the answer is not what a node sends: %w", err)
	}
	var all int64
	for in.More() {
		var name string
		if err := in.Decode(&name); err != nil {
			return list, fmt.Errorf("the answer is not what a node sends: %w", err)
		}
		all++
		// Long lists come in any order.
		if list.Metrics = append(list.Metrics, name); len(list.Metrics) >= 2*limit {
			list.Metrics = firstNames(list.Metrics, limit)
		}
	}
	if _, err := in.Token(); err != nil {
		return list, fmt.Errorf("the list is cut short: %w", err)
	}
	list.Metrics = firstNames(list.Metrics, limit)
	list.More = all - int64(len(list.Metrics))
	return list, nil
}

func firstNames(names []string, limit int) []string {
	slices.Sort(names)
	return names[:min(limit, len(names))]
}

// mostMetrics bounds what is kept of a list.
const mostMetrics = 1_000_000

// MetricsTree is the command tree of ddb admin metrics.
type MetricsTree struct {
	List MetricsListCommand `cmd:"" help:"List the metrics of a bucket by name."`
}

// MetricsListCommand prints metrics.
type MetricsListCommand struct {
	Target   `embed:""`
	Output   `embed:""`
	Bucket   string `arg:"" help:"Name of the bucket."`
	Contains string `help:"Only metrics that have this text in their printed name, in upper or lower case." placeholder:"TEXT"`
	Limit    int    `help:"Metrics to print, ${default} by default." default:"100" placeholder:"N"`
}

// Help is shown below the usage of the command.
func (c *MetricsListCommand) Help() string {
	return `Metrics are printed as a query takes them behind SELECT, the way they are stored:
the names that tags give them are not listed.

Examples:
  ddb admin metrics list shop
  ddb admin metrics list shop --contains requests --limit 1000`
}

// Run prints a name a line.
func (c *MetricsListCommand) Run(env *Env) error {
	if c.Limit < 1 || c.Limit > mostMetrics {
		return &UsageError{fmt.Errorf("--limit is a number of metrics, from 1 to %d", mostMetrics)}
	}
	bucket, err := canonical(c.Bucket)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	list, err := c.client(env).Metrics(env.Context, bucket, c.Contains, c.Limit)
	if err != nil {
		return err
	}
	return c.Write(env, list, func(w io.Writer) error {
		return writeMetrics(w, bucket, c.Contains, list)
	})
}

func writeMetrics(w io.Writer, bucket, contains string, list MetricList) error {
	if len(list.Metrics) == 0 {
		text := fmt.Sprintf("Bucket %s has no metric", bucket)
		if contains != "" {
			text += " that contains " + contains
		}
		_, err := fmt.Fprintln(w, text+".")
		return err
	}
	text := strings.Join(list.Metrics, "\n") + "\n"
	if list.More > 0 {
		text += fmt.Sprintf("… and %d more: --limit prints more, --contains fewer\n", list.More)
	}
	_, err := io.WriteString(w, text)
	return err
}
