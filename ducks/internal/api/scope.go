package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dalmatiner/access"
	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/room"
)

// Who is limited is so to clients, networks or groups: client/acme, network/lab, group/rack1. What
// lies within one of them concerns who is limited to it; what lies within none, as the pool, only
// who is not limited.

// The kinds of scopes.
const (
	ofClient  = string(room.AClient) + "/"
	ofNetwork = string(room.ANetwork) + "/"
	ofGroup   = string(room.AGroup) + "/"
)

// scope returns the scopes in which the object of a request lies.
type scope func(c *call) ([]string, error)

// within is a route that who is limited may ask as well.
func within(s scope, r route) route {
	r.scope = s
	return r
}

// scopes returns those of a place.
func scopes(p room.Place) (list []string) {
	for kind, name := range map[string]string{
		ofClient:  p.Client,
		ofNetwork: p.Network,
		ofGroup:   p.Group,
	} {
		if name != "" {
			list = append(list, kind+name)
		}
	}
	slices.Sort(list)
	return list
}

// tree returns which network everything is of, as it was when the request came.
func (c *call) tree() (*room.Tree, error) {
	if c.seen == nil {
		t, err := c.Room.Networks().Tree()
		if err != nil {
			return nil, err
		}
		c.seen = &t
	}
	return c.seen, nil
}

// about concerns the thing of a kind that is named in the path.
func about(kind state.Table) scope {
	return func(c *call) ([]string, error) { return c.where(kind, c.object) }
}

// above concerns the network of the thing in the path: who is limited to its group may not ask.
func above(kind state.Table) scope {
	return func(c *call) ([]string, error) {
		list, err := c.where(kind, c.object)
		return slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, ofGroup) }), err
	}
}

// where returns the scopes of a thing.
func (c *call) where(kind state.Table, name string) ([]string, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	list := scopes(t.Place(kind, name))
	if len(list) == 0 {
		return nil, fmt.Errorf("%s %s: %w", kind, name, state.ErrUnknown)
	}
	return list, nil
}

// theirs says that a route takes care of it by itself.
func theirs(c *call) ([]string, error) { return c.who.Scopes, nil }

// theOwner concerns the client of the network of the path.
func theOwner(c *call) ([]string, error) {
	list, err := c.where(room.ANetwork, c.object)
	return slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, ofClient) }), err
}

// seen returns what of a list lies where who asks may look.
func seen[T any](c *call, list []T, err error, kind state.Table, name func(T) string) ([]T, error) {
	if err != nil || len(c.who.Scopes) == 0 {
		return list, err
	}
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(v T) bool {
		return !c.who.Reaches(scopes(t.Place(kind, name(v)))...)
	}), nil
}

// works returns access.ErrDenied unless who asks may work within some scopes. They are those of the
// act.
func (c *call) works(within []string, err error) error {
	if err != nil {
		return err
	}
	c.within = within
	return c.who.May(access.Operator, within...)
}

// network completes the name of a network in which something is made. Without a name it is the only
// network that the caller is limited to, or else the default.
func (c *call) network(name string) (string, error) {
	if name == "" {
		name = room.Default
		if only, is := strings.CutPrefix(strings.Join(c.who.Scopes, " "), ofNetwork); is &&
			len(c.who.Scopes) == 1 {
			name = only
		}
	}
	return name, c.works(c.where(room.ANetwork, name))
}

// limited returns the scopes of somebody who is to be let in. Who makes one that is limited reaches
// all of them.
func (c *call) limited(l Limited) ([]string, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	var list []string
	add := func(kind string, names []string) {
		for _, name := range names {
			list = append(list, kind+name)
		}
	}
	add(ofClient, l.Clients)
	add(ofNetwork, l.Networks)
	add(ofGroup, l.Groups)
	for _, s := range list {
		if around := around(t, s); len(around) == 0 {
			err = errors.Join(err, fmt.Errorf("%s: %w", s, state.ErrUnknown))
		} else if !c.who.Reaches(around...) {
			err = errors.Join(err, fmt.Errorf("%w: %s is not limited to %s", access.ErrDenied, c.who.Name,
				s))
		}
	}
	if err == nil && len(list) == 0 && len(c.who.Scopes) > 0 {
		err = fmt.Errorf("%w: %s is limited to %s, and so is who it lets in: name clients, networks or "+
			"groups", access.ErrDenied, c.who.Name, strings.Join(c.who.Scopes, ", "))
	}
	c.within = list
	return list, err
}

// manages reports whether who asks may say what becomes of somebody: all of whose scopes it
// reaches.
func (c *call) manages(i access.Identity) bool {
	if len(c.who.Scopes) == 0 {
		return true
	}
	t, err := c.tree()
	if err != nil || len(i.Scopes) == 0 {
		return false
	}
	return !slices.ContainsFunc(i.Scopes, func(s string) bool {
		return !c.who.Reaches(around(t, s)...)
	})
}

// around returns the scopes in which one lies, with that itself: none if there is no such thing.
func around(t *room.Tree, scope string) []string {
	kind, name, _ := strings.Cut(scope, "/")
	return scopes(t.Place(state.Table(kind), name))
}

// free returns room.ErrBusy where somebody is limited to a scope: who makes another thing of that
// name would let them in there.
func (c *call) free(scope string) error {
	users, err := c.Access.Users()
	if err != nil {
		return err
	}
	tokens, err := c.Access.Tokens()
	if err != nil {
		return err
	}
	for _, u := range users {
		if slices.Contains(u.Scopes, scope) {
			return fmt.Errorf("%s: %w: user %s is limited to it: delete that user first", scope,
				room.ErrBusy, u.Name)
		}
	}
	for _, t := range tokens {
		if slices.Contains(t.Scopes, scope) {
			return fmt.Errorf("%s: %w: token %s is limited to it: delete that first", scope, room.ErrBusy,
				t.Name)
		}
	}
	return nil
}
