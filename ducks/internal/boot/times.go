package boot

import (
	"slices"
	"sync"
	"time"
)

// Stage is how far a device has come.
type Stage int

// The stages, in their order. A device whose firmware is iPXE begins with Loaded.
const (
	Addressed Stage = iota // its firmware has an address
	Fetched                // it has loaded iPXE by TFTP
	Loaded                 // its iPXE has an address
	Scripted               // it was told its disk
	LoggedIn               // it has a session with its disk
	Read                   // it has read from it
	Up                     // its system says so
	Stages                 // how many there are
)

var stageNames = [Stages]string{"dhcp", "tftp", "ipxe", "script", "login", "read", "up"}

// String returns the name of the stage.
func (s Stage) String() string { return stageNames[s] }

// Course is a boot of a device: when it reached which stage. A stage that it did not reach, or left
// out, is zero.
type Course struct {
	MAC   string
	At    [Stages]time.Time
	Lacks string // what its firmware was to load and is not there; it has come no further
}

// Begun returns when the first thing was heard of it.
func (c *Course) Begun() (first time.Time) {
	for _, at := range c.At {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// last returns the stage that it has reached, -1 for none.
func (c *Course) last() Stage {
	for s := Up; s >= 0; s-- {
		if !c.At[s].IsZero() {
			return s
		}
	}
	return -1
}

// Last returns the stage that it has reached, and when.
func (c *Course) Last() (s Stage, at time.Time) {
	s = c.last()
	if s < 0 {
		return s, at
	}
	return s, c.At[s]
}

// What is kept of the boots of one machine, and of how many machines.
const (
	coursesKept = 8
	mostCourses = 4096
)

// Times are the last boots of machines. Its methods may be called concurrently.
type Times struct {
	now func() time.Time

	mu   sync.Mutex
	of   map[string][]Course // by MAC address, the newest last
	tell func(mac string, s Stage, since time.Duration)
}

// NewTimes returns none yet. Each stage that is reached is told, with the time since the one
// before, 0 for the first.
func NewTimes(now func() time.Time, tell func(mac string, s Stage, since time.Duration)) *Times {
	return &Times{now: now, of: make(map[string][]Course), tell: tell}
}

// Note notes that a machine has reached a stage. One that it had reached already begins a new boot;
// when it asks again, as firmware does, that is no new one while it has come no further. Of a stage
// behind the script nothing is noted before that one: a session and a system that say so are those
// of a boot.
func (t *Times) Note(mac string, s Stage) {
	now := t.now()
	t.mu.Lock()
	list := t.of[mac]
	var since time.Duration
	switch n := len(list); {
	case s > Scripted && (n == 0 || list[n-1].At[Scripted].IsZero()):
		t.mu.Unlock() // it is of the boot before, and was seen while this one began
		return
	case n > 0 && list[n-1].last() < s:
		c := &list[n-1]
		since = now.Sub(c.At[c.last()])
		c.At[s], c.Lacks = now, ""
	case n > 0 && list[n-1].last() == s && s < Scripted:
		list[n-1].At[s], list[n-1].Lacks = now, ""
		t.mu.Unlock()
		return
	case s > Scripted:
		t.mu.Unlock()
		return
	default:
		c := Course{MAC: mac}
		c.At[s] = now
		if n == 0 {
			t.makeRoom()
		}
		t.of[mac] = append(list[max(0, n-coursesKept+1):], c)
	}
	t.mu.Unlock()
	t.tell(mac, s, since)
}

// Lacks notes that the firmware of a machine has an address, and nothing to load.
func (t *Times) Lacks(mac, loader string) {
	t.Note(mac, Addressed)
	t.mu.Lock()
	defer t.mu.Unlock()
	if list := t.of[mac]; len(list) > 0 && list[len(list)-1].last() == Addressed {
		list[len(list)-1].Lacks = loader
	}
}

// fresh is how long the address of a machine's firmware says that it boots.
const fresh = time.Minute

// begun reports whether the firmware of a machine has just asked for an address, and the machine
// was not told its disk since: what it had before has ended.
func (t *Times) begun(mac string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.of[mac]
	if len(list) == 0 {
		return false
	}
	c := &list[len(list)-1]
	s, at := c.Last()
	return s < Scripted && (!c.At[Addressed].IsZero() || !c.At[Loaded].IsZero()) &&
		t.now().Sub(at) < fresh
}

// makeRoom forgets the machine of which nothing was heard for the longest time, if there are too
// many.
func (t *Times) makeRoom() {
	if len(t.of) < mostCourses {
		return
	}
	oldest, since := "", time.Time{}
	for mac, list := range t.of {
		c := &list[len(list)-1]
		if at := c.At[c.last()]; oldest == "" || at.Before(since) {
			oldest, since = mac, at
		}
	}
	delete(t.of, oldest)
}

// Of returns the last boots of a machine, the newest first.
func (t *Times) Of(mac string) []Course {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.of[mac])
	slices.Reverse(list)
	return list
}

// Waiting returns the machines that were told their disk, and have not logged in or not read yet.
func (t *Times) Waiting() (macs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for mac, list := range t.of {
		if s := list[len(list)-1].last(); s == Scripted || s == LoggedIn {
			macs = append(macs, mac)
		}
	}
	slices.Sort(macs)
	return macs
}
