package graphite

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"dalmatiner/internal/model/metric"
)

// reason says why an input was refused; accepted is none.
type reason uint8

const (
	accepted     reason = iota
	malformed           // not three fields
	lineTooLong         // more bytes than the limit
	lineCut             // the connection ended within the line
	nameTooLong         // more bytes than a key may have
	partTooLong         // a part of more than 255 bytes
	badTag              // a tag without name, = or value
	duplicateTag        // a tag that is given twice
	badValue            // no number
	badTimestamp        // no time
	frameCut            // the connection ended within the frame
	badPickle           // a frame that is no list of the known form
	frameTooLong        // a frame of more bytes than the limit
	manyConns           // a connection beyond the limit
	noMemory            // a frame that there is no memory for
)

var reasonNames = [...]string{
	"", "malformed", "line_too_long", "line_cut", "name_too_long", "part_too_long", "bad_tag",
	"duplicate_tag", "bad_value", "bad_timestamp",
	"frame_cut", "bad_pickle", "frame_too_long", "too_many_connections", "memory",
}

func (r reason) String() string { return reasonNames[r] }

// decoder turns lines into points. After a call that returned accepted, key, slot,
// ms and word hold the point until the next call.
type decoder struct {
	key  []byte
	name int // bytes of the key in front of its tags; 0 without tags
	slot uint64
	ms   int64 // the point's time
	word uint64

	resolution int64 // of the bucket, ms
	now        int64 // ms, for lines without a time

	// The timestamp before and its slot: a sender's lines come in bursts of
	// one time, and a compare is cheaper than a division.
	timestamp     []byte
	timestampSlot uint64
	timestampMs   int64

	tags [][]byte // of the path under way
}

// reset prepares for lines that arrive at the given time, for a bucket of the
// given resolution, both in milliseconds.
func (d *decoder) reset(now, resolution int64) {
	d.now = max(now, 0)
	if resolution != d.resolution {
		d.resolution, d.timestamp = resolution, d.timestamp[:0]
	}
}

// line decodes one line, without its newline. It tries the form that nearly
// every line has and takes the long way for all others.
func (d *decoder) line(line []byte) reason {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	i := bytes.IndexByte(line, ' ')
	if i <= 0 || !d.shortKey(line[:i]) {
		return d.anyLine(line)
	}
	rest := line[i+1:]
	j := bytes.IndexByte(rest, ' ')
	if j <= 0 {
		return d.anyLine(line)
	}
	if timestamp := rest[j+1:]; len(timestamp) == 0 || string(timestamp) != string(d.timestamp) {
		if d.time(timestamp) != accepted {
			return d.anyLine(line)
		}
	} else {
		d.slot, d.ms = d.timestampSlot, d.timestampMs
	}
	var ok bool
	if d.word, ok = parseValue(rest[:j]); !ok {
		return d.anyLine(line)
	}
	return accepted
}

// anyLine decodes a line of any form: fields between any number of blanks and
// tabs, tags behind semicolons, empty parts.
func (d *decoder) anyLine(line []byte) reason {
	path, rest := cutField(bytes.TrimLeft(bytes.TrimRight(line, " \t\r"), " \t"))
	value, rest := cutField(rest)
	timestamp, rest := cutField(rest)
	if len(timestamp) == 0 || len(rest) > 0 {
		return malformed
	}
	if r := d.anyKey(path); r != accepted {
		return r
	}
	var ok bool
	if d.word, ok = parseValue(value); !ok {
		return badValue
	}
	return d.time(timestamp)
}

// cutField returns the bytes before the first blank or tab, and those after
// the last one of that gap.
func cutField(s []byte) (field, rest []byte) {
	i := bytes.IndexAny(s, " \t")
	if i < 0 {
		return s, nil
	}
	return s[:i], bytes.TrimLeft(s[i:], " \t")
}

// time reads a timestamp into the slot.
func (d *decoder) time(timestamp []byte) reason {
	ms, now, ok := parseSeconds(timestamp)
	if !ok {
		return badTimestamp
	}
	d.setTime(ms, now)
	if !now {
		d.timestamp, d.timestampSlot, d.timestampMs = append(d.timestamp[:0], timestamp...), d.slot, ms
	}
	return accepted
}

func (d *decoder) setTime(ms int64, now bool) {
	if now {
		ms = d.now
	}
	d.slot, d.ms = uint64(ms/d.resolution), ms
}

