package reference

import (
	"cmp"
	"math"
	"slices"
)

// Arithmetic that both meanings share.

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

func less(a, b float64) bool { return a < b }

func more(a, b float64) bool { return a > b }

// extreme returns the first value that none of the others is better than.
// NaN is better than nothing.
func extreme(values []float64, better func(a, b float64) bool) float64 {
	best := math.NaN()
	for _, v := range values {
		if math.IsNaN(best) || better(v, best) {
			best = v
		}
	}
	return best
}

// variance is that of the population.
func variance(values []float64) float64 {
	mean := sum(values) / float64(len(values))
	total := 0.0
	for _, v := range values {
		total += (v - mean) * (v - mean)
	}
	return total / float64(len(values))
}

// sorted returns the value at ⌊(n−1)·p⌋ of the numbers among values.
func sorted(values []float64, p float64) float64 {
	list := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(list) == 0 {
		return math.NaN()
	}
	slices.SortStableFunc(list, cmp.Compare)
	return list[int(math.Floor(float64(len(list)-1)*p))]
}

// grown is the growth of a counter from one value to the next. A fall is a reset to 0.
func grown(before, now float64) float64 {
	if now < before {
		return math.Max(0, now)
	}
	return now - before
}

// scaled computes abs, sqrt_scale and log10_scale.
func scaled(name string, v float64) float64 {
	size := math.Abs(v)
	switch {
	case name == "abs" || v == 0:
		return size
	case name == "sqrt_scale":
		size = math.Sqrt(size)
	default:
		size = math.Log10(size)
	}
	if v < 0 {
		return -size
	}
	return size
}

// operator computes l op r. The meanings differ in divisions by 0.
type operator func(op byte, l, r float64) float64

// operate makes a gap of a division by 0.
func operate(op byte, l, r float64) float64 {
	switch {
	case op == '+':
		return l + r
	case op == '-':
		return l - r
	case op == '*':
		return l * r
	case r == 0:
		return math.NaN()
	}
	return l / r
}

// arithmetic applies a function of a series and a number.
func arithmetic(name string, v, c float64, of operator) float64 {
	switch {
	case name == "min" && v > c || name == "max" && v < c:
		return c
	case name == "min" || name == "max":
		return v
	}
	return of(operators[name], v, c)
}

var operators = map[string]byte{
	"add": '+', "sub": '-', "mul": '*', "multiply": '*', "divide": '/',
	"sum": '+', "diff": '-', "product": '*', "quotient": '/',
}

// between names the functions that operators between series stand for.
var between = map[byte]string{'+': "sum", '-': "diff", '*': "product", '/': "quotient"}

// fold computes what a function makes of the values of several series.
func fold(name string, values []float64, q float64, of operator) float64 {
	switch name {
	case "quantile":
		return sorted(values, q)
	case "avg":
		return sum(values) / float64(len(values))
	case "min":
		return extreme(values, less)
	case "max":
		return extreme(values, more)
	}
	acc := values[0]
	for _, v := range values[1:] {
		acc = of(operators[name], acc, v)
	}
	return acc
}

type nameParts struct{ last, count, below, conf bool }

// splitName cuts the name of first_above, count_below_conf and so on.
func splitName(name string) nameParts {
	has := func(part string) bool {
		for i := 0; i+len(part) <= len(name); i++ {
			if name[i:i+len(part)] == part {
				return true
			}
		}
		return false
	}
	return nameParts{last: has("last"), count: has("count"), below: has("below"), conf: has("conf")}
}
