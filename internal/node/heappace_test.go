package node

import (
	"runtime/debug"
	"testing"
	"time"
)

// A heap that is rarely collected gets little slack, one that is collected all
// the time gets the usual one, and in between nothing changes.
func TestHeapPace(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(usualPercent)
	defer debug.SetGCPercent(before)
	var p heapPace
	now, cycles := time.Unix(1, 0), uint64(7)
	p.at(now, cycles)
	for i, step := range []struct {
		cycles uint64
		want   int
	}{{busyCycles, usualPercent}, {calmCycles + 1, usualPercent}, {calmCycles, frugalPercent},
		{3 * calmCycles, frugalPercent},
		{busyCycles - 1, frugalPercent}, {busyCycles, usualPercent}, {0, frugalPercent},
		{calmCycles, leastPercent}, {0, leastPercent},
		{3 * calmCycles, leastPercent}, {busyCycles, usualPercent}, {0, frugalPercent},
		{0, leastPercent}} {
		cycles += step.cycles
		now = now.Add(paceEvery - 1)
		p.at(now, cycles+100) // not yet
		now = now.Add(1)
		before := p.percent
		if smaller := p.at(now, cycles); smaller != (step.want < before) {
			t.Errorf("step %d: from %d to %d %%, and smaller is %v", i, before, step.want, smaller)
		}
		got := debug.SetGCPercent(usualPercent)
		debug.SetGCPercent(got)
		if got != step.want {
			t.Errorf("step %d: %d %%, want %d", i, got, step.want)
		}
		if p.rarely() != (step.want < usualPercent) {
			t.Errorf("step %d: %d %%, and rarely is %v", i, got, p.rarely())
		}
	}
	p.forget()
	if got := debug.SetGCPercent(usualPercent); got != usualPercent {
		t.Errorf("%d %% stay behind", got)
	}
	t.Setenv("GOGC", "200")
	p.at(now.Add(paceEvery), cycles)
	if got := debug.SetGCPercent(usualPercent); got != usualPercent {
		t.Errorf("the operator's GOGC became %d %%", got)
	}
}
