package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strings"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// events reads all events over both protocols and has them judged. Only HTTP names what is
// missing; an ERROR in place of the last frame must say that something is.
func events(n *subject.Node, c *dwire.Conn, there bool, e *oracle.Events, opt Options,
	r *Report) error {
	var read []oracle.Read
	var gaps []oracle.Gap
	if there {
		got, err := c.GetEvents(e.Bucket, 1, math.MaxInt64)
		var cut dwire.ServerError
		if err != nil && !errors.As(err, &cut) {
			return err
		}
		for _, v := range got {
			read = append(read, oracle.Read(v))
		}
		overHTTP, g, err := eventsOverHTTP(n, e)
		if err != nil {
			return err
		}
		gaps = g
		if cut == "" && len(gaps) > 0 || cut != "" && len(gaps) == 0 {
			r.Found(oracle.Finding{Class: oracle.Answer, Text: fmt.Sprintf("events: %q over TCP, gaps %v "+
				"over HTTP", cut, gaps)})
		}
		if opt.Region != nil && opt.Region.Back != nil {
			gaps = append(gaps, oracle.Gap{End: math.MaxInt64}) // nothing names what was in that log
		}
		if !equal(read, overHTTP) {
			r.Found(oracle.Finding{Class: oracle.Answer, Text: fmt.Sprintf("events: %d over TCP are not "+
				"the %d over HTTP", len(read), len(overHTTP))})
		}
	}
	r.Events += int64(len(read))
	var lost func(uint32) bool
	if opt.Region != nil {
		lost = opt.Region.Event
	}
	r.LostEvents += e.Judge(read, gaps, opt.Settle, lost, r.Found)
	return nil
}

func equal(a, b []oracle.Read) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Time != b[i].Time || !bytes.Equal(a[i].Term, b[i].Term) {
			return false
		}
	}
	return true
}

func eventsOverHTTP(n *subject.Node, e *oracle.Events) ([]oracle.Read, []oracle.Gap, error) {
	b, err := n.Read("/events?bucket=" + e.Bucket + "&start=0&limit=1000000")
	if err != nil {
		return nil, nil, err
	}
	var a struct {
		E []struct {
			Timestamp int64
			Event     struct{ N, Text string }
		}
		More    bool
		Damaged []struct{ Start, End, Events int64 }
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, nil, err
	}
	if a.More {
		return nil, nil, errors.New("more than 1,000,000 events")
	}
	var read []oracle.Read
	for _, v := range a.E {
		read = append(read, oracle.Read{Time: v.Timestamp, Term: oracle.Term(v.Event.N, v.Event.Text)})
	}
	var gaps []oracle.Gap
	for _, g := range a.Damaged {
		gaps = append(gaps, oracle.Gap{Start: g.Start, End: g.End, Count: g.Events})
	}
	return read, gaps, nil
}

// tags reads the tags of all series and has them judged.
func tags(n *subject.Node, t *oracle.Tags, opt Options, r *Report) error {
	b, err := n.Read("/admin/tags/export?bucket=" + t.Bucket)
	var status *subject.StatusError
	if err != nil && (!errors.As(err, &status) || status.Code != http.StatusNotFound) {
		return err
	}
	read := map[string]map[string]string{}
	for line := range bytes.Lines(b) {
		var l struct {
			Metric []string
			Tags   map[string]string
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("a line of tags: %w", err)
		}
		metric := strings.Join(l.Metric, ".")
		if read[metric] == nil {
			read[metric] = map[string]string{}
		}
		maps.Copy(read[metric], l.Tags) // several lines may say what a series has
	}
	lost, compared := t.Judge(read, opt.Settle, opt.Region != nil && opt.Region.Tags, r.Found)
	r.LostTags, r.Tags = r.LostTags+lost, r.Tags+compared
	return nil
}
