package admin

import "testing"

func TestLossesOfAnUnknownNumberAreSaid(t *testing.T) {
	for want, counts := range map[string]map[string]uint64{
		"none":                                   nil,
		"damaged 6, missing 1":                   {"missing": 1, "damaged": 6},
		"log (how many is not known)":            {"log": 0},
		"damaged 6, log (how many is not known)": {"log": 0, "damaged": 6},
	} {
		if got := losses(counts); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
}
