package httpapi

import (
	"context"
	"runtime"
)

// processors bounds the lists that are gathered and put in order at a time, to one
// less than there are processors. Points come first: with a list for every client
// that asks for one, a sender would wait behind all of them for each of its rows.
type processors chan struct{}

func newProcessors() processors {
	return make(processors, max(1, runtime.GOMAXPROCS(0)-1))
}

// take waits for one, in the order of coming, and returns what gives it back, which
// may be called again. It is given back before anything is written to the client.
func (p processors) take(ctx context.Context) (giveBack func(), err error) {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	held := true
	return func() {
		if held {
			held = false
			<-p
		}
	}, nil
}
