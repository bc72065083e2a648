package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/durable"
)

func (l *Log) start() {
	l.tail.open(l.id, l.o.BufferSize+ownRoom)
	l.spare = make([]byte, 0, l.o.BufferSize+ownRoom)
	l.writeSums = newSums(l.id)
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
}

// run is the writer: the only goroutine that touches the active file.
func (l *Log) run() {
	var linger, tick, rest <-chan time.Time
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
		}
	}
}

func (l *Log) requestSync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncReq = max(l.syncReq, l.tail.end)
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
	}
	if len(l.tail.buf) > 0 && (w.sync || due || l.stalled > 0 || len(l.tail.buf) >= writePiece) {
		w.buf, w.first = l.tail.take(l.spare)
		l.spare = nil
		l.room.Broadcast()
		w.sync = w.sync || l.o.Sync == Always
	}
	w.lingers = len(w.buf) == 0 && len(l.tail.buf) > 0
	w.rests = len(l.tail.buf) == 0 && (!w.unsynced || l.o.Sync == Off) && l.tail.unrepeated()
	w.exit = l.closing && len(w.buf) == 0 && !w.sync
	return w
}

func (l *Log) turn(w work) error {
	if len(w.buf) > 0 {
		l.fillMark(w.buf, w.first)
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
// it is full. It destroys buf, because vfs.File.Write may.
func (l *Log) write(buf []byte, first LSN) error {
	for len(buf) > 0 {
		if l.active == nil {
			if err := l.create(first); err != nil {
				return err
			}
		}
		n := fit(buf, l.o.FileSize-l.activeSize)
		if n == 0 && l.activeSize > headerSize {
			if err := l.finish(first); err != nil {
				return err
			}
			continue
		}
		if n == 0 {
			// A record larger than a file gets a file of its own.
			n = frameSize + int(binary.LittleEndian.Uint32(buf)&lengthMask)
		}
		got, err := l.active.Write(buf[:n])
		if err == nil && got < n {
			err = io.ErrShortWrite
		}
		if err != nil {
			return fmt.Errorf("write of %d bytes to %s: %w", n, l.path(l.prev), err)
		}
		l.activeSize += int64(n)
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

// create begins the file for first. Header and directory entry are durable
// before the first record is written, so that an unreadable header in front of
// records is damage and never a torn creation.
func (l *Log) create(first LSN) error {
	name := l.path(first)
	if err := l.beginLast(first); err != nil {
		return err
	}
	f, err := l.o.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	l.active, l.activeSize = f, headerSize
	if err := f.Preallocate(0, l.o.FileSize); err != nil {
		// Not every file system can; a full disk shows in the writes.
		l.o.Logger.Debug("wal: preallocate", "file", name, "bytes", l.o.FileSize, "err", err)
	} else {
		l.granted.Store(uint64(first) + uint64(l.o.FileSize-headerSize))
	}
	h := header{id: l.id, first: first, clean: min(l.clean, first), prev: l.prev}
	n, err := f.Write(appendHeader(make([]byte, 0, headerSize), h))
	if err == nil && n < headerSize {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write header of %s: %w", name, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("fsync %s: %w", name, err)
	}
	if err := durable.SyncDir(l.o.FS, l.o.Dir); err != nil {
		return err
	}
	// From now on it is missing where it is not there.
	if err := l.writeLast(&last{head: h, durable: first}, true); err != nil {
		return err
	}
	l.prev = first
	l.mu.Lock()
	l.files = append(l.files, file{first: first, head: h})
	l.mu.Unlock()
	return nil
}

// finish fsyncs and closes the active file, which ends at end. A file begins
// only when all before it is durable: a tear is always in the newest file.
func (l *Log) finish(end LSN) error {
	if err := l.sync(end); err != nil {
		return err
	}
	f := l.active
	l.active, l.clean = nil, end
	l.granted.Store(0)
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", l.path(l.prev), err)
	}
	return nil
}

// sync fsyncs the active file and publishes that all below upTo is durable.
func (l *Log) sync(upTo LSN) error {
	begin := l.o.Now()
	if err := l.active.SyncData(); err != nil {
		return fmt.Errorf("fsync %s: %w", l.path(l.prev), err)
	}
	took := l.o.Now().Sub(begin)
	// Before anybody is told: a bad place below is damage.
	if err := l.writeLast(&last{head: l.newest, durable: upTo}, false); err != nil {
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
	if l.lastOpen != nil {
		var err error
		if cause == nil {
			err = l.lastOpen.SyncData()
		}
		if err = errors.Join(err, l.lastOpen.Close()); cause == nil && err != nil {
			cause = fmt.Errorf("close %s: %w", l.o.FS.PathJoin(l.o.Dir, lastFile), err)
		}
	}
	if l.active != nil {
		err := l.active.Close()
		if cause == nil && err != nil {
			cause = fmt.Errorf("close %s: %w", l.path(l.prev), err)
		}
	}
	l.mu.Lock()
	l.stopped = true
	if cause != nil {
		l.err = fmt.Errorf("wal: the log has failed and takes no more records until a restart: %w", cause)
		l.o.Logger.Error("wal: failed", "dir", l.o.Dir, "end", uint64(l.tail.end), "durable", uint64(l.durableLSN()), "err", cause)
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
