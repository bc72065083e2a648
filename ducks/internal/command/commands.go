// Package command is the commands of ducks. All but serve ask a running ducks over its API.
package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"dalmatiner/access"
	"dalmatiner/ducks/internal/alerts"
	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
)

// Grammar is all commands.
type Grammar struct {
	Serve   serveCommand    `cmd:"" help:"Run ducks on this machine: images, disks over iSCSI, and what devices boot."`
	Stop    stopCommand     `cmd:"" help:"End the tgtd that serve leaves when it stops."`
	Pool    poolCommands    `cmd:"" help:"The space of the pool."`
	Client  clientCommands  `cmd:"" help:"Who owns networks."`
	Network networkCommands `cmd:"" help:"What owns images and devices, with its limits."`
	Servers serverCommands  `cmd:"" name:"server" help:"The storage servers."`
	Volume  volumeCommands  `cmd:"" help:"Disks that groups begin with."`
	Group   groupCommands   `cmd:"" help:"What devices boot, with its versions."`
	Image   imageCommands   `cmd:"" help:"Files of disk images, in and out."`
	Device  deviceCommands  `cmd:"" help:"The machines."`
	Menu    menuCommands    `cmd:"" help:"What devices are offered beside their disk, as an installer."`
	Disk    diskCommands    `cmd:"" help:"Further disks of devices, whose contents stay."`
	Plan    planCommand     `cmd:"" help:"What each device gets when it boots next, and loses."`
	Alerts  alertsCommand   `cmd:"" help:"What somebody should look at, and what to do."`
	Token   tokenCommands   `cmd:"" help:"Who is let in."`
	User    userCommands    `cmd:"" help:"People who are let in by a password."`
	Login   loginCommand    `cmd:"" help:"Begin a session of a user: prints a token for 12 hours."`
	Logout  logoutCommand   `cmd:"" help:"End a session."`
	Trail   trailCommand    `cmd:"" help:"What was done, by whom, the newest first."`

	Restore restoreCommand `cmd:"" help:"Make the state of a server that is lost, of the backup in its pool."`
	Doctor  doctorCommand  `cmd:"" help:"Look whether this machine can run ducks, and say what to do where it cannot."`
	Emulate emulateCommand `cmd:"" help:"Boot machines that are none, at a bridge: to try a room, and to see how many it carries."`
}

// named is a command about one thing.
type named struct {
	Server
	Name string `arg:""`
}

// listed prints in columns what the server lists at a path; line prints one of these.
func listed[T any](ctx context.Context, out io.Writer, s *Server, path, title string,
	line func(w io.Writer, of *T)) error {
	var list []T
	if done, err := s.do(ctx, out, "GET", path, nil, &list); done || err != nil {
		return err
	}
	return table(out, title, func(w io.Writer) {
		for i := range list {
			line(w, &list[i])
		}
	})
}

// table prints lines in columns.
func table(out io.Writer, title string, lines func(w io.Writer)) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, title)
	lines(w)
	return w.Flush()
}

// Pool shows the pool.
type poolCommands struct {
	Create  poolCreate  `cmd:"" help:"Make one on disks of this machine that are empty, and mount it."`
	Status  poolStatus  `cmd:"" help:"How large it is, and how much is free."`
	Orphans poolOrphans `cmd:"" help:"List images that no device has: a crash has left them."`
}

type poolStatus struct{ Server }

func (c *poolStatus) Run(ctx context.Context, out io.Writer) error {
	var s pool.Space
	if done, err := c.do(ctx, out, "GET", "pool", nil, &s); done || err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s of %s are free, %s of these for running devices only\n",
		bytesText(s.Free), bytesText(s.Total), bytesText(min(s.Free, s.Reserve)))
	return err
}

type volumeCommands struct {
	Create volumeCreate `cmd:"" help:"Make an empty disk."`
	List   volumeList   `cmd:"" help:"List all, with their versions."`
	Files  volumeFiles  `cmd:"" help:"Show which files of a version are not those of the version before."`
	Delete volumeDelete `cmd:"" help:"Delete one that no group is of."`
}

type volumeCreate struct {
	Server
	Name    string `arg:"" help:"Of the volume: a-z, 0-9 and '-'."`
	Size    Bytes  `required:"" help:"Of the disk, as 40G. Space is taken when it is written to." placeholder:"SIZE"`
	Network string `help:"That owns it; without it, the only one that the token is limited to, or default." placeholder:"NETWORK"`
}

