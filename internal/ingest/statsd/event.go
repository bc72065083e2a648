package statsd

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/model/term"
)

// occurrence is a line that becomes an event: an event of DogStatsD, or a service check. Its
// slices are valid until the next parse, and while the line is.
type occurrence struct {
	time   int64  // ns; 0: that of arrival
	title  []byte // of an event
	check  []byte // name of a service check; nil for an event
	status int    // of a service check
	text   []byte // the message
	fields []field
	tags   sample // for its tags only
}

// field is a text of an event under a name.
type field struct {
	name  string
	value []byte
}

var (
	eventPrefix = []byte("_e{")
	checkPrefix = []byte("_sc|")
)

// isOccurrence reports whether a line is to become an event.
func isOccurrence(line []byte) bool {
	return bytes.HasPrefix(line, eventPrefix) || bytes.HasPrefix(line, checkPrefix)
}

// parse reads a line in the forms of docs.datadoghq.com/developers/dogstatsd/datagram_shell.
func (o *occurrence) parse(line []byte) error {
	o.time, o.title, o.check, o.status, o.text, o.fields = 0, nil, nil, 0, nil, o.fields[:0]
	o.tags.tags, o.tags.merged = o.tags.tags[:0], o.tags.merged[:0]
	if rest, ok := bytes.CutPrefix(line, checkPrefix); ok {
		return o.parseCheck(rest)
	}
	return o.parseEvent(line[len(eventPrefix):])
}

// parseEvent reads lengths,of}:title|text and sections.
func (o *occurrence) parseEvent(src []byte) error {
	lengths, src, ok := bytes.Cut(src, []byte("}:"))
	first, second, comma := bytes.Cut(lengths, []byte{','})
	title, err := strconv.Atoi(string(first))
	text, err2 := strconv.Atoi(string(second))
	if !ok || !comma || err != nil || err2 != nil || title <= 0 || text < 0 ||
		title > len(src) || text > len(src)-title-1 || src[title] != '|' {
		return errEvent
	}
	o.title, o.text, src = src[:title], src[title+1:title+1+text], src[title+1+text:]
	return o.sections(src, errEvent)
}

// parseCheck reads name|status and sections.
func (o *occurrence) parseCheck(src []byte) error {
	name, rest, _ := bytes.Cut(src, bar)
	status, _, _ := bytes.Cut(rest, bar)
	if len(name) == 0 || len(status) != 1 || status[0]-'0' >= byte(len(statuses)) {
		return errStatus
	}
	o.check, o.status = name, int(status[0]-'0')
	return o.sections(rest[1:], errStatus)
}

// statuses are the names of those of service checks.
var statuses = [...]string{"ok", "warning", "critical", "unknown"}

// sectionNames are those of fields, by how the sections begin.
var sectionNames = map[byte]string{'h': "host", 'k': "aggregation_key", 'p': "priority",
	's': "source_type", 't': "alert_type"}

// sections reads what stands behind the fixed parts, each behind a bar. A message goes on to the
// end. Anything unknown is passed over.
func (o *occurrence) sections(src []byte, bad error) error {
	for len(src) > 0 {
		if src[0] != '|' {
			return bad
		}
		src = src[1:]
		if text, ok := bytes.CutPrefix(src, []byte("m:")); ok && o.check != nil {
			o.text = text
			return nil
		}
		end := bytes.IndexByte(src, '|')
		if end < 0 {
			end = len(src)
		}
		if err := o.section(src[:end]); err != nil {
			return err
		}
		src = src[end:]
	}
	return nil
}

func (o *occurrence) section(text []byte) error {
	if len(text) > 0 && text[0] == '#' {
		return o.tags.parseTags(text[1:])
	}
	if len(text) < 2 || text[1] != ':' {
		return nil
	}
	if text[0] == 'd' {
		seconds, err := strconv.ParseInt(string(text[2:]), 10, 64)
		if err != nil || seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
			return errTime
		}
		o.time = seconds * int64(time.Second)
	}
	if name := sectionNames[text[0]]; name != "" {
		o.fields = append(o.fields, field{name, text[2:]})
	}
	return nil
}

// appendTerm appends the event (DESIGN.md).
func (o *occurrence) appendTerm(dst []byte) []byte {
	dst, mark := term.BeginMap(term.Begin(dst))
	fields := o.fields
	if o.check != nil {
		fields = append(fields, field{"check", o.check}, field{"level", []byte(statuses[o.status])})
	} else {
		fields = append(fields, field{"title", o.title})
	}
	if o.check == nil || len(o.text) > 0 {
		text := bytes.ReplaceAll(o.text, []byte(`\n`), []byte{'\n'})
		fields = append(fields, field{"message", text})
	}
	keys := 0
	for i, f := range fields {
		if !isLast(fields, i) {
			continue // a section that comes twice counts as it was last
		}
		dst = term.AppendText(term.AppendText(dst, f.name), f.value)
		keys++
	}
	if o.check != nil {
		dst = term.AppendInt(term.AppendText(dst, "status"), int64(o.status))
		keys++
	}
	if len(o.tags.tags) > 0 {
		dst = appendTags(term.AppendText(dst, "tags"), o.tags.tags)
		keys++
	}
	term.EndMap(dst, mark, keys)
	return dst
}

// isLast reports whether no later field has the name of one.
func isLast(list []field, i int) bool {
	for _, f := range list[i+1:] {
		if f.name == list[i].name {
			return false
		}
	}
	return true
}

func appendTags(dst []byte, list []labels.Label) []byte {
	dst, mark := term.BeginMap(dst)
	for _, l := range list {
		dst = term.AppendText(term.AppendText(dst, l.Name), l.Value)
	}
	term.EndMap(dst, mark, len(list))
	return dst
}
