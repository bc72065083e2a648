package access

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"dalmatiner/access/state"
)

// user is one as it is kept.
type user struct {
	Identity
	Password password
}

// password is one hashed by Argon2id, with what it was hashed with. Source: RFC 9106.
type password struct {
	Salt, Hash  []byte
	Passes, KiB uint32
	Lanes       uint8
}

// How passwords are hashed: the second choice of RFC 9106, section 4, with less memory and as much
// time.
const (
	passes       = 3
	memoryKiB    = 32 << 10
	lanes        = 1
	hashBytes    = 32
	saltBytes    = 16
	leastLetters = 10
	mostLetters  = 256
)

// session is a login of a user as it is kept.
type session struct {
	User    string
	Expires time.Time
}

// A session ends so long after its login. So many logins of one user may fail in a minute.
const (
	sessionTime = 12 * time.Hour
	mostFailed  = 5
	failedTime  = time.Minute
	mostNames   = 10_000 // of users of whom failures are known
)

// hash hashes a text as a password was hashed. One is hashed at a time.
func (a *Access) hash(p *password, text string) []byte {
	a.hashing <- struct{}{}
	defer func() { <-a.hashing }()
	return argon2.IDKey([]byte(text), p.Salt, p.Passes, p.KiB, p.Lanes, hashBytes)
}

func (a *Access) newPassword(text string) (p password, err error) {
	if len(text) < leastLetters || len(text) > mostLetters {
		return p, fmt.Errorf("%w: a password has %d to %d bytes", ErrRefused, leastLetters, mostLetters)
	}
	p = password{Salt: make([]byte, saltBytes), Passes: passes, KiB: memoryKiB, Lanes: lanes}
	_, _ = rand.Read(p.Salt) // it never fails
	p.Hash = a.hash(&p, text)
	return p, nil
}

// CreateUser makes a user.
func (a *Access) CreateUser(i Identity, text string) error {
	if err := i.check(); err != nil {
		return err
	}
	p, err := a.newPassword(text)
	if err != nil {
		return err
	}
	return a.file.Update(func(tx *state.Tx) error {
		return errors.Join(absent(tx, users, i.Name), tx.Put(users, i.Name, user{i, p}))
	})
}

// SetPassword gives a user another password, and ends the sessions of that user.
func (a *Access) SetPassword(name, text string) error {
	p, err := a.newPassword(text)
	if err != nil {
		return err
	}
	return a.file.Update(func(tx *state.Tx) error {
		var u user
		if err := tx.Get(users, name, &u); err != nil {
			return err
		}
		u.Password = p
		return errors.Join(tx.Put(users, name, u), endSessions(tx, func(s session) bool {
			return s.User == name
		}))
	})
}

// DeleteUser takes a user away, with all sessions.
func (a *Access) DeleteUser(name string) error {
	return a.file.Update(func(tx *state.Tx) error {
		return errors.Join(tx.Get(users, name, new(user)), tx.Delete(users, name),
			endSessions(tx, func(s session) bool {
				return s.User == name
			}))
	})
}

// Users returns all, by name.
func (a *Access) Users() (list []Identity, err error) {
	list = []Identity{}
	err = a.file.View(func(tx *state.Tx) error {
		return state.Each(tx, users, func(_ string, u user) error {
			list = append(list, u.Identity)
			return nil
		})
	})
	return list, err
}

func endSessions(tx *state.Tx, which func(s session) bool) error {
	var keys []string
	err := state.Each(tx, sessions, func(key string, s session) error {
		if which(s) {
			keys = append(keys, key)
		}
		return nil
	})
	for _, k := range keys {
		err = errors.Join(err, tx.Delete(sessions, k))
	}
	return err
}

// Login returns the secret of a new session. It takes as long for a user that there is not as for a
// wrong password.
func (a *Access) Login(name, text string) (secret string, err error) {
	if err := a.attempt(name); err != nil {
		return "", err
	}
	if len(text) > mostLetters {
		return "", fmt.Errorf("%w: wrong user or password", ErrDenied)
	}
	var u user
	err = a.file.View(func(tx *state.Tx) error { return tx.Get(users, name, &u) })
	if err != nil && !errors.Is(err, state.ErrUnknown) {
		return "", err
	}
	known := err == nil
	if !known {
		u.Password = password{
			Salt:   make([]byte, saltBytes),
			Hash:   make([]byte, hashBytes),
			Passes: passes,
			KiB:    memoryKiB,
			Lanes:  lanes,
		}
	}
	if right := subtle.ConstantTimeCompare(a.hash(&u.Password, text), u.Password.Hash) == 1; !right ||
		!known {
		return "", fmt.Errorf("%w: wrong user or password", ErrDenied)
	}
	a.mu.Lock()
	delete(a.failures, name)
	a.mu.Unlock()
	secret, hash := newSecret(sessionPrefix)
	now := a.now()
	return secret, a.file.Update(func(tx *state.Tx) error {
		over := func(s session) bool { return !now.Before(s.Expires) }
		return errors.Join(endSessions(tx, over),
			tx.Put(sessions, hash, session{name, now.Add(sessionTime)}))
	})
}

// attempt counts a login as failed until it succeeds.
func (a *Access) attempt(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	since := now.Add(-failedTime)
	var last []time.Time
	for _, at := range a.failures[name] {
		if at.After(since) {
			last = append(last, at)
		}
	}
	if len(last) >= mostFailed {
		a.failures[name] = last
		return fmt.Errorf("user %s: %w", name, ErrTooMany)
	}
	if len(a.failures) >= mostNames {
		clear(a.failures)
	}
	a.failures[name] = append(last, now)
	return nil
}

// Logout ends a session, if there is one of that secret.
func (a *Access) Logout(secret string) error {
	return a.file.Update(func(tx *state.Tx) error { return tx.Delete(sessions, hashOf(secret)) })
}

// IsSession reports whether a secret is that of a session, if it is anybody's.
func IsSession(secret string) bool { return strings.HasPrefix(secret, sessionPrefix) }

// ofSession finds whose session it is.
func (a *Access) ofSession(tx *state.Tx, hash string, now time.Time, found *Identity) error {
	var s session
	var u user
	err := tx.Get(sessions, hash, &s)
	if err == nil && now.Before(s.Expires) {
		err = tx.Get(users, s.User, &u)
	}
	if errors.Is(err, state.ErrUnknown) {
		return nil
	}
	*found = u.Identity
	return err
}
