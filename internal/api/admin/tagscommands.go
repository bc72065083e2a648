package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"dalmatiner/internal/api/tagline"
)

// ImportTags sends lines of JSON with changes of tags.
func (c *Client) ImportTags(ctx context.Context, lines io.Reader) (tagline.Imported, error) {
	var out tagline.Imported
	body, err := c.change(ctx, "/tags", "application/x-ndjson", lines)
	if err != nil {
		return out, err
	}
	defer body.Close()
	return out, decode(body, &out)
}

// ExportTags copies the lines of all tags to w, of a bucket where it is not empty, and of one
// metric of it where that is not.
func (c *Client) ExportTags(ctx context.Context, w io.Writer, bucket, metric string) error {
	q := url.Values{}
	if bucket != "" {
		q.Set("bucket", bucket)
	}
	if metric != "" {
		q.Set("metric", metric)
	}
	body, err := c.open(ctx, http.MethodGet, "/admin/tags/export?"+q.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// TagsTree is the command tree of ddb admin tags.
type TagsTree struct {
	Import TagsImportCommand `cmd:"" help:"Set and remove tags, from lines of JSON."`
	Show   TagsShowCommand   `cmd:"" help:"Show the tags of a metric, as lines of JSON."`
	Export TagsExportCommand `cmd:"" help:"Print all tags, as lines that import reads."`
	Top    TagsTopCommand    `cmd:"" help:"Show which tags, values, buckets and prefixes have most series, or most new ones."`
}

// TagsImportCommand sends a file with changes of tags.
type TagsImportCommand struct {
	Target `embed:""`
	Output `embed:""`
	File   string `arg:"" help:"File with one JSON object a line, - for the standard input."`
}

// Help is shown below the usage of the command.
func (c *TagsImportCommand) Help() string {
	return `Each line is about one series:

  {"bucket":"b","metric":["web","cpu"],"tags":{"ns:host":"web1","dc":"eu"},"remove":["old"]}

metric has the parts of its name, as they are stored. collection is the bucket and
name the metric unless they are given too. Tags merge with those that are there;
"replace":true sets them. A namespace ends at the first colon; \: is one inside.

Lines that are wrong are named with their numbers, and the rest goes on.`
}

const (
	// bytes of lines that are sent together; fewer, if http.max_body asks for it
	importPart = 768 << 10
	importWait = time.Second
	shown      = 20 // errors
)

// Run sends the lines and prints a summary.
func (c *TagsImportCommand) Run(env *Env) error {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	all, err := c.send(env, in)
	if err != nil {
		return fmt.Errorf("after %d lines: %w", all.Lines, err)
	}
	err = c.Write(env, all, func(w io.Writer) error {
		for i, e := range all.Errors {
			if i == shown {
				break
			}
			fmt.Fprintf(w, "line %d: %s\n", e.Line, e.Error)
		}
		_, err := fmt.Fprintf(w, "%d lines: %d said something new, %d were refused.\n", all.Lines,
			all.Changed, all.Refused)
		return err
	})
	if err == nil && all.Refused > 0 {
		err = fmt.Errorf("%d of %d lines were refused", all.Refused, all.Lines)
	}
	return err
}

// send sends lines in parts, each behind the answer to the one before.
func (c *TagsImportCommand) send(env *Env, in io.Reader) (tagline.Imported, error) {
	m := tagsImport{
		env:    env,
		client: c.client(env),
		most:   importPart,
		next:   time.Now().Add(importWait),
	}
	m.all.Errors = []tagline.LineError{}
	lines := bufio.NewReaderSize(in, tagline.MaxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if tooLong := errors.Is(err, bufio.ErrBufferFull); tooLong || len(m.part)+len(line) > m.most {
			if err := m.flush(); err != nil {
				return m.all, err
			}
			if tooLong {
				m.refuse(fmt.Sprintf("the line has more than %d bytes", tagline.MaxLine))
				line = nil
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return m.all, err
		}
		if m.part = append(m.part, line...); len(line) > 0 {
			m.read++
		}
		if err != nil {
			return m.all, m.flush()
		}
	}
}

var newline = []byte{'\n'}

// tagsImport is an import under way.
type tagsImport struct {
	env    *Env
	client *Client
	all    tagline.Imported
	part   []byte // lines that are not sent yet
	read   int64  // lines, empty ones included
	first  int64  // of them, those in front of part
	most   int    // bytes of a part
	next   time.Time
}

// flush sends the part, in smaller ones if the node takes no body of its size.
func (m *tagsImport) flush() error {
	for rest := m.part; len(rest) > 0; {
		n := len(rest)
		if n > m.most {
			n = max(bytes.LastIndexByte(rest[:m.most], '\n'), bytes.IndexByte(rest, '\n')) + 1
		}
		if n == 0 {
			n = len(rest)
		}
		sent, err := m.send(rest[:n])
		if err != nil {
			return err
		}
		if sent {
			rest = rest[n:]
		}
	}
	m.part = m.part[:0]
	return nil
}

// send sends whole lines. Where the node refuses so many bytes, the next ones are to be fewer; a
// line that is too long by itself is refused with the reason.
func (m *tagsImport) send(lines []byte) (sent bool, err error) {
	count := int64(bytes.Count(lines, newline))
	if lines[len(lines)-1] != '\n' {
		count++
	}
	got, err := m.client.ImportTags(m.env.Context, bytes.NewReader(lines))
	if refused := (*statusError)(nil); errors.As(err, &refused) &&
		refused.Status == http.StatusRequestEntityTooLarge {
		if m.most = min(m.most, len(lines)) / 2; count > 1 {
			return false, nil
		}
		m.all.Lines++
		m.all.Refused++
		m.note(m.first+1, fmt.Sprintf("the line has %d bytes: %v; raise it on the node", len(lines),
			refused))
		m.first++
		return true, nil
	}
	if err != nil {
		return false, err
	}
	all := &m.all
	all.Lines, all.Changed, all.Refused = all.Lines+got.Lines, all.Changed+got.Changed,
		all.Refused+got.Refused
	for _, e := range got.Errors {
		m.note(m.first+e.Line, e.Error)
	}
	m.first += count
	if now := time.Now(); now.After(m.next) {
		m.next = now.Add(importWait)
		fmt.Fprintf(m.env.Err, "%d lines, %d new, %d refused\n", all.Lines, all.Changed, all.Refused)
	}
	return true, nil
}

// refuse counts a line that is not sent. The part is empty.
func (m *tagsImport) refuse(why string) {
	m.read++
	m.first = m.read
	m.all.Lines++
	m.all.Refused++
	m.note(m.read, why)
}

func (m *tagsImport) note(line int64, why string) {
	if len(m.all.Errors) < 10*shown {
		m.all.Errors = append(m.all.Errors, tagline.LineError{Line: line, Error: why})
	}
}

// TagsShowCommand prints the tags of a metric.
type TagsShowCommand struct {
	Target `embed:""`
	Bucket string `arg:"" help:"Name of the bucket."`
	Metric string `arg:"" help:"The metric, such as web.eu.requests."`
}

// Run prints the lines.
func (c *TagsShowCommand) Run(env *Env) error {
	return c.client(env).ExportTags(env.Context, env.Out, c.Bucket, c.Metric)
}

// TagsExportCommand prints all tags.
type TagsExportCommand struct {
	Target `embed:""`
	Bucket string `help:"Only the tags of this bucket." placeholder:"NAME"`
}

// Run prints the lines.
func (c *TagsExportCommand) Run(env *Env) error {
	return c.client(env).ExportTags(env.Context, env.Out, c.Bucket, "")
}
