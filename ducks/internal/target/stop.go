package target

import (
	"context"
	"errors"
)

// Stop ends the tgtd that a process before this one has left in a directory, and forgets its
// targets. It returns how many sessions it has ended, and false if no tgtd runs there. Nobody runs
// Start there.
func Stop(ctx context.Context, dir string) (sessions int, ran bool, err error) {
	t := &Targets{options: Options{Dir: dir}}
	if t.tgtd, err = t.options.find(); err != nil || t.tgtd == nil {
		return 0, false, err
	}
	if t.targets, err = t.options.load(); err != nil {
		return 0, true, err
	}
	for _, m := range t.targets {
		list, e := t.sessions(ctx, m)
		if e != nil { // it does not know that target, or does not answer: it ends all the same
			continue
		}
		sessions += len(list)
	}
	clear(t.targets)
	return sessions, true, errors.Join(t.options.save(t.targets), t.tgtd.kill())
}

// Count returns how many targets there are.
func (t *Targets) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.targets)
}
