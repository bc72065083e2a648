package eventing

import (
	"time"

	"dalmatiner/internal/store/events"
)

// maxCopied bounds how many events of a generation are remembered.
const maxCopied = 1 << 16

// copiedClasses remembers the events that comparisons have brought a short while ago. Their own
// writes may come after them, and are no repeats then. Eventing.taking and recent guard it.
type copiedClasses struct {
	young, old map[copyKey]events.Class
	turned     time.Time
}

type copyKey struct {
	bucket uint64
	position
}

func keyOf(bucket uint64, e *events.Event) copyKey {
	return copyKey{bucket, position{e.Time, e.ID}}
}

// note remembers events that were stored, for at least so long as life.
func (c *copiedClasses) note(bucket uint64, list []events.Event, classes []events.Class,
	life time.Duration) {
	if now := time.Now(); now.Sub(c.turned) > life || c.young == nil {
		c.young, c.old, c.turned = make(map[copyKey]events.Class), c.young, now
	}
	for i := range list {
		if classes[i] != events.Duplicate && len(c.young) < maxCopied {
			c.young[keyOf(bucket, &list[i])] = classes[i]
		}
	}
}

// replaceClasses replaces the class of events that only a comparison has stored, the first time.
func (c *copiedClasses) replaceClasses(bucket uint64, list []events.Event, classes []events.Class) {
	if len(c.young)+len(c.old) == 0 {
		return
	}
	for i := range list {
		if classes[i] != events.Duplicate {
			continue
		}
		for _, of := range []map[copyKey]events.Class{c.young, c.old} {
			key := keyOf(bucket, &list[i])
			if class, ok := of[key]; ok {
				classes[i] = class
				delete(of, key)
			}
		}
	}
}
