package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"dalmatiner/test/torture/diskfs"
	"dalmatiner/test/torture/load"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
	"dalmatiner/test/torture/verify"
)

func needsFUSE() error { return diskfs.Available() }

// disk puts the data of the round on a disk that obeys.
func (r *round) disk(capacity int64) (*diskfs.Disk, func()) {
	d := diskfs.New(r.seed, capacity)
	var m *diskfs.Mount
	mnt := filepath.Join(r.base, "mnt")
	mount := func() {
		var err error
		if m, err = d.Mount(mnt); err != nil {
			r.violate("mount: %v", err)
		}
	}
	if err := os.MkdirAll(mnt, 0o755); err != nil {
		r.violate("%v", err)
	}
	mount()
	r.data = filepath.Join(mnt, "data")
	return d, func() {
		if m == nil {
			return
		}
		if err := m.Unmount(); err != nil {
			_ = syscall.Unmount(mnt, syscall.MNT_DETACH) // nobody uses it any more
		}
		m = nil
		if !r.finished {
			d.PowerOn()
			mount()
		}
	}
}

// cutPower takes the power from node and disk at the same time, and gives it
// back.
func (r *round) cutPower(d *diskfs.Disk, remount func(), run *load.Run) {
	d.CutPower()
	r.node.Kill()
	if run != nil {
		run.End()
	}
	_ = r.load.Problems() // requests may fail before the node is dead
	remount()
	r.out.events++
}

// end unmounts the disk for good.
func (r *round) end(unmount func()) {
	if r.node != nil {
		r.node.Kill()
	}
	r.finished = true
	unmount()
}

// power cuts the power several times, sometimes again during the start.
func power(r *round) {
	r.oddly()
	d, remount := r.disk(4 << 30)
	defer r.end(remount)
	r.load = load.New(r.seed, time.Now(), load.Size{Series: r.series(40), Slots: 7200})
	for range r.cycles() {
		if !r.start() {
			return
		}
		run := r.load.Start(r.node, true)
		r.untilSomething(run)
		r.note("power cut after %d points", r.load.Points())
		r.cutPower(d, remount, run)
		for r.rng.IntN(3) == 0 && !r.bad {
			if !r.launch() {
				return
			}
			r.sleep(400 * time.Millisecond)
			r.note("power cut during the start")
			r.cutPower(d, remount, nil)
		}
		if r.bad || !r.start() {
			return
		}
		r.compareAfter()
		if r.bad {
			return
		}
		r.note("power cut at rest")
		r.cutPower(d, remount, nil)
	}
}

// failing lets operations fail now and then. The node may go on or end with 1;
// when the disk is well again nothing is missing. What a failed sync left
// unwritten is lost in a power cut behind it.
func failing(r *round) {
	r.oddly()
	d, remount := r.disk(4 << 30)
	defer r.end(remount)
	r.load = load.New(r.seed, time.Now(), load.Size{Series: r.series(40), Slots: 7200})
	for range r.cycles() {
		if !r.start() {
			return
		}
		run := r.load.Start(r.node, true)
		r.sleep(time.Second)
		what := r.fault(d)
		r.sleep(1500 * time.Millisecond)
		d.SetFault(nil)
		r.sleep(300 * time.Millisecond)
		run.End()
		_ = r.load.Problems() // requests may fail while the disk does
		r.note("%s, %d points sent", what, r.load.Points())
		// Without a catalogue it goes on.
		for _, final := range []string{"takes no more records", "takes no more edits",
			"the store can no longer write"} {
			if len(r.node.Log.Lines(final)) == 0 {
				continue
			}
			if _, err := r.node.Wait(subject.Patience); err != nil {
				r.violate("a line says %q, and %v", final, err)
			}
		}
		select {
		case <-r.node.Done():
			if code, _ := r.node.Wait(time.Second); code != 1 { // it has ended
				r.violate("the node ended with %d, want 1\n%s", code, r.node.Log.Tail(8))
			}
			r.note("the node ended")
		default:
			r.compare(verify.Options{Sample: 1})
		}
		_ = r.load.Problems() // requests may fail while the disk does
		if r.bad {
			return
		}
		if r.rng.IntN(2) == 0 {
			r.note("power cut")
			r.cutPower(d, remount, nil)
		} else {
			r.node.Kill()
		}
		if !r.start() {
			return
		}
		r.compareAfter()
		if r.bad {
			return
		}
		r.node.Kill()
	}
	r.out.events += d.Faults()
}

// fault makes a few operations of one kind fail from now on.
func (r *round) fault(d *diskfs.Disk) string {
	op := []diskfs.Op{diskfs.OpRead, diskfs.OpWrite, diskfs.OpSync, diskfs.OpNames}[r.rng.IntN(4)]
	name := map[diskfs.Op]string{diskfs.OpRead: "reads", diskfs.OpWrite: "writes",
		diskfs.OpSync: "syncs", diskfs.OpNames: "changes of names"}[op]
	left, every := 1+r.rng.IntN(5), 1+r.rng.IntN(20)
	seen := 0
	d.SetFault(func(o diskfs.Op, _ string) syscall.Errno {
		if o != op || left == 0 {
			return 0
		}
		if seen++; seen%every != 0 {
			return 0
		}
		left--
		return syscall.EIO
	})
	return fmt.Sprintf("%d of %s failed, one in %d", left, name, every)
}

// full fills the disk while points come, starts the node with nothing free, and
// gives space back without a restart.
func full(r *round) {
	const capacity = 96 << 20
	r.oddly()
	d, remount := r.disk(capacity)
	defer r.end(remount)
	if r.rng.IntN(2) == 0 {
		r.flags = append(r.flags, "--set", "storage.min_free=8MB")
	}
	r.load = load.New(r.seed, time.Now(), load.Size{Series: r.series(40), Slots: 7200})
	for range 2 {
		if !r.start() {
			return
		}
		run := r.load.Start(r.node, true)
		r.sleep(time.Second)
		d.Fill(r.rng.Int64N(4 << 20))
		r.sleep(time.Second)
		d.Fill(0)
		r.sleep(time.Second)
		r.note("nothing free after %d points", r.load.Points())
		r.out.events++
		select {
		case <-r.node.Done():
			r.note("the node ended")
		default:
			r.node.Kill()
		}
		run.End()
		_ = r.load.Problems() // requests may fail without space
		// Nothing is free, not even what the node's own end gave back.
		d.Fill(0)
		if !r.start() {
			return
		}
		r.note("started with nothing free")
		r.compare(verify.Options{Settle: true, Sample: 2})
		d.SetCapacity(capacity * 8)
		r.note("space is back")
		r.resumes()
		if r.bad {
			return
		}
		r.compareAfter()
		r.node.Kill()
	}
}

// resumes waits until points are stored again.
func (r *round) resumes() {
	begin := time.Now()
	for {
		before := confirmed(r.load.Book)
		err := r.load.Rounds(r.node, 1)
		if err == nil && confirmed(r.load.Book) > before {
			return
		}
		if time.Since(begin) > 30*time.Second {
			r.violate("30 s after space was given back no points are stored: %v\n%s", err,
				r.node.Log.Tail(6))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func confirmed(k *oracle.Book) (sum uint64) {
	for _, b := range k.Buckets {
		c, _ := b.Lane.Counts()
		sum += c
	}
	return sum
}
