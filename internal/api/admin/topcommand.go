package admin

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"dalmatiner/internal/store/cardinality"
)

// TopChoice is what GET /tags/top is asked for; what is empty is left out.
type TopChoice struct {
	By, Sort, Collection, Name, Bucket, Prefix string
	Depth, Limit                               int
}

// Top reads what has most series.
func (c *Client) Top(ctx context.Context, choice TopChoice) (cardinality.Answer, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"by": choice.By, "sort": choice.Sort, "collection": choice.Collection, "name": choice.Name,
		"bucket": choice.Bucket, "prefix": choice.Prefix,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, n := range map[string]int{"depth": choice.Depth, "limit": choice.Limit} {
		if n != 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	var out cardinality.Answer
	return out, c.get(ctx, "/tags/top?"+q.Encode(), &out)
}

// TagsTopCommand shows what has most series.
type TagsTopCommand struct {
	Target     `embed:""`
	Output     `embed:""`
	By         string `arg:"" help:"What to count series by: names, values, buckets or prefixes."`
	Sort       string `help:"The order: by series, or by new for those with most new series; series by default." placeholder:"series|new"`
	Limit      int    `help:"How many to list, up to 1000; 20 by default." placeholder:"N"`
	Collection string `help:"Of names and values: only the series of this collection." placeholder:"NAME"`
	Name       string `help:"Of values: only those of this tag, such as host or ns:host." placeholder:"TAG"`
	Bucket     string `help:"Of prefixes: only those of this bucket." placeholder:"NAME"`
	Prefix     string `help:"Of prefixes: only those that begin with these whole parts, such as web.eu." placeholder:"PARTS"`
	Depth      int    `help:"Of prefixes: how many parts they have more than --prefix; 1 by default." placeholder:"N"`
}

// Help is shown below the usage of the command.
func (c *TagsTopCommand) Help() string {
	return `This finds what makes many series, and what keeps making new ones: a part or a tag
that has another value with each restart, request or user.

  names      tags with the number of their values; only series that have tags count
  values     values of tags, likewise
  buckets    all buckets, with every series
  prefixes   the first part of all metrics; with --prefix the part behind it; a + says
             that there are longer ones

New is what came in this hour of the clock and in the one before, but for buckets and
prefixes not before the start of the node: it does not remember when those series came
that it found on disk. New/h is that by the hour.

Examples:
  ddb admin tags top buckets --sort new
  ddb admin tags top prefixes --bucket metrics
  ddb admin tags top prefixes --bucket metrics --prefix web.eu --sort new
  ddb admin tags top names
  ddb admin tags top values --name host --limit 5`
}

// Run prints the table.
func (c *TagsTopCommand) Run(env *Env) error {
	choice := TopChoice{
		By:         c.By,
		Sort:       c.Sort,
		Name:       c.Name,
		Prefix:     c.Prefix,
		Depth:      c.Depth,
		Limit:      c.Limit,
		Collection: c.Collection,
		Bucket:     c.Bucket,
	}
	top, err := c.client(env).Top(env.Context, choice)
	if err != nil {
		return err
	}
	return c.Write(env, top, func(w io.Writer) error { return writeTop(w, &top) })
}

// topColumns are the columns of a table of elements before their counts: head, and cell.
var topColumns = map[cardinality.By][]struct {
	head string
	cell func(e *cardinality.Element) string
}{
	cardinality.Names: {{"Tag", func(e *cardinality.Element) string {
		return e.Text
	}}, {"Values", func(e *cardinality.Element) string { return strconv.Itoa(e.Values) }}},
	cardinality.Values: {{"Value", func(e *cardinality.Element) string {
		return e.Text
	}}, {"Tag", func(e *cardinality.Element) string { return e.Name }}},
	cardinality.Buckets: {{"Bucket", func(e *cardinality.Element) string { return e.Text }}},
	cardinality.Prefixes: {{"Prefix", func(e *cardinality.Element) string {
		if e.Deeper {
			return e.Text + " +"
		}
		return e.Text
	}}, {"Bucket", func(e *cardinality.Element) string { return e.Bucket }}},
}

func writeTop(w io.Writer, top *cardinality.Answer) error {
	if len(top.List) == 0 {
		_, err := fmt.Fprintln(w, "No series.")
		return err
	}
	columns := topColumns[top.By]
	left := []int{0, 1}
	if len(columns) == 1 || top.By == cardinality.Names {
		left = left[:1]
	}
	t := newTable(left...)
	var head []string
	for _, column := range columns {
		head = append(head, column.head)
	}
	t.add(append(head, "Series", "Share", "New", "New/h")...)
	for i := range top.List {
		e := &top.List[i]
		var row []string
		for _, column := range columns {
			row = append(row, column.cell(e))
		}
		t.add(append(row, strconv.Itoa(e.Series),
			fmt.Sprintf("%.1f%%", 100*float64(e.Series)/float64(max(1, top.Series))),
			strconv.Itoa(e.New), strconv.FormatFloat(float64(e.New)/top.Hours, 'f', 0, 64))...)
	}
	if err := t.write(w); err != nil {
		return err
	}
	atLeast := ""
	if top.AtLeast {
		atLeast = "at least "
	}
	_, err := fmt.Fprintf(w, "%d of %d %s, of %d series, of which %s%d are new since %s\n",
		len(top.List), top.Distinct, top.By, top.Series,
		atLeast, top.New, time.UnixMilli(top.Since).UTC().Format("2006-01-02 15:04:05 MST"))
	return err
}
