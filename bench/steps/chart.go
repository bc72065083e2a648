package steps

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a chart over time in seconds.
type chart struct {
	title string
	log   bool // scale of the values
	lines []line
}

// line is one curve: seconds and values. On a logarithmic scale values that are
// not above 0 are gaps.
type line struct {
	name, color string
	dots        [][2]float64
}

// Size of a chart and of its margins.
const (
	chartWidth, chartHeight = 900, 320
	chartLeft, chartRight   = 70, 20
	chartTop, chartBottom   = 50, 40
)

// scale maps values to places from 0 to 1.
type scale struct {
	low, high float64
	log       bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return (v - s.low) / (s.high - s.low)
}

// drawn reports whether a value has a place.
func (s scale) drawn(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!s.log || v > 0)
}

// ticks returns where lines are drawn: powers of ten, or round steps.
func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		for p := math.Round(math.Log10(s.low)); p <= math.Round(math.Log10(s.high)); p++ {
			out = append(out, math.Pow(10, p))
		}
		return out
	}
	step := roundStep((s.high - s.low) / 5)
	for i := math.Ceil(s.low / step); i*step <= s.high*(1+1e-9); i++ {
		out = append(out, i*step)
	}
	return out
}

// roundStep returns the least of 1, 2 and 5 times a power of ten that is not
// below v.
func roundStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*p >= v*(1-1e-9) {
			return f * p
		}
	}
	return 10 * p
}

// scales returns those of time and of the values.
func (c *chart) scales() (x, y scale) {
	x = scale{0, 1, false}
	y = scale{math.Inf(1), math.Inf(-1), c.log}
	for _, l := range c.lines {
		for _, d := range l.dots {
			x.high = max(x.high, d[0])
			if y.drawn(d[1]) {
				y.low, y.high = min(y.low, d[1]), max(y.high, d[1])
			}
		}
	}
	switch {
	case y.low > y.high: // there is nothing to draw
		y.low, y.high = 1, 10
	case c.log:
		y.low, y.high = math.Pow(10, math.Floor(math.Log10(y.low))),
			math.Pow(10, math.Floor(math.Log10(y.high))+1)
	default:
		y.low, y.high = 0, max(y.high*1.05, 1e-9)
	}
	return x, y
}

// svg returns the chart as a file.
func (c *chart) svg() []byte {
	x, y := c.scales()
	px := func(v float64) float64 { return chartLeft + x.at(v)*(chartWidth-chartLeft-chartRight) }
	py := func(v float64) float64 {
		return chartHeight - chartBottom - y.at(v)*(chartHeight-chartTop-chartBottom)
	}
	var w bytes.Buffer
	fmt.Fprintf(&w,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&w, `<text x="%d" y="20" font-size="15" fill="#222222">%s</text>`+"\n", chartLeft,
		html.EscapeString(c.title))
	for _, v := range y.ticks() {
		fmt.Fprintf(&w,
			`<path d="M%d %.1fH%d" stroke="#e4e4e4"/><text x="%d" y="%.1f" text-anchor="end" fill="#555555">%s</text>`+"\n",
			chartLeft, py(v), chartWidth-chartRight, chartLeft-6, py(v)+4, short(v))
	}
	for _, v := range x.ticks() {
		fmt.Fprintf(&w, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">%s s</text>`+"\n",
			px(v), chartHeight-chartBottom+18, short(v))
	}
	for i, l := range c.lines {
		for _, part := range y.parts(l.dots) {
			var path strings.Builder
			for _, d := range part {
				fmt.Fprintf(&path, "%.1f,%.1f ", px(d[0]), py(d[1]))
			}
			fmt.Fprintf(&w, `<polyline fill="none" stroke="%s" stroke-width="1.8" points="%s"/>`+"\n",
				l.color, strings.TrimSpace(path.String()))
		}
		fmt.Fprintf(&w, `<text x="%d" y="38" fill="%s">■ %s</text>`+"\n", chartLeft+i*260, l.color,
			html.EscapeString(l.name))
	}
	w.WriteString("</svg>\n")
	return w.Bytes()
}

// parts cuts a curve where it has no value.
func (s scale) parts(dots [][2]float64) (out [][][2]float64) {
	var part [][2]float64
	for _, d := range dots {
		if s.drawn(d[1]) {
			part = append(part, d)
			continue
		}
		if part != nil {
			out = append(out, part)
		}
		part = nil
	}
	if part != nil {
		out = append(out, part)
	}
	return out
}

// short prints a number with the letter of its thousands.
func short(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "µ"}} {
		if v >= unit.size*(1-1e-9) {
			return fmt.Sprintf("%.3g%s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g", v)
}
