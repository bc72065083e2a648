package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// hasTables reports whether dir holds, or held, a catalogue.
func hasTables(files vfs.FS, dir string) (bool, error) {
	names, err := files.List(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			return true, nil
		}
	}
	return false, nil
}

// makeDir makes dir if it is missing, and its name durable: without that a crash
// takes the directory with everything that was synced in it.
func makeDir(files vfs.FS, dir string) error {
	if _, err := files.Stat(dir); err == nil {
		return nil
	}
	if err := files.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("catalogue: create %s: %w", dir, err)
	}
	return durable.SyncDir(files, files.PathDir(dir))
}

// SetAside moves the directory dir of a closed catalogue into the directory lostFound, which
// it makes if need be, and makes the move durable. It returns the new path: the base name of
// dir and the first free number from 1 on. Without a dir it does nothing and returns "".
func SetAside(files vfs.FS, dir, lostFound string) (string, error) {
	if _, err := files.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := files.MkdirAll(lostFound, 0o755); err != nil {
		return "", fmt.Errorf("catalogue: create %s: %w", lostFound, err)
	}
	for n := 1; ; n++ {
		to := files.PathJoin(lostFound, fmt.Sprintf("%s-%d", files.PathBase(dir), n))
		_, err := files.Stat(to)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("catalogue: stat %s: %w", to, err)
		}
		if err := files.Rename(dir, to); err != nil {
			return "", fmt.Errorf("catalogue: set %s aside: %w", dir, err)
		}
		return to, errors.Join(durable.SyncDir(files, lostFound),
			durable.SyncDir(files, files.PathDir(lostFound)),
			durable.SyncDir(files, files.PathDir(dir)))
	}
}

// debugLogger passes what pebble has to say on at debug level.
type debugLogger struct{ logger *slog.Logger }

func (q debugLogger) Infof(format string, args ...any) {
	if q.logger.Enabled(context.Background(), slog.LevelDebug) {
		q.logger.Debug("catalogue: " + fmt.Sprintf(format, args...))
	}
}

func (q debugLogger) Errorf(format string, args ...any) {
	q.logger.Warn("catalogue: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return: pebble calls it when its state in memory is not what it
// should be. What it cannot write to its MANIFEST it is not told (void).
func (q debugLogger) Fatalf(format string, args ...any) {
	text := "catalogue: " + fmt.Sprintf(format, args...) +
		"; the process ends here: what was acknowledged is in the log, mend the cause and start again"
	q.logger.Error(text)
	panic(text)
}
