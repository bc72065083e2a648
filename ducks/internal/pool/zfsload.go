package pool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// mountpoint returns where a dataset is mounted.
func mountpoint(ctx context.Context, root string) (string, error) {
	out, err := execute(ctx, nil, "zfs", "list", "-H", "-o", "mounted,mountpoint", "-t", "filesystem",
		root)
	mounted, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	switch {
	case err != nil:
		return "", err
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("its mount point is %q: say where it is, as with zfs set "+
			"mountpoint=/srv/ducks %s", dir, root)
	case mounted != "yes":
		return "", fmt.Errorf("it is not mounted: zfs mount -a")
	}
	return dir, nil
}

// load reads which datasets there are, and removes those that a crash has left in the making, or
// behind newer ones.
func (p *zfs) load(ctx context.Context) error {
	out, err := execute(ctx, nil, "zfs", "list", "-H", "-r", "-t", "filesystem", "-o",
		"name,mounted,"+nameProperty, p.root)
	if err != nil {
		return err
	}
	var left []int
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		mounted, what, _ := strings.Cut(rest, "\t")
		number, err := strconv.Atoi(strings.TrimPrefix(name, p.root+"/d"))
		if err != nil {
			continue // it is of somebody else
		}
		p.last = max(p.last, number)
		kind, called, _ := strings.Cut(what, " ")
		called, id, _ := strings.Cut(called, " ")
		switch kind {
		case making:
			left = append(left, number)
			continue
		case "image", "snapshot":
		default:
			continue // it is of somebody else
		}
		if mounted != "yes" { // the machine was started, or it was cut off before
			if err := p.run(ctx, "mount", name); err != nil {
				return err
			}
		}
		key := kind + " " + called
		switch old, is := p.is[key]; {
		case is && old.number > number:
			left = append(left, number)
			continue
		case is:
			left = append(left, old.number)
		}
		p.is[key] = dataset{number, id}
	}
	for _, number := range left {
		if err := p.destroy(ctx, number); err != nil {
			return err
		}
	}
	return p.tidy(ctx)
}

// tidy removes ZFS snapshots that nothing begins with any more, which a crash has left. Those that
// others have made stay.
func (p *zfs) tidy(ctx context.Context) error {
	ours := make(map[string]bool, len(p.is))
	for _, d := range p.is {
		ours[p.name(d.number)] = true
	}
	out, err := execute(ctx, nil, "zfs", "list", "-H", "-r", "-t", "snapshot", "-o", "name", p.root)
	for line := range strings.Lines(string(out)) {
		at := strings.TrimSpace(line)
		on, snapshot, _ := strings.Cut(at, "@")
		if ours[on] && frozenName.MatchString(snapshot) {
			err = errors.Join(err, p.release(ctx, at))
		}
	}
	return err
}

// frozenName is what ZFS snapshots of this pool are called.
var frozenName = regexp.MustCompile(`^d[0-9]+$`)
