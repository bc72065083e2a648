package monitor

import (
	"testing"
	"time"
)

func TestDrainReportsTheSecondAndStartsOver(t *testing.T) {
	r := New()
	for i := 1; i <= 100; i++ {
		r.Observe(MPut, time.Duration(i)*time.Microsecond)
	}
	r.Observe(Get, 2*time.Hour) // beyond the cap
	got := map[string]float64{}
	drain := func() (n int) {
		r.Drain(func(op Op, figures []Figure) {
			n++
			for _, f := range figures {
				got[op.String()+"."+f.Name] = f.Value
			}
		})
		return n
	}
	if n := drain(); n != 2 {
		t.Fatalf("%d operations reported, want 2", n)
	}
	want := map[string]float64{
		"mput.max": 100, "mput.min": 1, "mput.mean": 50.5, "mput.median": 50, "mput.p99": 99,
		"mput.count": 100, "get.count": 1,
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s = %v, want %v", name, got[name], v)
		}
	}
	if v := got["get.max"]; v < 3.59e9 || v > 3.61e9 {
		t.Errorf("get.max = %v, want about an hour", v)
	}
	if n := drain(); n != 0 {
		t.Errorf("%d operations reported after the drain", n)
	}
	var none *Recorder
	none.Observe(Get, time.Second)
}
