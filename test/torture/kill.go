package main

import (
	"time"

	"dalmatiner/test/torture/load"
	"dalmatiner/test/torture/subject"
	"dalmatiner/test/torture/verify"
)

// kill ends a loaded node with SIGKILL several times, at moments that are often
// the begin of an operation, sometimes again during the start, and compares
// everything after each.
func kill(r *round) {
	r.oddly()
	r.load = load.New(r.seed, time.Now(), load.Size{Series: r.series(64), Slots: 7200})
	for range r.cycles() {
		if !r.start() {
			return
		}
		if r.rng.IntN(2) == 0 {
			r.compareAfter()
		}
		run := r.load.Start(r.node, true)
		r.untilSomething(run)
		r.note("kill -9 after %d points", r.load.Points())
		r.node.Kill()
		run.End()
		r.out.events++
		for r.rng.IntN(3) == 0 {
			if !r.launch() {
				return
			}
			r.sleep(400 * time.Millisecond)
			r.node.Kill()
			r.note("kill -9 during the start")
			r.out.events++
		}
		if !r.start() {
			return
		}
		r.compareAfter()
		if r.bad {
			return
		}
		if r.rng.IntN(4) == 0 {
			r.stopClean()
		} else {
			r.node.Kill()
			r.out.events++
			r.note("kill -9 at rest")
		}
	}
}

// untilSomething waits for a random moment: often that in which the operator has
// just asked for something.
func (r *round) untilSomething(run *load.Run) {
	r.sleep(1500 * time.Millisecond)
	if r.rng.IntN(3) > 0 {
		for drained := false; !drained; {
			select {
			case <-r.load.Begun():
			default:
				drained = true
			}
		}
		select {
		case op := <-r.load.Begun():
			r.note("in or behind %s", op)
			r.sleep(60 * time.Millisecond)
		case <-r.node.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// compareAfter compares everything after a start, during its replay or behind
// it, and the account.
func (r *round) compareAfter() {
	if r.rng.IntN(2) == 0 {
		if err := r.node.Replayed(); err != nil {
			r.violate("%v", err)
		}
	}
	r.compare(verify.Options{Settle: true, Sample: 2})
	if err := r.node.Replayed(); err != nil {
		r.violate("%v", err)
	}
	r.ledger(true)
	if r.rng.IntN(2) == 0 {
		if err := r.node.Flush(true); err != nil {
			r.violate("flush and merge: %v", err)
			return
		}
		r.compare(verify.Options{Sample: 2})
	}
}

// stopClean stops the node, which must exit with 0, and checks the directory.
func (r *round) stopClean() {
	code, err := r.node.Stop()
	if err != nil || code != 0 {
		r.violate("SIGTERM: exit code %d, %v\n%s", code, err, r.node.Log.Tail(4))
	}
	r.note("stop")
	c, err := subject.RunCheck(r.cfg.bin, r.data)
	if err != nil {
		r.violate("%v", err)
		return
	}
	if c.Damaged > 0 {
		r.violate("ddb admin check finds %d damaged places, and nothing was damaged: %v", c.Damaged,
			c.Damages)
	}
}
