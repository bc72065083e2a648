package api

import (
	"slices"

	"dalmatiner/internal/access"
)

// The scope of a token or user is the groups that it may look at or work with: those, their devices, and nothing that
// concerns all, as volumes, the pool, tokens and users.

// within is a route that who is limited to some groups may ask as well, where it concerns one of these.
func within(scope func(c *call) (string, error), r route) route {
	r.scope = scope
	return r
}

// theGroup and theDevice say which group a route concerns, by the name in its path.
func theGroup(c *call) (string, error) { return c.object, nil }

func theDevice(c *call) (string, error) {
	d, err := c.Room.Device(c.object)
	return d.Group, err
}

// their says that a route takes care of it by itself.
func their(c *call) (string, error) {
	if len(c.who.Scopes) == 0 {
		return "", nil
	}
	return c.who.Scopes[0], nil
}

// sees reports whether somebody may look at a group.
func (c *call) sees(group string) bool {
	return len(c.who.Scopes) == 0 || slices.Contains(c.who.Scopes, group)
}

// seen returns what of a list is of groups that somebody may look at.
func seen[T any](c *call, list []T, err error, group func(T) string) ([]T, error) {
	return slices.DeleteFunc(list, func(v T) bool { return !c.sees(group(v)) }), err
}

// works returns access.ErrDenied unless somebody may work with a group.
func (c *call) works(group string) error { return c.who.May(access.Operator, group) }
