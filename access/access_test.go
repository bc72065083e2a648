package access

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/access/state"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gate is an Access of a clock that the test moves.
type gate struct {
	*Access
	path string
	now  time.Time
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{path: filepath.Join(t.TempDir(), "state"),
		now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
	file, err := state.Open(g.path, []state.Migration{Migration})
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	g.Access = New(file, func() time.Time { return g.now })
	return g
}

func (g *gate) is(t *testing.T, secret, name string) {
	t.Helper()
	i, err := g.Check(secret)
	if name == "" && !errors.Is(err, ErrDenied) || name != "" && (err != nil || i.Name != name) {
		t.Errorf("it is %+v, not %q: %v", i, name, err)
	}
}

func TestRoles(t *testing.T) {
	for i, has := range ranks {
		for j, needs := range ranks {
			if has.Allows(needs) != (i >= j) {
				t.Errorf("%s for %s", has, needs)
			}
		}
	}
	if Role("root").Allows(Viewer) || Admin.Allows("root") || Role("").Allows("") {
		t.Error("a role that there is not allows something")
	}
	all, lab := Identity{Name: "a", Role: Operator},
		Identity{Name: "b", Role: Operator, Scopes: []string{"network/x", "group/lab"}}
	in, out := []string{"network/y", "group/lab"}, []string{"network/lab", "group/office"}
	for _, c := range []struct {
		who    Identity
		needs  Role
		within []string
		may    bool
	}{{all, Viewer, nil, true}, {all, Operator, in, true}, {all, Admin, in, false},
		{lab, Operator, in, true}, {lab, Admin, in, false}, {lab, Operator, out, false},
		{lab, Viewer, nil, false}} {
		if err := c.who.May(c.needs, c.within...); (err == nil) != c.may || err != nil &&
			!errors.Is(err, ErrDenied) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestTokens(t *testing.T) {
	g := newGate(t)
	first, err := g.First()
	must(t, err)
	g.is(t, first, "first")
	if again, err := g.First(); again != "" || err != nil {
		t.Errorf("a first one again: %q, %v", again, err)
	}
	short, err := g.CreateToken(Token{
		Identity: Identity{Name: "short", Role: Viewer, Scopes: []string{"group/lab"}},
		Expires:  g.now.Add(time.Hour)})
	must(t, err)
	g.is(t, short, "short")
	for _, wrong := range []string{"", short + "x", short[:len(short)-1], strings.ToLower(short),
		tokenPrefix, sessionPrefix + short[len(tokenPrefix):]} {
		g.is(t, wrong, "")
	}
	g.now = g.now.Add(time.Hour)
	g.is(t, short, "")
	g.is(t, first, "first")
	_, twice := g.CreateToken(Token{Identity: Identity{Name: "first", Role: Viewer}})
	_, role := g.CreateToken(Token{Identity: Identity{Name: "x", Role: "root"}})
	_, name := g.CreateToken(Token{Identity: Identity{Name: "x y", Role: Viewer}})
	for _, scope := range []string{"lab", "group/", "group/../lab", "/lab", "group/a/b"} {
		if _, err := g.CreateToken(Token{
			Identity: Identity{Name: "x", Role: Viewer, Scopes: []string{scope}}}); !errors.Is(err,
			ErrName) {
			t.Errorf("scope %q: %v", scope, err)
		}
	}
	if !errors.Is(twice, ErrExists) || role == nil || !errors.Is(name, ErrName) ||
		!errors.Is(g.DeleteToken("x"), state.ErrUnknown) {
		t.Errorf("%v, %v, %v", twice, role, name)
	}
	must(t, g.DeleteToken("first"))
	g.is(t, first, "")
	if list, err := g.Tokens(); err != nil || len(list) != 1 || list[0].Name != "short" ||
		!slices.Equal(list[0].Scopes, []string{"group/lab"}) {
		t.Errorf("%+v, %v", list, err)
	}
	g.kept(t, short, first)
}

// kept fails if the file has one of the texts.
func (g *gate) kept(t *testing.T, secrets ...string) {
	t.Helper()
	b, err := os.ReadFile(g.path)
	must(t, err)
	for _, s := range secrets {
		if bytes.Contains(b, []byte(s)) {
			t.Errorf("the file has %q", s)
		}
	}
}

func TestUsers(t *testing.T) {
	g := newGate(t)
	const right, other = "correct horse", "battery staple"
	must(t, g.CreateUser(Identity{Name: "ann@example.org", Role: Admin}, right))
	if err := g.CreateUser(Identity{Name: "ann@example.org", Role: Viewer}, right); !errors.Is(err,
		ErrExists) {
		t.Error(err)
	}
	if g.CreateUser(Identity{Name: "bob", Role: Viewer}, "short") == nil ||
		g.CreateUser(Identity{Name: "bob", Role: Viewer}, strings.Repeat("x", 300)) == nil {
		t.Error("a password of any length")
	}
	one, err := g.Login("ann@example.org", right)
	must(t, err)
	two, err := g.Login("ann@example.org", right)
	must(t, err)
	g.is(t, one, "ann@example.org")
	must(t, g.Logout(one))
	g.is(t, one, "")
	g.is(t, two, "ann@example.org")
	g.now = g.now.Add(sessionTime)
	g.is(t, two, "")
	three, err := g.Login("ann@example.org", right)
	must(t, err)
	must(t, g.SetPassword("ann@example.org", other))
	g.is(t, three, "")
	if _, err := g.Login("ann@example.org", right); !errors.Is(err, ErrDenied) {
		t.Errorf("the old password: %v", err)
	}
	four, err := g.Login("ann@example.org", other)
	must(t, err)
	g.kept(t, right, other, four)
	must(t, g.DeleteUser("ann@example.org"))
	g.is(t, four, "")
	if list, err := g.Users(); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := errors.Join(g.DeleteUser("ann@example.org"),
		g.SetPassword("ann@example.org", other)); !errors.Is(err, state.ErrUnknown) {
		t.Error(err)
	}
}

// Who guesses has five tries a minute for each name, right ones included when they are used up.
func TestGuesses(t *testing.T) {
	g := newGate(t)
	must(t, g.CreateUser(Identity{Name: "ann", Role: Viewer}, "correct horse"))
	for _, name := range []string{"ann", "nobody"} {
		for range mostFailed {
			if _, err := g.Login(name, "wrong password"); !errors.Is(err, ErrDenied) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := g.Login(name, "correct horse"); !errors.Is(err, ErrTooMany) {
			t.Errorf("%s, once more: %v", name, err)
		}
	}
	g.now = g.now.Add(failedTime)
	_, err := g.Login("ann", "correct horse")
	must(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	tried := 0
	for range 4 * mostFailed {
		all.Go(func() {
			_, err := g.Login("ann", "wrong password")
			mu.Lock()
			defer mu.Unlock()
			if !errors.Is(err, ErrTooMany) {
				tried++
			}
		})
	}
	if all.Wait(); tried != mostFailed {
		t.Errorf("%d tries at once, not %d", tried, mostFailed)
	}
}

func TestTrail(t *testing.T) {
	g := newGate(t)
	for i := range 5 {
		must(t, g.Record(Act{Who: "ann", What: "update group", Object: string(rune('a' + i)),
			Within: []string{fmt.Sprint("group/", i%2)}}))
	}
	who := &Identity{}
	objects := func(before uint64, most int) (text string) {
		list, err := g.Acts(who, before, most)
		must(t, err)
		for _, act := range list {
			if act.At != g.now || act.Number == 0 {
				t.Errorf("%+v", act)
			}
			text += act.Object
		}
		return text
	}
	if objects(0, 3) != "edc" || objects(3, 10) != "ba" || objects(1, 10) != "" ||
		objects(99, 2) != "ed" {
		t.Errorf("%q %q %q %q", objects(0, 3), objects(3, 10), objects(1, 10), objects(99, 2))
	}
	who.Scopes = []string{"group/0"}
	if objects(0, 2) != "ec" || objects(3, 10) != "a" {
		t.Errorf("of one group %q %q", objects(0, 2), objects(3, 10))
	}
}
