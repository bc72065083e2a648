package catalogue

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// compactions lets pebble compact, as many tables at once as pebble allows itself, but not before
// it is open. An open that fails after its first flush closes what a running compaction goes on to
// use, and so ends the process. Pebble's own scheduler also leaves a goroutine behind then.
type compactions struct {
	db pebble.DBForCompaction // set by Register, before all other calls

	mu       sync.Mutex
	idle     *sync.Cond // granting is over
	open     bool       // between begin and Unregister
	granting bool
	running  int
}

func newCompactions() *compactions {
	c := &compactions{}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// begin lets compactions run, first those that wait.
func (c *compactions) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
	c.grant()
}

// grant starts compactions that wait. mu is held, but not while pebble is asked.
func (c *compactions) grant() {
	for c.granting {
		c.idle.Wait()
	}
	for waiting := true; waiting && c.free(); {
		c.granting = true
		c.running++
		c.mu.Unlock()
		waiting, _ = c.db.GetWaitingCompaction()
		waiting = waiting && c.db.Schedule(c)
		c.mu.Lock()
		if !waiting {
			c.running--
		}
		c.granting = false
	}
	c.idle.Broadcast()
}

func (c *compactions) free() bool {
	return c.open && c.running < c.db.GetAllowedWithoutPermission()
}

// Register implements pebble.CompactionScheduler, as do the three methods below.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) { c.db = db }

func (c *compactions) Unregister() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	for c.granting {
		c.idle.Wait()
	}
}

func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.free() {
		return false, nil // where others run, their end grants
	}
	c.running++
	return true, c
}

func (c *compactions) UpdateGetAllowedWithoutPermission() {}

// Done implements pebble.CompactionGrantHandle, as do the three methods below.
func (c *compactions) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.grant()
}

func (c *compactions) Started()                                            {}
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind)           {}
func (c *compactions) CumulativeStats(_ pebble.CompactionGrantHandleStats) {}
