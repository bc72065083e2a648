package pool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zfs is a pool in which an image or snapshot is a dataset below one that the pool was given, with
// one file. Datasets have numbers; what they are stands in a property, which says that they are in
// the making until they are whole. So nothing is renamed, and of two datasets that say to be the
// same image the one with the higher number is. Datasets without the property are somebody else's.
type zfs struct {
	root string // the dataset of the pool
	dir  string // where it is mounted

	mu    sync.Mutex // held while datasets come or go
	last  int        // number of a dataset
	is    map[string]dataset
	begun map[string]bool // keys of what is in the making
}

// dataset is what stands for an image or snapshot.
type dataset struct {
	number int
	id     string // of a snapshot, the same in every pool that has it
}

// nameProperty says what a dataset is: "image NAME", "snapshot IMAGE@NAME ID", or making.
const (
	nameProperty = "ducks:name"
	making       = "making"
)

func openZFS(root string) (*zfs, error) {
	if _, err := exec.LookPath("zfs"); err != nil {
		return nil, fmt.Errorf("pool zfs:%s: %w: install zfsutils-linux", root, err)
	}
	ctx := context.Background()
	dir, err := mountpoint(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("pool zfs:%s: %w", root, err)
	}
	p := &zfs{root: root, dir: dir, is: make(map[string]dataset), begun: make(map[string]bool)}
	return p, p.load(ctx)
}

func imageKey(image string) string    { return "image " + image }
func snapshotKey(s Snapshot) string   { return "snapshot " + s.String() }
func (p *zfs) name(number int) string { return fmt.Sprintf("%s/d%d", p.root, number) }
func (p *zfs) disk(number int) string {
	return filepath.Join(p.dir, fmt.Sprintf("d%d", number), diskFile)
}

// frozen is the ZFS snapshot that clones of a dataset begin with. It has the number of the dataset
// that it was made for: a name that no other has, since promotion moves snapshots between datasets.
func (p *zfs) frozen(number int) string { return fmt.Sprintf("%s@d%d", p.name(number), number) }

// there returns the dataset of a key.
func (p *zfs) there(key string, names ...string) (dataset, error) {
	if err := checkNames(names...); err != nil {
		return dataset{}, err
	}
	d, is := p.is[key]
	if !is {
		return d, fmt.Errorf("%s: %w", key, ErrUnknown)
	}
	return d, nil
}

func (p *zfs) fresh(key string, names ...string) error {
	if err := checkNames(names...); err != nil {
		return err
	}
	if _, is := p.is[key]; is || p.begun[key] {
		return fmt.Errorf("%s: %w", key, ErrExists)
	}
	return nil
}

// run runs zfs.
func (p *zfs) run(ctx context.Context, args ...string) error {
	_, err := execute(ctx, nil, "zfs", args...)
	return err
}

// make makes a dataset with a new number, and says what it is when do has made it whole.
func (p *zfs) make(ctx context.Context, key, id string, do func(number int) error) (err error) {
	p.last++
	number := p.last
	p.begun[key] = true
	defer func() {
		delete(p.begun, key)
		if err != nil {
			err = errors.Join(err, p.discard(context.WithoutCancel(ctx), number))
		}
	}()
	if err := do(number); err != nil {
		return err
	}
	what := key
	if id != "" {
		what += " " + id
	}
	if err := p.run(ctx, "set", nameProperty+"="+what, p.name(number)); err != nil {
		return err
	}
	p.is[key] = dataset{number, id}
	return nil
}

// discard removes a dataset that may not have been made.
func (p *zfs) discard(ctx context.Context, number int) error {
	if p.run(ctx, "list", "-H", p.name(number)) != nil {
		return nil
	}
	return p.destroy(ctx, number)
}

func (p *zfs) Create(ctx context.Context, image string, size int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.fresh(imageKey(image), image), checkSize(size)); err != nil {
		return err
	}
	return p.make(ctx, imageKey(image), "", func(number int) error {
		return p.create(ctx, number, size)
	})
}

