package admin

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestNumber(t *testing.T) {
	for want, v := range map[string]float64{
		"0.3": 0.3, "0": 0, "-1.5": -1.5, "0.000001": 1e-6, "1e-07": 1e-7,
		"1234567890123456": 1234567890123456, "9007199254740992": 1 << 53,
		"100000000000000000000": 1e20, "1e+21": 1e21,
	} {
		if got := number(v); got != want {
			t.Errorf("%x is printed as %s, not %s", v, got, want)
		}
	}
}

// What is printed reads back as the same double.
func TestNumberReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		back, err := strconv.ParseFloat(number(v), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) && v == v {
			t.Fatalf("%x is printed as %s, which is %x: %v", v, number(v), back, err)
		}
	})
}
