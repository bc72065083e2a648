package wal

import (
	"fmt"

	"dalmatiner/internal/host/durable"
)

// CopyTo fsyncs the log and copies it into dir, which it makes. The copy opens as the log
// would after a crash: it has every record appended before the call, and only whole ones.
// RemoveBelow waits meanwhile. CopyTo returns the bytes written. The copy is fsynced, but
// for the entry of dir in its parent, which is for the caller.
func (l *Log) CopyTo(dir string) (bytes int64, err error) {
	if err := l.Sync(); err != nil {
		return 0, err
	}
	l.removeMu.Lock()
	defer l.removeMu.Unlock()
	l.mu.Lock()
	end := l.durableLSN()
	var firsts []LSN
	var newest header
	for i := range l.files {
		if f := &l.files[i]; f.first <= end && !f.gone {
			firsts, newest = append(firsts, f.first), f.head
			newest.id, newest.first = l.found.id, f.first
		}
	}
	l.mu.Unlock()
	if err := l.o.FS.MkdirAll(dir, 0o750); err != nil {
		return 0, fmt.Errorf("wal: copy: %w", err)
	}
	for i, first := range firsts {
		size := int64(maxLSN)
		if i+1 == len(firsts) {
			size = headerSize + int64(end-first)
		}
		n, err := durable.CopyFile(l.o.FS, l.o.path(first), l.o.FS.PathJoin(dir, fileName(first)), size)
		bytes += n
		if err != nil {
			return bytes, fmt.Errorf("wal: copy %s: %w", l.o.path(first), err)
		}
	}
	if len(firsts) == 0 {
		return bytes, createLast(l.o.FS, dir, &fileState{head: header{id: l.found.id}})
	}
	if newest.first < l.opened { // nothing was appended since
		end = min(end, l.settled)
	}
	return bytes, createLast(l.o.FS, dir, &fileState{head: newest, durable: end})
}
