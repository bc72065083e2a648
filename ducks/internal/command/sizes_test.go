package command

import "testing"

func TestRates(t *testing.T) {
	for text, want := range map[string]Rate{"0": 0, "64kbit": 64_000, "1.5mbit": 1_500_000,
		"10gbit": 10_000_000_000} {
		var r Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%q is %d, %v", text, r, err)
		}
		if got := rateText(int64(want)); want > 0 && got != text {
			t.Errorf("%d is %q", want, got)
		}
	}
	for _, text := range []string{"", "1", "gbit", "-1mbit", "0mbit", "NaNmbit", "1e30gbit",
		"1 mbit"} {
		if new(Rate).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is a speed", text)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Bytes{"512": 512, "1K": 1024, "1.5M": 3 << 19, "40G": 40 << 30,
		"2T": 2 << 40} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q is %d, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "G", "-1", "0", "1x", "NaN", "1e30T"} {
		if new(Bytes).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is a size", text)
		}
	}
	for n, want := range map[int64]string{0: "0", 1023: "1023", 1024: "1.0K", 3 << 19: "1.5M",
		40 << 30: "40.0G"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}
