package admin

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table lays out cells in columns two blanks apart. Columns are as wide as
// their widest cell; the ones named in left are aligned left, others right.
type table struct {
	left map[int]bool
	rows [][]string
}

func newTable(left ...int) *table {
	t := &table{left: map[int]bool{}}
	for _, col := range left {
		t.left[col] = true
	}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(pad(cell, widths[i], t.left[i]))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pad widens text to width characters, to the right of it when left is set.
func pad(text string, width int, left bool) string {
	fill := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if left {
		return text + fill
	}
	return fill + text
}
