package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/readonly"
)

// Errors of Restore that callers branch on.
var (
	ErrNotEmpty = errors.New("the directory is not empty")
	ErrDamaged  = errors.New("the snapshot is damaged")
)

// RestoreOptions says what is restored where.
type RestoreOptions struct {
	FS   vfs.FS
	From string // a snapshot, or the data directory of a node that does not run
	To   string // new or empty

	// Link makes hard links of segments, which never change, instead of copies;
	// both directories must be on one file system.
	Link bool
	// AllowDamage takes a damaged snapshot: a start serves what is whole in it.
	AllowDamage bool
	Progress    func(fsck.Progress)
}

// RestoreReport is what was restored, and what the check of it found.
type RestoreReport struct {
	Files  int64       `json:"files"`
	Bytes  int64       `json:"bytes"`
	Linked int64       `json:"linked"` // bytes of them
	Check  fsck.Report `json:"check"`
}

// Restore makes a data directory out of a snapshot. It copies first and then
// verifies the copy, so that a damaged source and a bad copy are both found.
// Nothing is left in To after an error, which wraps fsck.ErrNoStore, ErrNotEmpty or
// ErrDamaged, or says what failed. With ErrDamaged the report has the list.
func Restore(ctx context.Context, o RestoreOptions) (r RestoreReport, err error) {
	names, err := o.FS.List(o.From)
	if oserror.IsPermission(err) {
		return r, fmt.Errorf("%s cannot be read: %w: run this as the user that owns it", o.From, err)
	}
	if err != nil {
		return r, fmt.Errorf("%w in %s: %w", fsck.ErrNoStore, o.From, err)
	}
	if !datadir.IsStore(names) {
		return r, fmt.Errorf("%w in %s: name a snapshot, such as data/snapshots/NAME", fsck.ErrNoStore,
			o.From)
	}
	if names, err := o.FS.List(o.To); err == nil && len(names) > 0 {
		return r, fmt.Errorf("%w: %s holds %s; name one that is new or empty", ErrNotEmpty, o.To,
			names[0])
	}
	lock, err := readonly.New(ctx, o.FS, 0).Lock(o.FS.PathJoin(o.From, datadir.Lock))
	if err != nil {
		return r, fmt.Errorf("%s is in use by a running node (%s): make a snapshot and restore that: %w",
			o.From, durable.HolderOf(o.FS.PathJoin(o.From, datadir.Lock)), err)
	}
	defer lock.Close()
	temp := o.FS.PathJoin(o.To, datadir.Restore)
	defer func() {
		if err != nil {
			err = errors.Join(err, o.FS.RemoveAll(temp))
		}
	}()
	if err := o.copyAll(ctx, &r, temp); err != nil {
		return r, err
	}
	r.Check, err = fsck.CheckDir(ctx, o.FS, temp, fsck.Options{Progress: o.Progress})
	if err != nil {
		return r, err
	}
	if r.Check.Damaged > 0 && !o.AllowDamage {
		return r, fmt.Errorf("%w: %d places, the first is %s; nothing was restored", ErrDamaged,
			r.Check.Damaged, r.Check.Damages[0])
	}
	return r, o.install(temp)
}

// copyAll copies every file of a store, but not what belongs to the directory
// rather than to its content.
func (o *RestoreOptions) copyAll(ctx context.Context, r *RestoreReport, temp string) error {
	made := []string{o.FS.PathDir(o.To), o.To, temp}
	for _, dir := range made[1:] {
		if err := o.FS.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	err := datadir.Walk(o.FS, o.From, func(file string, size int64) error {
		top, _, nested := strings.Cut(file, "/")
		if err := ctx.Err(); err != nil || top == datadir.Snapshots || top == datadir.LostFound ||
			o.FS.PathBase(file) == datadir.Lock ||
			!nested && strings.HasSuffix(file, datadir.TempSuffix) {
			return err
		}
		to := o.FS.PathJoin(temp, file)
		if dir := o.FS.PathDir(to); !slices.Contains(made, dir) {
			if err := o.FS.MkdirAll(dir, 0o750); err != nil {
				return err
			}
			made = append(made, dir)
		}
		r.Files++
		r.Bytes += size
		return o.take(r, file, to, size)
	})
	if err != nil {
		return err
	}
	for _, dir := range made {
		if err := durable.SyncDir(o.FS, dir); err != nil {
			return err
		}
	}
	return nil
}

func (o *RestoreOptions) take(r *RestoreReport, file, to string, size int64) error {
	from := o.FS.PathJoin(o.From, file)
	if !o.Link || !datadir.Immutable(file) {
		_, err := durable.CopyFile(o.FS, from, to, math.MaxInt64)
		return err
	}
	err := o.FS.Link(from, to)
	if errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("%w: leave out --link, the directories are on two file systems", err)
	}
	r.Linked += size
	return err
}

// install moves everything up into the data directory. A start in between refuses
// the directory, since what it is built in is still there.
func (o *RestoreOptions) install(temp string) error {
	names, err := o.FS.List(temp)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := o.FS.Rename(o.FS.PathJoin(temp, name), o.FS.PathJoin(o.To, name)); err != nil {
			for _, moved := range names { // before what marks the directory as unfinished goes
				err = errors.Join(err, o.FS.RemoveAll(o.FS.PathJoin(o.To, moved)))
			}
			return err
		}
	}
	if err := durable.SyncDir(o.FS, o.To); err != nil {
		return err
	}
	if err := o.FS.RemoveAll(temp); err != nil {
		return err
	}
	return durable.SyncDir(o.FS, o.To)
}