func (c *volumeCreate) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", "volumes", api.NewVolume{
		Name:    c.Name,
		Network: c.Network,
		Size:    int64(c.Size),
	})
}

type volumeList struct{ Server }

func (c *volumeList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "volumes", "VOLUME\tSIZE\tVERSION\tFROM\tBY\tNOTE",
		func(w io.Writer, v *room.Volume) {
			for _, of := range v.Versions {
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", v.Name, bytesText(v.Size), of.Number, of.From,
					of.Author, of.Note)
			}
		})
}

type groupCommands struct {
	Create   groupCreate   `cmd:"" help:"Make a group that begins with the newest version of a volume."`
	List     groupList     `cmd:"" help:"List all."`
	Versions groupVersions `cmd:"" help:"List the versions of one."`
	Files    groupFiles    `cmd:"" help:"Show which files of a version are not those of the version before."`
	Update   groupUpdate   `cmd:"" help:"Make what a device has written the newest version."`
	Release  groupRelease  `cmd:"" help:"Let all devices have the version that canaries have tried."`
	Promote  groupPromote  `cmd:"" help:"Give the version of a group to its volume."`
	Rollback groupRollback `cmd:"" help:"Let devices get an older version."`
	Timeouts groupTimeouts `cmd:"" help:"Show or say how long its devices wait for a disk that does not answer."`
	Delete   groupDelete   `cmd:"" help:"Delete one without devices, or a version of it."`
}

type groupCreate struct {
	named
	Volume string `required:"" placeholder:"VOLUME"`
}

func (c *groupCreate) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", "groups", api.NewGroup{Name: c.Name, Volume: c.Volume})
}

type groupList struct{ Server }

func (c *groupList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "groups", "GROUP\tNETWORK\tVOLUME\tVERSIONS\tUSES",
		func(w io.Writer, g *room.Group) {
			uses := "the newest"
			if g.Use > 0 {
				uses = fmt.Sprint("version ", g.Use)
			}
			if c := g.Canary; c != nil {
				uses += fmt.Sprintf(", version %d on %d %% of the devices", c.Version, c.Share)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", g.Name, g.Network, g.Volume, len(g.Versions), uses)
		})
}

type groupVersions struct{ named }

func (c *groupVersions) Run(ctx context.Context, out io.Writer) error {
	var g room.Group
	if done, err := c.do(ctx, out, "GET", object("groups", c.Name, ""), nil, &g); done || err != nil {
		return err
	}
	return table(out, "VERSION\tAT\tFROM\tCHANGED\tUP ON\tBY\tNOTE", func(w io.Writer) {
		for _, v := range g.Versions {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Number, v.At.UTC().Format(time.DateTime),
				v.From, bytesText(v.Changed), upOn(v.Tested), v.Author, v.Note)
		}
	})
}

// upOn names the devices that were up with a version: a few of many.
func upOn(devices []string) string {
	const shown = 3
	switch n := len(devices); {
	case n == 0:
		return "-"
	case n > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(devices[:shown], ", "), n-shown)
	}
	return strings.Join(devices, ", ")
}

type groupUpdate struct {
	named
	From string `required:"" help:"The device, which is shut down." placeholder:"DEVICE"`
	Note string `help:"What is new." placeholder:"TEXT"`

	Canary int           `help:"Let only so many percent of the devices have it, until group release. Where one of these does not come up in time, it is taken back." placeholder:"PERCENT"`
	Until  string        `name:"canary-until" default:"up" enum:"up,read" help:"How far each has to come: up, as its system says, or read, from its disk."`
	Within time.Duration `name:"canary-within" default:"10m" help:"How long that may take, from its script on."`
}

func (c *groupUpdate) Run(ctx context.Context, out io.Writer) error {
	u := api.Update{From: c.From, Note: c.Note}
	if c.Canary != 0 {
		u.Canary = &api.Canary{Share: c.Canary, Until: c.Until, Within: c.Within.Seconds()}
	}
	return c.version(ctx, out, object("groups", c.Name, "update"), u)
}

type groupRelease struct{ named }

func (c *groupRelease) Run(ctx context.Context, out io.Writer) error {
	return c.version(ctx, out, object("groups", c.Name, "release"), nil)
}

// version asks for a new version, and says which it is.
func (s *Server) version(ctx context.Context, out io.Writer, path string, of any) error {
	var v room.Version
	if done, err := s.do(ctx, out, "POST", path, of, &v); done || err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "version %d, from %s\n", v.Number, v.From)
	return err
}

