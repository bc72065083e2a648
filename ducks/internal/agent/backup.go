package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"dalmatiner/access"
	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/authority"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
)

// The state in a data directory, and its backup in a pool: who has the pool has all that is needed
// to serve it.
const (
	stateFile  = "state"
	backupFile = "state.backup"
)

// layouts are the migrations of the state.
func layouts() []state.Migration {
	return append(room.Migrations(), access.Migration, dhcp.Migration, authority.Migration)
}

// backupEvery is how old a backup may be while the state changes.
const backupEvery = time.Minute

// keepBackup writes the state into the pool whenever it has changed, until the context ends, and
// once then.
func keepBackup(ctx context.Context, file *state.File, p pool.Pool, dir string, log *slog.Logger) {
	tick := time.NewTicker(backupEvery)
	defer tick.Stop()
	last, failing := uint64(0), false
	for ended := false; ; {
		now, err := file.Changes()
		if err == nil && now != last {
			if err = backup(context.WithoutCancel(ctx), file, p,
				filepath.Join(dir, backupFile)); err == nil {
				last = now
			}
		}
		if err != nil && !failing {
			log.Warn("the state is not in the pool as it is", "pool", dir, "err", err)
		}
		failing = err != nil
		if ended {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended, failing = true, false // what is not there at the end is said
		}
	}
}

// backup writes the state into a file of a pool, all of it or nothing, and gives back the one
// before.
func backup(ctx context.Context, file *state.File, p pool.Pool, path string) (err error) {
	var before int64
	if info, err := os.Stat(path); err == nil {
		before = info.Size()
	}
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	m := pool.NewMeter(ctx, p, before)
	err = file.Backup(m.Writer(f))
	err = errors.Join(cmp.Or(m.Err(), err), f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return pool.SyncDir(filepath.Dir(path))
}

// Restore makes the state of a data directory what the backup in a pool says. There is no state
// yet, and nobody serves the pool. What of that is kept for devices stays so where the data
// directory is in it, too.
func Restore(dataDir, spec string, keep pool.Reserve) (err error) {
	p, dir, lock, err := openPool(spec, keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	to := filepath.Join(dataDir, stateFile)
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there already: restore into another directory", to), err)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, backupFile))
	if err != nil {
		return fmt.Errorf("the backup of the state: %w", err)
	}
	if within(dataDir, dir) {
		if err := pool.Spare(context.Background(), p, int64(len(b))); err != nil {
			return fmt.Errorf("%s: %w; or restore into a directory elsewhere", to, err)
		}
	}
	part := to + ".part"
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return err
	}
	file, err := state.Open(part, layouts()) // it is one, and of a layout that is known
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, to)
}

// within reports whether two directories are on one file system.
func within(one, other string) bool {
	var a, b unix.Stat_t
	return unix.Stat(one, &a) == nil && unix.Stat(other, &b) == nil && a.Dev == b.Dev
}
