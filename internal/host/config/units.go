package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// unit is a suffix and what one of it is worth.
type unit struct {
	name string
	size int64
}

const week = 7 * 24 * time.Hour

var durationUnits = []unit{
	{"w", int64(week)},
	{"d", int64(24 * time.Hour)},
	{"h", int64(time.Hour)},
	{"m", int64(time.Minute)},
	{"s", int64(time.Second)},
	{"ms", int64(time.Millisecond)},
	{"us", int64(time.Microsecond)},
	{"ns", 1},
}

var sizeUnits = []unit{
	{"TB", 1 << 40},
	{"GB", 1 << 30},
	{"MB", 1 << 20},
	{"KB", 1 << 10},
	{"B", 1},
}

// ParseDuration reads whole numbers with a unit of w d h m s ms us ns, also
// several in a row: 90s, 1h30m, 1w. A bare 0 is allowed, other numbers need
// their unit: the original took bare numbers for milliseconds in some places
// and for points in others.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if text == "" {
		return 0, fmt.Errorf("no duration, write a number and a unit of w d h m s ms us ns such as 90s")
	}
	var total int64
	for rest := text; rest != ""; {
		n, name, tail, err := numberAndUnit(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration, write a number and a unit of w d h m s ms us ns such "+
				"as 90s", text)
		}
		size, ok := unitSize(durationUnits, strings.ToLower(name))
		if !ok {
			return 0, fmt.Errorf("%q has no unit of w d h m s ms us ns, write for example 90s", text)
		}
		if n > (math.MaxInt64-total)/size {
			return 0, fmt.Errorf("%s is too long, the limit is %s", text,
				FormatDuration(math.MaxInt64/week*week))
		}
		total += n * size
		rest = tail
	}
	return time.Duration(total), nil
}

// FormatDuration prints a duration in the largest unit that divides it, as the
// original does: 1s, 90s, 1w; nothing is 0ns.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0ns"
	}
	return format(durationUnits, int64(d))
}

// ParseSize reads a number of bytes: a whole number, bare or with a unit of
// B KB MB GB TB, powers of 1024.
func ParseSize(text string) (int64, error) {
	n, name, tail, err := numberAndUnit(text)
	if err != nil || tail != "" {
		return 0, fmt.Errorf("%q is no size, write a number and a unit of B KB MB GB TB such as 64MB",
			text)
	}
	size, ok := unitSize(sizeUnits, strings.ToUpper(name))
	if !ok && name != "" {
		return 0, fmt.Errorf("%q has no unit of B KB MB GB TB, write for example 64MB", text)
	}
	if name == "" {
		size = 1
	}
	if n > math.MaxInt64/size {
		return 0, fmt.Errorf("%s is too large, the limit is %s", text, FormatSize(math.MaxInt64>>40<<40))
	}
	return n * size, nil
}

// FormatSize prints a number of bytes in the largest unit that divides it.
func FormatSize(n int64) string {
	if n == 0 {
		return "0B"
	}
	return format(sizeUnits, n)
}

func format(units []unit, n int64) string {
	for _, u := range units {
		if n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func unitSize(units []unit, name string) (int64, bool) {
	for _, u := range units {
		if u.name == name {
			return u.size, true
		}
	}
	return 0, false
}

// numberAndUnit splits "90s1ms" into 90, "s" and "1ms". Blanks around the
// number are allowed, a sign is not.
func numberAndUnit(text string) (n int64, name, rest string, err error) {
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	n, err = strconv.ParseInt(text[:i], 10, 64)
	if err != nil {
		return 0, "", "", err
	}
	text = strings.TrimLeft(text[i:], " ")
	i = 0
	for i < len(text) && (text[i] < '0' || text[i] > '9') {
		i++
	}
	return n, strings.TrimSpace(text[:i]), text[i:], nil
}
