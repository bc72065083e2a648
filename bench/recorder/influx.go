package recorder

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dalmatiner/bench/corpus"
)

// Influx returns the corpus of InfluxDB lines, as telegraf writes them: a series
// for every field that is a number. A last line that is not whole is left out.
func Influx(in io.Reader, name, about string, interval int64) (*corpus.Corpus, error) {
	var b builder
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			return b.corpus(name, about, interval)
		}
		if err != nil {
			return nil, err
		}
		if err := influxLine(&b, strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
}

func influxLine(b *builder, line string) error {
	parts := split(line, ' ')
	if len(parts) != 3 {
		return fmt.Errorf("a line has %d parts, want three: %.80q", len(parts), line)
	}
	ns, err := parseInt(parts[2])
	if err != nil {
		return err
	}
	head := split(parts[0], ',')
	labels := []corpus.Label{{Name: "__name__"}}
	for _, tag := range head[1:] {
		name, value, _ := strings.Cut(tag, "=")
		labels = append(labels, corpus.Label{Name: plain(name), Value: plain(value)})
	}
	slices.SortFunc(labels[1:], func(a, b corpus.Label) int { return strings.Compare(a.Name, b.Name) })
	for _, field := range split(parts[1], ',') {
		name, value, _ := strings.Cut(field, "=")
		value = strings.TrimRight(value, "iu")
		if _, err := strconv.ParseFloat(value, 64); err != nil ||
			!strings.ContainsAny(value[:1], "-0123456789") {
			continue // a text or a truth value
		}
		labels[0].Value = plain(head[0]) + "_" + plain(name)
		b.add(labels, ns/1e6, value)
	}
	return nil
}

// split cuts a line at a mark that no backslash precedes and that is not in
// quotes.
func split(line string, mark byte) []string {
	var parts []string
	begin, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == mark && !quoted:
			parts, begin = append(parts, line[begin:i]), i+1
		}
	}
	return append(parts, line[begin:])
}

func plain(s string) string {
	return strings.NewReplacer(`\ `, " ", `\,`, ",", `\=`, "=").Replace(s)
}

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
