// Package access says who may do what: tokens for programs, users with passwords and sessions for
// people, roles, and a trail of what was done. Secrets are kept as hashes, and are shown once.
// DESIGN.md beside it has the numbers.
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dalmatiner/access/state"
)

// Errors that callers look for.
var (
	ErrDenied  = errors.New("access denied")
	ErrExists  = errors.New("it exists already")
	ErrTooMany = errors.New("too many attempts: wait a minute")
	ErrRefused = errors.New("refused")
	ErrName    = errors.New("a name has 1 to 64 of letters, digits, '.', '_', '@' and '-', and " +
		"begins with a letter or digit")
)

// Role says what somebody may do. Each may do what those before it may.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // looks
	Operator Role = "operator" // works with what there is
	Admin    Role = "admin"    // changes who may do what, and sees secrets
)

var ranks = []Role{Viewer, Operator, Admin}

// Allows reports whether a role has what another one needs.
func (r Role) Allows(needs Role) bool {
	has, wants := slices.Index(ranks, r), slices.Index(ranks, needs)
	return wants >= 0 && has >= wants
}

func (r Role) check() error {
	if !slices.Contains(ranks, r) {
		return fmt.Errorf("%w: role %q: want %s, %s or %s", ErrRefused, r, Viewer, Operator, Admin)
	}
	return nil
}

// Identity is somebody who was let in.
type Identity struct {
	Name   string   `json:"name"` // of the token, or of the user
	Role   Role     `json:"role"`
	Scopes []string `json:"scopes,omitempty"` // to which this is limited, as network/lab; none: all
}

// May returns ErrDenied, with what was wanted, unless somebody may do what needs a role, and
// concerns something that lies within some scopes, each of which is enough. What lies within none
// concerns all of them.
func (i *Identity) May(needs Role, within ...string) error {
	switch {
	case !i.Role.Allows(needs):
		return fmt.Errorf("%w: it needs role %s, and %s has %s", ErrDenied, needs, i.Name, i.Role)
	case i.Reaches(within...):
		return nil
	case len(within) == 0:
		return fmt.Errorf("%w: it concerns all, and %s is limited to %s", ErrDenied, i.Name,
			strings.Join(i.Scopes, ", "))
	}
	return fmt.Errorf("%w: it is of %s, and %s is limited to %s", ErrDenied,
		strings.Join(within, ", "), i.Name, strings.Join(i.Scopes, ", "))
}

// Reaches reports whether something that lies within some scopes concerns somebody.
func (i *Identity) Reaches(within ...string) bool {
	return len(i.Scopes) == 0 || slices.ContainsFunc(within, func(s string) bool {
		return slices.Contains(i.Scopes, s)
	})
}

// Token lets programs in.
type Token struct {
	Identity
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: it does not
}

// Access is who may do what. Its methods may be called concurrently.
type Access struct {
	file *state.File
	now  func() time.Time

	hashing chan struct{} // holds one while a password is hashed, which takes much memory

	mu       sync.Mutex
	failures map[string][]time.Time // of the last minute, by name of user
}

const (
	tokens   state.Table = "token"   // by name: tokenRecord
	users    state.Table = "user"    // by name
	sessions state.Table = "session" // by the hash of their secret
	trail    state.Table = "trail"   // by number, with leading zeros
)

// Migration makes the tables, for the migrations of a file.
func Migration(tx *state.Tx) error {
	return errors.Join(tx.MakeTable(tokens), tx.MakeTable(users), tx.MakeTable(sessions),
		tx.MakeTable(trail))
}

// New returns who may do what by a file.
func New(file *state.File, now func() time.Time) *Access {
	return &Access{
		file:     file,
		now:      now,
		hashing:  make(chan struct{}, 1),
		failures: make(map[string][]time.Time),
	}
}

// tokenRecord is a token as it is kept.
type tokenRecord struct {
	Token
	Hash string // SHA-256 of its secret, which is random: it needs no slower hash
}

const (
	tokenPrefix   = "ddt_" // by which a secret is known where it does not belong
	sessionPrefix = "dds_"
)

// newSecret returns a secret of more than 128 bits, and its hash.
func newSecret(prefix string) (secret, hash string) {
	secret = prefix + rand.Text()
	return secret, hashOf(secret)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

var (
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	scopeForm = regexp.MustCompile(`^[a-z]{1,32}/[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
)

func (i *Identity) check() error {
	if !nameForm.MatchString(i.Name) {
		return fmt.Errorf("%q: %w", i.Name, ErrName)
	}
	for _, s := range i.Scopes {
		if !scopeForm.MatchString(s) {
			return fmt.Errorf("scope %q: want a kind and a name, as network/lab: %w", s, ErrName)
		}
	}
	return i.Role.check()
}

// absent returns ErrExists if a table has a name.
func absent(tx *state.Tx, t state.Table, name string) error {
	if tx.Has(t, name) {
		return fmt.Errorf("%s %s: %w", t, name, ErrExists)
	}
	return nil
}

// CreateToken makes a token, and returns its secret, which nobody sees again.
func (a *Access) CreateToken(t Token) (secret string, err error) {
	if err := t.check(); err != nil {
		return "", err
	}
	r := tokenRecord{Token: t}
	r.Created = a.now()
	secret, r.Hash = newSecret(tokenPrefix)
	err = a.file.Update(func(tx *state.Tx) error {
		return errors.Join(absent(tx, tokens, t.Name), tx.Put(tokens, t.Name, r))
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// First returns the secret of a token of an admin where there is neither a token nor a user yet;
// else "".
func (a *Access) First() (secret string, err error) {
	some := false
	err = a.file.View(func(tx *state.Tx) error {
		note := func(string, any) error { some = true; return nil }
		return errors.Join(state.Each(tx, tokens, note), state.Each(tx, users, note))
	})
	if err != nil || some {
		return "", err
	}
	return a.CreateToken(Token{Identity: Identity{Name: "first", Role: Admin}})
}

// Tokens returns all, by name.
func (a *Access) Tokens() (list []Token, err error) {
	list = []Token{}
	err = a.file.View(func(tx *state.Tx) error {
		return state.Each(tx, tokens, func(_ string, r tokenRecord) error {
			list = append(list, r.Token)
			return nil
		})
	})
	return list, err
}

// DeleteToken takes a token away, at once.
func (a *Access) DeleteToken(name string) error {
	return a.file.Update(func(tx *state.Tx) error {
		return errors.Join(tx.Get(tokens, name, new(tokenRecord)), tx.Delete(tokens, name))
	})
}

// Check returns whose secret it is, of a token or a session. ErrDenied if it is nobody's, or its
// time is over.
func (a *Access) Check(secret string) (Identity, error) {
	hash, now := hashOf(secret), a.now()
	found := Identity{}
	err := a.file.View(func(tx *state.Tx) error {
		if IsSession(secret) {
			return a.ofSession(tx, hash, now, &found)
		}
		return state.Each(tx, tokens, func(_ string, r tokenRecord) error {
			// of a hash nothing can be learned by its time
			if r.Hash == hash && (r.Expires.IsZero() || now.Before(r.Expires)) {
				found = r.Identity
			}
			return nil
		})
	})
	if err == nil && found.Name == "" {
		err = fmt.Errorf("%w: the token or session is not known, or its time is over", ErrDenied)
	}
	return found, err
}
