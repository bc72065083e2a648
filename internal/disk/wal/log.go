package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/durable"
)

// The writer hands a buffer to the operating system when it holds writePiece
// bytes or is lingerTime old: large pieces when busy (a write call costs about
// as much as copying 10 KiB), and a killed process loses a few ms at most.
const (
	writePiece = 64 << 10
	lingerTime = 2 * time.Millisecond

	// awaitedTime is how long those who wait for an fsync have to wait for it in mode
	// Interval, if that is not shorter. Those of this time share one.
	awaitedTime = 100 * time.Millisecond

	// restTime is how long nothing is appended before the log repeats what it has
	// not: with distance, that costs some KiB.
	restTime = time.Second
)

// Log is an open log. All methods may be called concurrently.
//
// A failed write or fsync is final: the log takes no more records until it is opened again,
// and Append, Sync, WaitDurable, RemoveBelow and Close return the failure.
type Log struct {
	o       Options
	found   foundLog // when it was opened
	opened  LSN      // end then
	settled LSN      // where its records ended then

	durable atomic.Uint64 // LSN below which all is fsynced

	removeMu sync.Mutex // one RemoveBelow at a time; taken before mu

	mu       sync.Mutex
	tail     tail
	syncReq  LSN           // fsync wanted up to here
	awaited  LSN           // and up to here within awaitedTime
	stalled  int           // appends that wait for room
	closing  bool          //
	stopped  bool          // the writer is gone
	err      error         // why the log failed
	progress chan struct{} // closed and replaced when durable advances or the writer stops
	files    []file        // those found that are still there, and those begun since
	// index in files of the one that was the newest that is not void; below 0 = none
	last  int
	stats Stats // but what tail counts
	room  sync.Cond

	wake chan struct{} // for the writer: look again
	done chan struct{} // closed when the writer is gone

	// Owned by the writer.
	spare []byte
	out   output
}

// kick makes the writer look at the state again. It never blocks.
func (l *Log) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// End returns the end of the log: every record that was appended is below it, and every
// later one is at or above it.
func (l *Log) End() LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.end
}

// durableLSN returns the LSN below which every record is fsynced.
func (l *Log) durableLSN() LSN { return LSN(l.durable.Load()) }

// Sync returns when all that was appended before the call is fsynced, in every mode.
func (l *Log) Sync() error {
	l.mu.Lock()
	target := l.tail.end
	if l.durableLSN() < target && l.syncReq < target {
		l.syncReq = target
		l.kick()
	}
	l.mu.Unlock()
	return l.await(context.Background(), target)
}

// WaitDurable waits until the record at lsn is fsynced. In mode Always it starts an fsync, which
// all callers of the moment share. In mode Interval the callers share one that comes within 100 ms,
// or within Options.Interval if that is less. In mode Off it returns ErrNotDurable, unless the
// record is durable already. Other errors are that of ctx, wrapped, an lsn that the log has not
// reached, ErrClosed, and the failure of the log.
func (l *Log) WaitDurable(ctx context.Context, lsn LSN) error {
	if l.durableLSN() > lsn {
		return nil
	}
	l.mu.Lock()
	end := l.tail.end
	switch {
	case lsn >= end:
	case l.o.Sync == Always && l.syncReq <= lsn:
		l.syncReq = lsn + 1
		l.kick()
	case l.o.Sync == Interval && l.awaited <= lsn:
		l.awaited = lsn + 1
		l.kick()
	}
	l.mu.Unlock()
	switch {
	case lsn >= end:
		return fmt.Errorf("wal: wait for LSN %d: the log ends at %d", lsn, end)
	case l.o.Sync == Off:
		return ErrNotDurable
	}
	return l.await(ctx, lsn+1)
}

// await waits until everything below target is fsynced.
func (l *Log) await(ctx context.Context, target LSN) error {
	for {
		l.mu.Lock()
		err, stopped, progress := l.err, l.stopped, l.progress
		l.mu.Unlock()
		switch {
		case l.durableLSN() >= target:
			return nil
		case err != nil:
			return err
		case stopped:
			return ErrClosed
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("wal: wait for durability below LSN %d, reached %d: %w",
				target, l.durableLSN(), ctx.Err())
		}
	}
}

// RemoveBelow deletes the files whose records are all below lsn, oldest first. The newest
// file always stays: its name keeps LSNs from starting over. The deletion is durable when
// it returns nil.
func (l *Log) RemoveBelow(lsn LSN) error {
	l.removeMu.Lock()
	defer l.removeMu.Unlock()
	l.mu.Lock()
	err := l.err
	var removable []LSN
	for i := 0; i+1 < len(l.files) && l.files[i+1].first <= lsn; i++ {
		removable = append(removable, l.files[i].first)
	}
	l.mu.Unlock()
	if err != nil || len(removable) == 0 {
		return err
	}
	// Oldest first: a crash in between leaves no hole.
	for _, first := range removable {
		if err := l.o.FS.Remove(l.o.path(first)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("wal: remove: %w", err)
		}
		l.mu.Lock()
		l.files = l.files[1:]
		l.last--
		l.mu.Unlock()
	}
	return durable.SyncDir(l.o.FS, l.o.Dir)
}

// Size returns the bytes from the first LSN of the oldest file that is kept to End.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.files) == 0 {
		return int64(l.tail.end - l.opened)
	}
	return int64(l.tail.end - l.files[0].first)
}

// Stats are counters since Open, and the state at the moment of the call.
type Stats struct {
	Records  int64         // appended
	Bytes    int64         // appended, frames and the log's own records included
	Writes   int64         // write calls
	Syncs    int64         // fsyncs of data
	SyncTime time.Duration // spent in them
	SyncMax  time.Duration // the longest
	Stalls   int64         // appends that found the buffer full
	Queue    int64         // bytes in the buffer, not yet taken by the writer
	Unsynced int64         // bytes appended and not yet fsynced
	Files    int           // kept
	Room     int64         // bytes that fit the newest file, whose disk space was taken when it began
}

// Stats returns the counters and the state.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Records, s.Bytes = l.tail.records, l.tail.bytes
	s.Queue = int64(len(l.tail.buf))
	s.Unsynced = int64(l.tail.end - l.durableLSN())
	s.Files = len(l.files)
	s.Room = max(0, int64(l.out.granted.Load())-int64(l.tail.end))
	return s
}

// Close fsyncs all that was appended and stops the writer. It returns the failure of a log
// that has failed. Further calls return the same.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closing = true
	l.room.Broadcast()
	l.kick()
	l.mu.Unlock()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
