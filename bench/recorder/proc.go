package recorder

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dalmatiner/bench/corpus"
)

// maxSnapshot bounds the text of one file of a capture.
const maxSnapshot = 1 << 22

// Proc returns the corpus of a capture. A number's name is its file, the words
// before it in its line, what stands above it, and which number of the line it
// is. The time of a sample is the full interval in which it was read, as an
// agent stamps it that reads at full intervals; of two in one interval the first
// counts. A capture may end anywhere: what is not whole is left out.
func Proc(in io.Reader, name, about string, interval int64) (*corpus.Corpus, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, maxSnapshot)
	var b builder
	var p procReader
	at := int64(0)
	for lines.Scan() {
		line := lines.Bytes()
		if mark, ok := bytes.CutPrefix(line, []byte(timeMark)); ok {
			p.emit(&b, at)
			ns, err := strconv.ParseInt(string(mark), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("time of a snapshot: %w", err)
			}
			at = ns / 1e6 / interval * interval
			continue
		}
		p.line(string(line))
	}
	// The last snapshot may not be whole.
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return b.corpus(name, about, interval)
}

// procReader takes the numbers out of the lines of a snapshot.
type procReader struct {
	file    string
	section string   // what stands above the lines, in files that have sections
	heads   []string // the words of the line before, if it had no number
	found   []number
}

type number struct {
	labels []corpus.Label
	text   string
}

// emit adds the numbers of a snapshot.
func (p *procReader) emit(b *builder, at int64) {
	for _, n := range p.found {
		b.add(n.labels, at, n.text)
	}
	p.found, p.file, p.section, p.heads = nil, "", "", nil
}

func (p *procReader) line(line string) {
	if file, ok := strings.CutPrefix(line, fileMark); ok {
		p.file, p.section, p.heads = file, "", nil
		return
	}
	fields := strings.FieldsFunc(line, func(r rune) bool {
		return strings.ContainsRune(" \t:=,()|/", r)
	})
	switch {
	case len(fields) == 0:
		return
	case p.file == "net/softnet_stat":
		p.hex(fields)
		return
	case p.file == "diskstats" && len(fields) > 3:
		fields = fields[2:] // without the numbers of the device
		if strings.HasPrefix(fields[0], "loop") || strings.HasPrefix(fields[0], "ram") {
			return // hosts have many that do nothing
		}
	case p.file == "zoneinfo" && (strings.HasPrefix(line, "Node") || fields[0] == "cpu"):
		p.sections(fields)
		return
	case p.file == "buddyinfo" && len(fields) > 4:
		fields = append([]string{"zone-" + fields[3]}, fields[4:]...)
	case fields[0] == "intr" && len(fields) > 1:
		fields = fields[:2] // the sum: the others are those of interrupts
	}
	p.numbers(fields)
}

// sections keeps the zone, and the processor in it, that the next lines are of.
func (p *procReader) sections(fields []string) {
	if zone := strings.Join(fields, "-"); fields[0] == "Node" {
		p.section = zone
	} else {
		before, _, _ := strings.Cut(p.section, " ")
		p.section = before + " " + zone
	}
}

// numbers adds the numbers that follow the first words of a line.
func (p *procReader) numbers(fields []string) {
	row, column := []string{}, 0
	heads := p.heads
	p.heads = nil
	for i, f := range fields {
		if i == 0 && p.file == "interrupts" || !isNumber(f) {
			if column > 0 && p.file == "interrupts" {
				return // what follows describes the line
			}
			row = append(row, f)
			continue
		}
		field := strconv.Itoa(column)
		if (p.file == "net/snmp" || p.file == "net/netstat") && column+1 < len(heads) {
			field = heads[column+1]
		}
		p.add(strings.Join(row, " "), field, f)
		column++
	}
	if column == 0 {
		p.heads = fields
	}
}

// hex adds the numbers of a line of hexadecimal columns; the line is a
// processor's.
func (p *procReader) hex(fields []string) {
	cpu := 0
	for _, n := range p.found {
		if n.labels[0].Value == "proc_net_softnet_stat" && n.labels[2].Value == "0" {
			cpu++
		}
	}
	for i, f := range fields {
		v, err := strconv.ParseUint(f, 16, 64)
		if err != nil {
			return
		}
		p.add("cpu"+strconv.Itoa(cpu), strconv.Itoa(i), strconv.FormatUint(v, 10))
	}
}

func (p *procReader) add(row, field, text string) {
	labels := []corpus.Label{
		{Name: "__name__", Value: "proc_" + strings.ReplaceAll(strings.ReplaceAll(p.file, "/", "_"), "-",
			"_")},
		{Name: "row", Value: row}, {Name: "field", Value: field},
	}
	if p.section != "" {
		labels = append(labels, corpus.Label{Name: "section", Value: p.section})
	}
	p.found = append(p.found, number{labels, text})
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.Trim(s, "-.0123456789") == ""
}
