package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/room"
)

type menuCommands struct {
	Add    menuAdd    `cmd:"" help:"Add an entry, and make the menu with the first one."`
	Remove menuRemove `cmd:"" help:"Remove an entry, and the menu with the last one."`
	List   menuList   `cmd:"" help:"List all, with their entries."`
	Give   menuGive   `cmd:"" help:"Give one to the devices of a group, or take it away."`
}

type menuAdd struct {
	Server
	Name    string `arg:"" help:"Of the menu."`
	Key     string `arg:"" help:"Of the entry: a-z, 0-9 and '-'. One that is there is replaced."`
	Text    string `required:"" help:"What people read." placeholder:"TEXT"`
	Chain   string `help:"What iPXE runs: a script or a program." placeholder:"URI"`
	Kernel  string `help:"Or a kernel, as that of an installer." placeholder:"URI"`
	Initrd  string `help:"The initrd of the kernel." placeholder:"URI"`
	Args    string `help:"The arguments of the kernel." placeholder:"TEXT"`
	Wait    *int   `help:"Seconds for somebody to choose, of the whole menu: 10 at first; 0: for ever." placeholder:"SECONDS"`
	Network string `help:"That owns a new menu; without it, the only one that the token is limited to, or default." placeholder:"NETWORK"`
	Chosen  bool   `name:"default" help:"It is taken when nobody chooses; without it, the disk is."`
}

// firstWait is how many seconds a new menu waits.
const firstWait = 10

// menu returns one by its name; without it, an empty one.
func (s *Server) menu(ctx context.Context, name string) (m room.Menu, is bool, err error) {
	var list []room.Menu
	if err := s.ask(ctx, "menus", &list); err != nil {
		return m, false, err
	}
	if i := slices.IndexFunc(list, func(m room.Menu) bool { return m.Name == name }); i >= 0 {
		return list[i], true, nil
	}
	return room.Menu{Name: name}, false, nil
}

func (c *menuAdd) Run(ctx context.Context, out io.Writer) error {
	m, is, err := c.menu(ctx, c.Name)
	if err != nil {
		return err
	}
	if !is {
		m.Wait, m.Network = firstWait, c.Network
	}
	e := room.Entry{
		Key:    c.Key,
		Text:   c.Text,
		Chain:  c.Chain,
		Kernel: c.Kernel,
		Initrd: c.Initrd,
		Args:   c.Args,
	}
	if i := slices.IndexFunc(m.Entries, func(e room.Entry) bool { return e.Key == c.Key }); i >= 0 {
		m.Entries[i] = e
	} else {
		m.Entries = append(m.Entries, e)
	}
	if c.Wait != nil {
		m.Wait = *c.Wait
	}
	if c.Chosen {
		m.Default = c.Key
	} else if m.Default == c.Key {
		m.Default = ""
	}
	return c.send(ctx, out, "PUT", object("menus", c.Name, ""), m)
}

type menuRemove struct {
	named
	Key string `arg:""`
}

func (c *menuRemove) Run(ctx context.Context, out io.Writer) error {
	m, is, err := c.menu(ctx, c.Name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Entries, func(e room.Entry) bool { return e.Key == c.Key })
	if !is || i < 0 {
		return fmt.Errorf("menu %s has no entry %s", c.Name, c.Key)
	}
	m.Entries = slices.Delete(m.Entries, i, i+1)
	if m.Default == c.Key {
		m.Default = ""
	}
	if len(m.Entries) == 0 {
		return c.delete(ctx, out, object("menus", c.Name, ""))
	}
	return c.send(ctx, out, "PUT", object("menus", c.Name, ""), m)
}

type menuList struct{ Server }

func (c *menuList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "menus", "MENU\tENTRY\tTEXT\tBOOTS\tWAITS",
		func(w io.Writer, m *room.Menu) {
			for _, e := range m.Entries {
				waits := "-"
				if m.Default == e.Key {
					waits = fmt.Sprintf("default after %d s", m.Wait)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, e.Key, e.Text, cmp.Or(e.Chain, e.Kernel), waits)
			}
		})
}

type menuGive struct {
	Server
	Name string `arg:"" optional:"" help:"Without it, with --none, the group has none."`
	To   string `required:"" placeholder:"GROUP"`
	None bool   `help:"Take the menu of the group away."`
}

func (c *menuGive) Run(ctx context.Context, out io.Writer) error {
	if c.None == (c.Name != "") {
		return errors.New("give a menu, or --none")
	}
	return c.send(ctx, out, "PUT", object("groups", c.To, "menu"), api.GroupMenu{Menu: c.Name})
}