// create makes a dataset with an empty disk.
func (p *zfs) create(ctx context.Context, number int, size int64) error {
	if err := p.run(ctx, append([]string{"create", "-o", "compression=on"},
		append(unready(), p.name(number))...)...); err != nil {
		return err
	}
	return errors.Join(writeEmpty(p.disk(number), size), SyncDir(filepath.Dir(p.disk(number))))
}

func (p *zfs) Freeze(ctx context.Context, image string, as Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, err := p.there(imageKey(image), image)
	if err := errors.Join(err, p.fresh(snapshotKey(as), as.Image, as.Name)); err != nil {
		return err
	}
	return p.make(ctx, snapshotKey(as), newID(), func(number int) error {
		at := fmt.Sprintf("%s@d%d", p.name(of.number), number)
		for _, args := range [][]string{
			{"snapshot", at}, append([]string{"clone", "-o", "readonly=on"},
				append(unready(), at, p.name(number))...), {"promote", p.name(number)}} {
			if err := p.run(ctx, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// newID returns what names a snapshot in all pools.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func (p *zfs) Clone(ctx context.Context, of Snapshot, image string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, err := p.there(snapshotKey(of), of.Image, of.Name)
	if err := errors.Join(err, p.fresh(imageKey(image), image)); err != nil {
		return err
	}
	return p.make(ctx, imageKey(image), "", func(number int) error {
		return p.clone(ctx, from, number)
	})
}

// unready are the options of a dataset in the making. Who takes snapshots of all datasets now and
// then leaves it out: two that are called the same are in the way of promotion.
func unready() []string {
	return []string{"-o", nameProperty + "=" + making, "-o", "com.sun:auto-snapshot=false"}
}

// clone makes a dataset that begins as a snapshot.
func (p *zfs) clone(ctx context.Context, of dataset, number int) error {
	return p.run(ctx, append([]string{"clone"},
		append(unready(), p.frozen(of.number), p.name(number))...)...)
}

func (p *zfs) Rollback(ctx context.Context, image string, to Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, err := p.there(imageKey(image), image)
	from, err2 := p.there(snapshotKey(to), to.Image, to.Name)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if err := p.make(ctx, imageKey(image), "", func(number int) error {
		return p.clone(ctx, from, number)
	}); err != nil {
		return err
	}
	return p.destroy(ctx, old.number)
}

func (p *zfs) Delete(ctx context.Context, image string) error {
	return p.remove(ctx, imageKey(image), image)
}

func (p *zfs) DeleteSnapshot(ctx context.Context, s Snapshot) error {
	return p.remove(ctx, snapshotKey(s), s.Image, s.Name)
}

// remove takes the name of a dataset away, and then the dataset.
func (p *zfs) remove(ctx context.Context, key string, names ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, err := p.there(key, names...)
	if err != nil {
		return err
	}
	if err := p.run(ctx, "set", nameProperty+"="+making, p.name(d.number)); err != nil {
		return err
	}
	delete(p.is, key)
	return p.destroy(ctx, d.number)
}

// busy is for how long a dataset may still be busy that nobody uses any more, and how often that is
// looked at.
const (
	busyFor   = 10 * time.Second
	busyEvery = 50 * time.Millisecond
)

// destroy removes a dataset. What it shares with clones of it goes to one of these, and what nobody
// shares any more goes.
func (p *zfs) destroy(ctx context.Context, number int) error {
	name, began := p.name(number), ""
	for {
		origins, err := p.origins(ctx)
		if err != nil {
			return err
		}
		began = origins[name]
		clone, newest := "", -1
		for of, origin := range origins {
			on, snapshot, _ := strings.Cut(origin, "@d")
			if n, err := strconv.Atoi(snapshot); err == nil && on == name && n > newest {
				clone, newest = of, n
			}
		}
		if clone == "" {
			break
		}
		if err := p.run(ctx, "promote", clone); err != nil {
			return err
		}
	}
	tick := time.NewTicker(busyEvery)
	defer tick.Stop()
	for end := time.Now().Add(busyFor); ; {
		err := p.run(ctx, "destroy", "-r", name)
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "busy") || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return p.release(ctx, began)
}

// release removes a ZFS snapshot with which nothing begins any more, unless it is the one of a
// snapshot of this pool.
func (p *zfs) release(ctx context.Context, began string) error {
	on, snapshot, is := strings.Cut(began, "@")
	if !is || on == p.root+"/"+snapshot {
		return nil
	}
	origins, err := p.origins(ctx)
	if err != nil {
		return err
	}
	for _, origin := range origins {
		if origin == began {
			return nil
		}
	}
	return p.run(ctx, "destroy", began)
}

// origins returns the ZFS snapshots with which datasets begin, by dataset.
func (p *zfs) origins(ctx context.Context) (map[string]string, error) {
	out, err := execute(ctx, nil, "zfs", "list", "-H", "-r", "-t", "filesystem", "-o", "name,origin",
		p.root)
	of := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if name, origin, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && origin != "-" {
			of[name] = origin
		}
	}
	return of, err
}

// Path is Pool.Path. Of an image that is not there it is a path that is not there.
func (p *zfs) Path(image string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disk(p.is[imageKey(image)].number)
}

func (p *zfs) Images(context.Context) (names []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.is {
		if name, is := strings.CutPrefix(key, imageKey("")); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (p *zfs) Snapshots(context.Context) (list []Snapshot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.is {
		if name, is := strings.CutPrefix(key, "snapshot "); is {
			image, snapshot, _ := strings.Cut(name, "@")
			list = append(list, Snapshot{image, snapshot})
		}
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return strings.Compare(a.String(), b.String()) })
	return list, nil
}

func (p *zfs) Usage(ctx context.Context, image string) (Usage, error) {
	return p.usage(ctx, imageKey(image), image)
}

func (p *zfs) SnapshotUsage(ctx context.Context, s Snapshot) (Usage, error) {
	return p.usage(ctx, snapshotKey(s), s.Image, s.Name)
}

// usage is what ZFS says, after compression and with what it needs to find blocks.
func (p *zfs) usage(ctx context.Context, key string, names ...string) (Usage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, err := p.there(key, names...)
	if err != nil {
		return Usage{}, err
	}
	info, err := os.Stat(p.disk(d.number))
	if err != nil {
		return Usage{}, err
	}
	of, err := p.numbers(ctx, p.name(d.number), "referenced", "used")
	if err != nil {
		return Usage{}, err
	}
	return Usage{Size: info.Size(), Mapped: of[0], Own: of[1]}, nil
}

// numbers returns properties of a dataset.
func (p *zfs) numbers(ctx context.Context, name string,
	properties ...string) (list []int64, err error) {
	out, err := execute(ctx, nil, "zfs", "get", "-Hp", "-o", "property,value",
		strings.Join(properties, ","), name)
	if err != nil {
		return nil, err
	}
	of := make(map[string]string, len(properties))
	for line := range strings.Lines(string(out)) {
		property, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		of[property] = value
	}
	for _, property := range properties {
		n, err := strconv.ParseInt(of[property], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("zfs says that %s of %s is %q", property, name, of[property])
		}
		list = append(list, n)
	}
	return list, nil
}

func (p *zfs) Limits() bool { return true }

func (p *zfs) Limit(ctx context.Context, image string, own int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, err := p.there(imageKey(image), image)
	if err != nil {
		return err
	}
	limit := "none"
	if own > 0 {
		limit = strconv.FormatInt(own, 10)
	}
	return p.run(ctx, "set", "quota="+limit, p.name(d.number))
}

func (p *zfs) Space(ctx context.Context) (Space, error) {
	of, err := p.numbers(ctx, p.root, "used", "available")
	if err != nil {
		return Space{}, err
	}
	return Space{Total: of[0] + of[1], Free: of[1]}, nil
}

// settledProperty is set to let ZFS write a transaction group, behind which it counts what that
// has: a sync writes only its log.
const settledProperty = "ducks:settled"

// Settle is Pool.Settle.
func (p *zfs) Settle(ctx context.Context) error {
	return p.run(ctx, "set", settledProperty+"=1", p.root)
}

// Trim asks the pool to trim, which it does by itself from then on. It does not say how much that
// is.
func (p *zfs) Trim(ctx context.Context) (int64, error) {
	of, _, _ := strings.Cut(p.root, "/")
	if _, err := execute(ctx, nil, "zpool", "trim", of); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return 0, nil
}
