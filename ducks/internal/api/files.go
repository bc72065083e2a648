package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/contents"
	"dalmatiner/ducks/internal/room"
)

// version returns the number of a version in the path.
func (c *call) version() (int, error) {
	number, err := strconv.Atoi(c.PathValue("number"))
	if err != nil {
		return 0, fmt.Errorf("%w: version %q is no number", errRequest, c.PathValue("number"))
	}
	return number, nil
}

func groupFiles(c *call) (contents.Changes, error) {
	g, err := c.Room.Group(c.object)
	if err != nil {
		return contents.Changes{}, err
	}
	return c.changes(g.Versions)
}

func volumeFiles(c *call) (contents.Changes, error) {
	all, err := c.Room.Volumes()
	if err != nil {
		return contents.Changes{}, err
	}
	i := slices.IndexFunc(all, func(v room.Volume) bool { return v.Name == c.object })
	if i < 0 {
		return contents.Changes{}, fmt.Errorf("volume %s: %w", c.object, state.ErrUnknown)
	}
	return c.changes(all[i].Versions)
}

// changes returns which files of the version in the path are not those of the one before.
func (c *call) changes(list []room.Version) (out contents.Changes, err error) {
	number, err := c.version()
	if err != nil {
		return out, err
	}
	done, err := c.Reads.Take(c.Context()) // before anything is cloned for it
	if err != nil {
		return out, err
	}
	defer done()
	pair, err := c.Room.Transfers().Pair(c.Context(), list, number)
	if err != nil {
		return out, err
	}
	out, err = contents.Between(c.Context(), pair.Before.File(), pair.After.File())
	return out, errors.Join(err, pair.Close())
}
