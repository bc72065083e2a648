package room

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"dalmatiner/access/state"
)

var install = Entry{Key: "install", Text: "Install Debian 12 (over all)",
	Kernel: "http://192.0.2.1/linux", Initrd: "http://192.0.2.1/initrd.gz",
	Args: "auto=true url=http://192.0.2.1/preseed"}

// usual is a menu with an entry of each kind.
func usual() Menu {
	return Menu{Name: "usual", Network: Default, Wait: 10, Entries: []Entry{install,
		{Key: "more", Text: "More", Chain: "https://boot.example.org/menu.ipxe"}}}
}

// newLab returns a room with the group lab.
func newLab(t *testing.T) *Room {
	t.Helper()
	file, err := state.Open(filepath.Join(t.TempDir(), "state"), Migrations())
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	r := New(Options{State: file})
	must(t, r.put(groups, "lab", Group{Name: "lab", Network: Default}))
	return r
}

// Menus are given to groups.
func TestMenus(t *testing.T) {
	r := newLab(t)
	m := r.Menus()
	must(t, m.Put(usual()))
	if of, err := m.Of("lab"); of != nil || err != nil {
		t.Errorf("%+v, %v", of, err)
	}
	must(t, r.put(groups, "far", Group{Name: "far", Network: "other"}))
	if err := m.Give("far", "usual"); !errors.Is(err, ErrRefused) {
		t.Errorf("given to a group of another network: %v", err)
	}
	must(t, m.Give("lab", "usual"))
	if of, err := m.Of("lab"); err != nil || of.Wait != 10 || len(of.Entries) != 2 ||
		of.Entries[0] != install {
		t.Errorf("%+v, %v", of, err)
	}
	if err := m.Remove("usual"); !errors.Is(err, ErrBusy) {
		t.Errorf("removed beneath a group: %v", err)
	}
	for what, err := range map[string]error{"given to none": m.Give("none", "usual"),
		"none given": m.Give("lab", "none"), "removed": m.Remove("none")} {
		if !errors.Is(err, state.ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, errors.Join(m.Give("lab", ""), m.Remove("usual")))
	if list, err := m.List(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// What iPXE would take for more than a value is refused.
func TestBadMenusAreRefused(t *testing.T) {
	m := newLab(t).Menus()
	must(t, errors.Join(m.Put(usual()), m.Remove("usual")))
	for what, change := range map[string]func(m *Menu){
		"a name":         func(m *Menu) { m.Name = "Usual" },
		"no entries":     func(m *Menu) { m.Entries = nil },
		"many entries":   func(m *Menu) { m.Entries = make([]Entry, mostEntries+1) },
		"a wait":         func(m *Menu) { m.Wait = -1 },
		"a default":      func(m *Menu) { m.Default = "none" },
		"twice":          func(m *Menu) { m.Entries[1].Key = "install" },
		"the disk":       func(m *Menu) { m.Entries[1].Key = DiskKey },
		"a key":          func(m *Menu) { m.Entries[1].Key = "a b" },
		"no text":        func(m *Menu) { m.Entries[1].Text = "" },
		"a line more":    func(m *Menu) { m.Entries[1].Text = "x\nchain http://192.0.2.66/" },
		"a variable":     func(m *Menu) { m.Entries[1].Text = "${password}" },
		"nothing":        func(m *Menu) { m.Entries[1].Chain = "" },
		"both":           func(m *Menu) { m.Entries[1].Kernel = install.Kernel },
		"only an initrd": func(m *Menu) { m.Entries[1].Initrd = install.Initrd },
		"no URI":         func(m *Menu) { m.Entries[1].Chain = "boot" },
		"a file":         func(m *Menu) { m.Entries[1].Chain = "file:///etc/passwd" },
		"words":          func(m *Menu) { m.Entries[1].Chain += " || chain http://192.0.2.66/" },
		"a secret":       func(m *Menu) { m.Entries[1].Chain = "http://192.0.2.66/${password}" },
		"two commands":   func(m *Menu) { m.Entries[0].Args = "quiet && chain http://192.0.2.66/" },
		"long":           func(m *Menu) { m.Entries[0].Args = strings.Repeat("x", mostLine+1) },
	} {
		bad := usual()
		change(&bad)
		if err := m.Put(bad); !errors.Is(err, ErrRefused) && !errors.Is(err, ErrName) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