const (
	each  = 0x0101010101010101
	low7  = 0x7f * each
	dots  = '.' * each
	tabs  = '\t' * each
	semis = ';' * each
)

// zeros returns the top bit of every byte of w that is 0.
func zeros(w uint64) uint64 { return ^((w&low7 + low7) | w | low7) }

// plainKey makes the key of a path without tags: as long as the path and one
// byte, every dot replaced by the length of the part behind it. It is false
// for paths that anyKey must judge.
func (d *decoder) plainKey(path []byte) bool {
	if len(path) >= metric.MaxKey {
		return false
	}
	end := len(path) + 1
	// Words are read eight bytes at a time, the last one over the end.
	key := append(append(append(d.key[:0], 0), path...), 0, 0, 0, 0, 0, 0, 0)
	d.key = key[:end]
	last := 0 // where the length of the part under way goes
	for i := 1; i < end; i += 8 {
		w := binary.LittleEndian.Uint64(key[i:])
		if zeros(w^semis)|zeros(w^tabs) != 0 {
			return false
		}
		for m := zeros(w ^ dots); m != 0; m &= m - 1 {
			dot := i + bits.TrailingZeros64(m)/8
			if n := dot - last - 1; n < 1 || n > metric.MaxPart {
				return false
			}
			key[last] = byte(dot - last - 1)
			last = dot
		}
	}
	n := end - last - 1
	key[last] = byte(n)
	return n >= 1 && n <= metric.MaxPart
}

// shortKey makes the key of a path without empty parts. It is false for paths
// that anyKey must judge.
func (d *decoder) shortKey(path []byte) bool {
	d.name = 0
	if d.plainKey(path) {
		return true
	}
	i := bytes.IndexByte(path, ';')
	return i > 0 && d.plainKey(path[:i]) && bytes.IndexByte(path[i:], '\t') < 0 &&
		d.addTags(path[i+1:]) == accepted
}

// anyKey makes the key of a path of any form.
func (d *decoder) anyKey(path []byte) reason {
	name, tags, tagged := bytes.Cut(path, []byte(";"))
	if len(name) == 0 {
		return malformed
	}
	parts := strings.Split(string(name), ".")
	parts = parts[:len(parts)-metadata(parts)]
	d.key, d.name = d.key[:0], 0
	for _, p := range parts {
		if len(p) > metric.MaxPart {
			return partTooLong
		}
		d.key = metric.AppendPart(d.key, p)
	}
	if tagged {
		return d.addTags(tags)
	}
	if len(d.key) > metric.MaxKey {
		return nameTooLong
	}
	return accepted
}

// metadata returns how many parts at the end are the original proxy's
// metadata: behind an empty part, and all of the form k=v. They say something
// about the series and are no part of its name. An empty part with anything
// else behind it is a part like others.
func metadata(parts []string) int {
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i] == "" {
			if n := len(parts) - i; n > 1 {
				return n
			}
			return 0
		}
		if !strings.Contains(parts[i], "=") {
			return 0
		}
	}
	return 0
}

// addTags appends the tags k=v;k=v to the key as one part each, sorted by their names as carbon
// does it, so that their order in the line does not matter.
func (d *decoder) addTags(text []byte) reason {
	d.tags, d.name = d.tags[:0], len(d.key)
	sorted := true
	for more := true; more; {
		var tag []byte
		tag, text, more = bytes.Cut(text, []byte(";"))
		if i := bytes.IndexByte(tag, '='); i < 1 || i == len(tag)-1 {
			return badTag
		}
		if len(tag) > metric.MaxPart {
			return partTooLong
		}
		n := len(d.tags)
		sorted = sorted && (n == 0 || byName(d.tags[n-1], tag) < 0)
		d.tags = append(d.tags, tag)
	}
	if !sorted {
		slices.SortFunc(d.tags, byName)
	}
	for i, tag := range d.tags {
		if !sorted && i > 0 && byName(d.tags[i-1], tag) == 0 {
			return duplicateTag
		}
		d.key = append(append(d.key, byte(len(tag))), tag...)
	}
	if len(d.key) > metric.MaxKey {
		return nameTooLong
	}
	return accepted
}

// byName compares two tags k=v by their names.
func byName(a, b []byte) int {
	return bytes.Compare(a[:bytes.IndexByte(a, '=')], b[:bytes.IndexByte(b, '=')])
}
