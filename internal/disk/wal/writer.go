package wal

import (
	"encoding/binary"
	"fmt"
	"time"
)

func (l *Log) start() {
	l.tail.open(l.found.id, l.o.BufferSize+ownRoom)
	l.spare = make([]byte, 0, l.o.BufferSize+ownRoom)
	l.out.sums = newSums(l.found.id)
	l.room.L = &l.mu
	l.progress = make(chan struct{})
	l.wake = make(chan struct{}, 1)
	l.done = make(chan struct{})
	go l.run()
}

// work is one turn of the writer.
type work struct {
	buf      []byte // to be written; empty = nothing
	first    LSN    // of buf[0]
	upTo     LSN    // everything below is written after the turn
	sync     bool
	exit     bool
	lingers  bool // a small buffer waits for more
	rests    bool // all is written, and something is to be repeated
	unsynced bool
	awaited  bool // somebody waits for an fsync in mode Interval
}

// run is the writer: the only goroutine that touches the active file.
func (l *Log) run() {
	var linger, tick, awaited, rest <-chan time.Time
	due, rested := false, false
	for {
		w := l.take(due, rested)
		due, rested = false, false
		if w.exit {
			l.stop(nil)
			return
		}
		if w.unsynced && l.o.Sync == Interval && tick == nil {
			tick = l.o.After(l.o.Interval)
		}
		if w.awaited && awaited == nil {
			awaited = l.o.After(min(awaitedTime, l.o.Interval))
		}
		if len(w.buf) > 0 || w.sync {
			linger, rest = nil, nil
			if err := l.turn(w); err != nil {
				l.stop(err)
				return
			}
			select {
			case <-tick:
				tick = nil
				l.requestSync()
			case <-awaited:
				awaited = nil
				l.syncAwaited()
			default:
			}
			continue
		}
		if w.lingers && linger == nil {
			linger = l.o.After(lingerTime)
		}
		if w.rests && rest == nil {
			rest = l.o.After(restTime)
		}
		select {
		case <-l.wake:
		case <-linger:
			linger, due = nil, true
		case <-rest:
			rest, rested = nil, true
		case <-tick:
			tick = nil
			l.requestSync()
		case <-awaited:
			awaited = nil
			l.syncAwaited()
		}
	}
}

func (l *Log) requestSync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncReq = max(l.syncReq, l.tail.end)
}

// syncAwaited wants the fsync that is waited for, unless another one has come meanwhile.
func (l *Log) syncAwaited() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncReq = max(l.syncReq, l.awaited)
}

// take decides what the next turn does and swaps the buffers for it. due says
// that a small buffer has waited long enough, rested that the log has: then, and at
// its end, it repeats what it has not.
func (l *Log) take(due, rested bool) work {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing || rested && len(l.tail.buf) == 0 {
		l.tail.repeat()
		due = true
	}
	durable := l.durableLSN()
	w := work{
		upTo:     l.tail.end,
		sync:     l.syncReq > durable || l.closing && l.tail.end > durable,
		unsynced: l.tail.end > durable,
		awaited:  l.awaited > durable,
	}
	if len(l.tail.buf) > 0 && (w.sync || due || l.stalled > 0 || len(l.tail.buf) >= writePiece) {
		w.buf, w.first = l.tail.take(l.spare)
		l.spare = nil
		l.room.Broadcast()
		w.sync = w.sync || l.o.Sync == Always
	}
	w.lingers = len(w.buf) == 0 && len(l.tail.buf) > 0
	w.rests = len(l.tail.buf) == 0 && (!w.unsynced || l.o.Sync == Off) && l.tail.hasUnrepeated()
	w.exit = l.closing && len(w.buf) == 0 && !w.sync
	return w
}

func (l *Log) turn(w work) error {
	if len(w.buf) > 0 {
		l.out.mark(w.buf, w.first, l.durableLSN())
		if err := l.write(w.buf, w.first); err != nil {
			return err
		}
		l.spare = w.buf[:0]
	}
	if !w.sync {
		return nil
	}
	return l.sync(w.upTo)
}

// write appends whole records to the active file and begins a new one where
// it is full. It destroys buf.
func (l *Log) write(buf []byte, first LSN) error {
	for len(buf) > 0 {
		if l.out.active == nil {
			f, err := l.out.create(first)
			if err != nil {
				return err
			}
			l.mu.Lock()
			l.files = append(l.files, f)
			l.mu.Unlock()
		}
		n := l.out.fit(buf)
		if n == 0 {
			if err := l.finish(first); err != nil {
				return err
			}
			continue
		}
		if err := l.out.write(buf[:n]); err != nil {
			return err
		}
		buf = buf[n:]
		first += LSN(n)
		l.mu.Lock()
		l.stats.Writes++
		l.mu.Unlock()
	}
	return nil
}

// fit returns the size of the records at the head of buf that take up at most
// room bytes together.
func fit(buf []byte, room int64) int {
	if int64(len(buf)) <= room {
		return len(buf)
	}
	n := 0
	for {
		next := n + frameSize + int(binary.LittleEndian.Uint32(buf[n:])&lengthMask)
		if int64(next) > room {
			return n
		}
		n = next
	}
}

// finish fsyncs and closes the active file, which ends at end. A file begins
// only when all before it is durable: a tear is always in the newest file.
func (l *Log) finish(end LSN) error {
	if err := l.sync(end); err != nil {
		return err
	}
	return l.out.end(end)
}

// sync fsyncs the active file and publishes that all below upTo is durable.
func (l *Log) sync(upTo LSN) error {
	begin := l.o.Now()
	if err := l.out.active.SyncData(); err != nil {
		return fmt.Errorf("fsync %s: %w", l.out.name(), err)
	}
	took := l.o.Now().Sub(begin)
	// Before anybody is told: a bad place below is damage.
	if err := l.out.writeLast(&fileState{head: l.out.newest, durable: upTo}, false); err != nil {
		return err
	}
	l.durable.Store(uint64(upTo))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs++
	l.stats.SyncTime += took
	l.stats.SyncMax = max(l.stats.SyncMax, took)
	close(l.progress)
	l.progress = make(chan struct{})
	return nil
}

// stop ends the writer, after a failure for good: after a failed fsync the
// kernel may have dropped the pages and a second one would succeed without
// them.
func (l *Log) stop(cause error) {
	cause = l.out.close(cause)
	l.mu.Lock()
	l.stopped = true
	if cause != nil {
		l.err = fmt.Errorf("wal: the log has failed and takes no more records until a restart: %w", cause)
		l.o.Logger.Error("wal: failed", "dir", l.o.Dir, "end", uint64(l.tail.end), "durable",
			uint64(l.durableLSN()), "err", cause)
	}
	err := l.err
	close(l.progress)
	l.progress = nil
	l.room.Broadcast()
	l.mu.Unlock()
	close(l.done)
	if err != nil && l.o.OnFailure != nil {
		l.o.OnFailure(err)
	}
}
