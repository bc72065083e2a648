package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"dalmatiner/access"
	"dalmatiner/access/state"
)

func people() []route {
	trail := within(theirs, asks("GET /api/v1/trail", "What was done, by whom, the newest first.",
		access.Admin, showTrail))
	trail.query = []string{"before"}
	return []route{
		within(theirs, asks("GET /api/v1/tokens", "Who is let in.", access.Admin, listTokens)),
		within(theirs, acts("POST /api/v1/tokens", "Make a token. It is shown once.", access.Admin,
			"create token", createToken)),
		within(theirs, removes("DELETE /api/v1/tokens/{name}", "Take a token away, at once.",
			access.Admin, "delete token", deleteToken)),
		trail,
		acts("POST /api/v1/login",
			"Begin a session of a user. Its secret lets in as a token does, for 12 hours.", "", "log in",
			login),
		within(theirs, acts("POST /api/v1/logout", "End the session that asks.", access.Viewer, "log out",
			func(c *call, _ none) (none, error) {
				return none{}, c.Access.Logout(c.secret)
			})),
		within(theirs, asks("GET /api/v1/users", "All users.", access.Admin, listUsers)),
		within(theirs, acts("POST /api/v1/users", "Make a user.", access.Admin, "create user",
			createUser)),
		within(theirs, acts("PUT /api/v1/users/{name}/password", "Give a user another password: an "+
			"admin any, a user the own one. The sessions of the user end.", access.Viewer, "change password",
			setPassword)),
		within(theirs, removes("DELETE /api/v1/users/{name}", "Take a user away, with all sessions.",
			access.Admin, "delete user", deleteUser)),
	}
}

// Login is the name and password of a user.
type Login struct {
	Name     string `json:"name"`
	Password string `json:"password"`
}

// Session is one that has begun.
type Session struct {
	Secret string `json:"session"`
}

func login(c *call, l Login) (Session, error) {
	c.who.Name = l.Name
	secret, err := c.Access.Login(l.Name, l.Password)
	return Session{secret}, err
}

// NewUser makes a user.
type NewUser struct {
	Name string      `json:"name"`
	Role access.Role `json:"role"`
	Limited
	Password string `json:"password"`
}

func createUser(c *call, u NewUser) (none, error) {
	c.object = u.Name
	to, err := c.limited(u.Limited)
	if err != nil {
		return none{}, err
	}
	return none{}, c.Access.CreateUser(access.Identity{
		Name:   u.Name,
		Role:   u.Role,
		Scopes: to,
	}, u.Password)
}

// Password is a new one.
type Password struct {
	Password string `json:"password"`
}

// setPassword lets users change their own. A token that has the name of a user is none of that
// user's.
func setPassword(c *call, p Password) (none, error) {
	if own := c.who.Name == c.object && access.IsSession(c.secret); !own {
		if err := errors.Join(c.who.May(access.Admin, c.who.Scopes...),
			c.managesUser(c.object)); err != nil {
			return none{}, err
		}
	}
	return none{}, c.Access.SetPassword(c.object, p.Password)
}

// MadeToken is a token as it is shown once.
type MadeToken struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

func createToken(c *call, t NewToken) (MadeToken, error) {
	c.object = t.Name
	to, err := c.limited(t.Limited)
	if err != nil {
		return MadeToken{}, err
	}
	secret, err := c.Access.CreateToken(access.Token{Identity: access.Identity{
		Name:   t.Name,
		Role:   t.Role,
		Scopes: to,
	}, Expires: t.Expires})
	return MadeToken{t.Name, secret}, err
}

func listTokens(c *call) ([]access.Token, error) {
	list, err := c.Access.Tokens()
	return slices.DeleteFunc(list, func(t access.Token) bool { return !c.manages(t.Identity) }), err
}

func listUsers(c *call) ([]access.Identity, error) {
	list, err := c.Access.Users()
	return slices.DeleteFunc(list, func(i access.Identity) bool { return !c.manages(i) }), err
}

// managesUser returns access.ErrDenied unless who asks may say what becomes of a user.
func (c *call) managesUser(name string) error {
	list, err := c.Access.Users()
	if err != nil {
		return err
	}
	return c.managed("user", list, name)
}

func (c *call) managed(kind string, list []access.Identity, name string) error {
	i := slices.IndexFunc(list, func(i access.Identity) bool { return i.Name == name })
	switch {
	case i < 0:
		return fmt.Errorf("%s %s: %w", kind, name, state.ErrUnknown)
	case !c.manages(list[i]):
		return fmt.Errorf("%w: %s %s reaches what %s does not", access.ErrDenied, kind, name, c.who.Name)
	}
	c.within = list[i].Scopes
	return nil
}

func deleteUser(c *call) error {
	if err := c.managesUser(c.object); err != nil {
		return err
	}
	return c.Access.DeleteUser(c.object)
}

func deleteToken(c *call) error {
	tokens, err := c.Access.Tokens()
	if err != nil {
		return err
	}
	list := make([]access.Identity, len(tokens))
	for i, t := range tokens {
		list[i] = t.Identity
	}
	if err := c.managed("token", list, c.object); err != nil {
		return err
	}
	return c.Access.DeleteToken(c.object)
}

// mostShown is how many acts are shown at once.
const mostShown = 200

func showTrail(c *call) ([]access.Act, error) {
	before, text := uint64(0), c.FormValue("before")
	if text != "" {
		var err error
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: before=%q is no number", errRequest, text)
		}
	}
	return c.Access.Acts(&c.who, before, mostShown)
}