type groupPromote struct {
	named
	Note string `help:"What is new." placeholder:"TEXT"`
}

func (c *groupPromote) Run(ctx context.Context, out io.Writer) error {
	return c.version(ctx, out, object("groups", c.Name, "promote"), api.Update{Note: c.Note})
}

type groupRollback struct {
	named
	To int `required:"" help:"The number of the version; 0: the newest again." placeholder:"VERSION"`
}

func (c *groupRollback) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", object("groups", c.Name, "rollback"), api.Rollback{Version: c.To})
}

type groupTimeouts struct {
	named
	Recovery *time.Duration `placeholder:"TIME" help:"For the session to come back before writes fail, as 24h; 0: as the image says."`
	Command  *time.Duration `placeholder:"TIME" help:"For an answer, before the session is made anew, as 60s; 0: as the image says."`
}

func (c *groupTimeouts) Run(ctx context.Context, out io.Writer) error {
	var g room.Group
	if c.Recovery == nil && c.Command == nil {
		if done, err := c.do(ctx, out, "GET", object("groups", c.Name, ""), nil, &g); done || err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "recovery  %s\ncommand   %s\n", waitText(g.Timeouts.Recovery),
			waitText(g.Timeouts.Command))
		return err
	}
	if err := c.ask(ctx, object("groups", c.Name, ""), &g); err != nil {
		return err
	}
	if c.Recovery != nil {
		g.Timeouts.Recovery = int(c.Recovery.Seconds())
	}
	if c.Command != nil {
		g.Timeouts.Command = int(c.Command.Seconds())
	}
	return c.send(ctx, out, "PUT", object("groups", c.Name, "timeouts"), g.Timeouts)
}

func waitText(seconds int) string {
	if seconds == 0 {
		return "as the image says"
	}
	return (time.Duration(seconds) * time.Second).String()
}

type alertsCommand struct{ Server }

func (c *alertsCommand) Run(ctx context.Context, out io.Writer) error {
	var list []alerts.Alert
	if done, err := c.do(ctx, out, "GET", "alerts", nil, &list); done || err != nil {
		return err
	}
	for _, a := range list {
		since := ""
		if !a.Since.IsZero() {
			since = ", since " + a.Since.UTC().Format(time.DateTime)
		}
		if _, err := fmt.Fprintf(out, "%s: %s%s\n    %s\n", a.Object, a.Text, since,
			a.Remedy); err != nil {
			return err
		}
	}
	return nil
}

type planCommand struct{ Server }

func (c *planCommand) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "plan", "DEVICE\tGROUP\tVERSION\tLOSES\tWHY",
		func(w io.Writer, b *room.Boot) {
			loses := "nothing"
			if b.Loses > 0 {
				loses = bytesText(b.Loses)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", b.Device, b.Group, b.Version, loses, b.Why)
		})
}

type tokenCommands struct {
	Create tokenCreate `cmd:"" help:"Make a token. It is shown once."`
	List   tokenList   `cmd:"" help:"List all, without their secrets."`
	Delete tokenDelete `cmd:"" help:"Take one away, at once."`
}

type tokenCreate struct {
	named
	Role access.Role `required:"" enum:"viewer,operator,admin" help:"viewer looks, operator works, admin also says who may." placeholder:"ROLE"`

	To
}

func (c *tokenCreate) Run(ctx context.Context, out io.Writer) error {
	var made struct{ Token string }
	if done, err := c.do(ctx, out, "POST", "tokens", api.NewToken{
		Name:    c.Name,
		Role:    c.Role,
		Limited: api.Limited(c.To),
	}, &made); done || err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, made.Token)
	return err
}

type tokenList struct{ Server }

func (c *tokenList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "tokens", "TOKEN\tROLE\tLIMITED TO\tSINCE",
		func(w io.Writer, t *access.Token) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Role, scopesText(t.Scopes),
				t.Created.UTC().Format(time.DateTime))
		})
}

type tokenDelete struct{ named }

func (c *tokenDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("tokens", c.Name, ""))
}

type trailCommand struct{ Server }

func (c *trailCommand) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "trail", "AT\tWHO\tWHAT\tOBJECT\tRESULT",
		func(w io.Writer, a *access.Act) {
			result := "done"
			if a.Error != "" {
				result = a.Error
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.At.UTC().Format(time.DateTime), a.Who, a.What, a.Object,
				result)
		})
}
