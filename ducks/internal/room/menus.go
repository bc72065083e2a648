package room

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dalmatiner/access/state"
)

// Menu is what the devices of a group are offered when they boot, beside their disk, which comes
// first.
type Menu struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	// for somebody to choose; then the default is taken. 0: for ever
	Wait    int     `json:"wait_seconds"`
	Default string  `json:"default"` // the key of an entry; empty: the disk
	Entries []Entry `json:"entries"`
}

// Entry is something that a device may boot. Its disk is there beside that: an installer finds it.
type Entry struct {
	Key    string `json:"key"`    // its name in the menu
	Text   string `json:"text"`   // what people read
	Chain  string `json:"chain"`  // a URI of what iPXE runs; or
	Kernel string `json:"kernel"` // that of a kernel,
	Initrd string `json:"initrd"` // of its first file system, which may be left out,
	Args   string `json:"args"`   // and the arguments
}

const menus state.Table = "menu"

// The bounds of menus: what fits a screen, and a line of iPXE.
const (
	mostEntries = 20
	mostText    = 70
	mostLine    = 1024
	mostWait    = 3600
)

// Menus are those of a room. Its methods may be called concurrently.
type Menus struct{ r *Room }

// Menus returns the menus.
func (r *Room) Menus() Menus { return Menus{r} }

// List returns all, by name.
func (m Menus) List() ([]Menu, error) { return list[Menu](m.r, menus) }

// Of returns the menu of a group, nil if it has none.
func (m Menus) Of(group string) (*Menu, error) {
	g, err := m.r.Group(group)
	if err != nil || g.Menu == "" {
		return nil, err
	}
	of := new(Menu)
	return of, m.r.get(menus, g.Menu, of)
}

// Put makes a menu, or another one of a name, which stays in its network.
func (m Menus) Put(of Menu) error {
	if err := of.check(); err != nil {
		return fmt.Errorf("menu %s: %w", of.Name, err)
	}
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	var before Menu
	switch err := m.r.get(menus, of.Name, &before); {
	case errors.Is(err, state.ErrUnknown):
		return m.r.Networks().grow(of.Network, Counts{Menus: 1}, func(tx *state.Tx) error {
			return tx.Put(menus, of.Name, of)
		})
	case err != nil:
		return err
	}
	of.Network = before.Network
	return m.r.put(menus, of.Name, of)
}

// Remove removes a menu that no group has.
func (m Menus) Remove(name string) error {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if err := m.r.get(menus, name, new(Menu)); err != nil {
		return err
	}
	all, err := m.r.Groups()
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.Menu == name {
			return fmt.Errorf("menu %s: %w: group %s has it: take it away first", name, ErrBusy, g.Name)
		}
	}
	return m.r.delete(menus, name)
}

// Give gives a menu to a group; "" takes it away. Devices see it when they boot next.
func (m Menus) Give(group, name string) error {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	var g Group
	if err := m.r.get(groups, group, &g); err != nil {
		return err
	}
	if name != "" {
		var of Menu
		if err := m.r.get(menus, name, &of); err != nil {
			return err
		}
		if of.Network != g.Network {
			return fmt.Errorf("menu %s: %w: it is of network %s, and group %s of %s", name, ErrRefused,
				of.Network, group, g.Network)
		}
	}
	g.Menu = name
	return m.r.put(groups, group, g)
}

// DiskKey is the key of the disk of a device in every menu.
const DiskKey = "disk"

func (m *Menu) check() error {
	refused := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
	}
	switch {
	case !nameForm.MatchString(m.Name):
		return ErrName
	case len(m.Entries) == 0 || len(m.Entries) > mostEntries:
		return refused("%d entries: want 1 to %d", len(m.Entries), mostEntries)
	case m.Wait < 0 || m.Wait > mostWait:
		return refused("%d seconds: want 0 to %d", m.Wait, mostWait)
	}
	keys := []string{DiskKey}
	for i := range m.Entries {
		e := &m.Entries[i]
		if slices.Contains(keys, e.Key) {
			return refused("entry %s is there twice, or is that of the disk", e.Key)
		}
		keys = append(keys, e.Key)
		if err := e.check(); err != nil {
			return fmt.Errorf("entry %s: %w", e.Key, err)
		}
	}
	if m.Default != "" && !slices.Contains(keys, m.Default) {
		return refused("its default %q is none of its entries", m.Default)
	}
	return nil
}

// check refuses what would be more than a value in a script of iPXE.
func (e *Entry) check() error {
	switch {
	case !nameForm.MatchString(e.Key):
		return ErrName
	case e.Text == "" || len(e.Text) > mostText || !printable(e.Text, ""):
		return fmt.Errorf("%w: its text has 1 to %d printable letters, and no $, | or &", ErrRefused,
			mostText)
	case (e.Chain == "") == (e.Kernel == ""):
		return fmt.Errorf("%w: it has either something to chain to or a kernel", ErrRefused)
	case e.Kernel == "" && e.Initrd+e.Args != "":
		return fmt.Errorf("%w: an initrd and arguments go with a kernel", ErrRefused)
	case len(e.Args) > mostLine || !printable(e.Args, ""):
		return fmt.Errorf("%w: its arguments have at most %d printable letters, and no $, | or &",
			ErrRefused, mostLine)
	}
	return errors.Join(checkURI(e.Chain), checkURI(e.Kernel), checkURI(e.Initrd))
}

// checkURI takes what iPXE loads: http, https, tftp and ftp.
func checkURI(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "tftp", "ftp"},
		u.Scheme) || len(text) > mostLine || !printable(text, " ") {
		return fmt.Errorf("%w: %q is nothing that iPXE loads: want http://HOST/PATH, or https, tftp or "+
			"ftp", ErrRefused, text)
	}
	return nil
}

// printable reports whether a text is of letters that iPXE prints and takes as they are, and of
// none of some others.
func printable(text, but string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r > '~' || strings.ContainsRune("$|&"+but, r)
	})
}
