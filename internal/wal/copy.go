package wal

import (
	"fmt"

	"dalmatiner/internal/durable"
)

// CopyTo copies the log into dir, which it makes, as a crash after the call
// would leave it: every record appended before the call and none that is not
// whole. No file is removed meanwhile. It returns the bytes written. The files
// are synced; the entry of dir in its parent is the caller's to sync.
func (l *Log) CopyTo(dir string) (bytes int64, err error) {
	if err := l.Sync(); err != nil {
		return 0, err
	}
	l.removeMu.Lock()
	defer l.removeMu.Unlock()
	l.mu.Lock()
	end := l.Durable()
	firsts := make([]LSN, len(l.files))
	for i := range l.files {
		firsts[i] = l.files[i].first
	}
	l.mu.Unlock()
	if err := l.o.FS.MkdirAll(dir, 0o750); err != nil {
		return 0, fmt.Errorf("wal: copy: %w", err)
	}
	for i, first := range firsts {
		if first > end {
			break
		}
		size := int64(maxLSN)
		if i+1 == len(firsts) {
			size = headerSize + int64(end-first)
		}
		n, err := durable.CopyFile(l.o.FS, l.path(first), l.o.FS.PathJoin(dir, fileName(first)), size)
		bytes += n
		if err != nil {
			return bytes, fmt.Errorf("wal: copy %s: %w", l.path(first), err)
		}
	}
	return bytes, durable.SyncDir(l.o.FS, dir)
}
