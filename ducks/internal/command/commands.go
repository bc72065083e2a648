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
	Serve   Serve   `cmd:"" help:"Run ducks on this machine: images, disks over iSCSI, and what devices boot."`
	Stop    Stop    `cmd:"" help:"End the tgtd that serve leaves when it stops."`
	Pool    Pool    `cmd:"" help:"The space of the pool."`
	Client  Client  `cmd:"" help:"Who owns networks."`
	Network Network `cmd:"" help:"What owns images and devices, with its limits."`
	Servers Servers `cmd:"" name:"server" help:"The storage servers."`
	Volume  Volume  `cmd:"" help:"Disks that groups begin with."`
	Group   Group   `cmd:"" help:"What devices boot, with its versions."`
	Image   Image   `cmd:"" help:"Files of disk images, in and out."`
	Device  Device  `cmd:"" help:"The machines."`
	Menu    Menu    `cmd:"" help:"What devices are offered beside their disk, as an installer."`
	Disk    Disk    `cmd:"" help:"Further disks of devices, whose contents stay."`
	Plan    Plan    `cmd:"" help:"What each device gets when it boots next, and loses."`
	Alerts  Alerts  `cmd:"" help:"What somebody should look at, and what to do."`
	Token   Token   `cmd:"" help:"Who is let in."`
	User    User    `cmd:"" help:"People who are let in by a password."`
	Login   Login   `cmd:"" help:"Begin a session of a user: prints a token for 12 hours."`
	Logout  Logout  `cmd:"" help:"End a session."`
	Trail   Trail   `cmd:"" help:"What was done, by whom, the newest first."`

	Restore Restore `cmd:"" help:"Make the state of a server that is lost, of the backup in its pool."`
	Doctor  Doctor  `cmd:"" help:"Look whether this machine can run ducks, and say what to do where it cannot."`
	Emulate Emulate `cmd:"" help:"Boot machines that are none, at a bridge: to try a room, and to see how many it carries."`
}

// table prints lines in columns.
func table(out io.Writer, title string, lines func(w io.Writer)) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, title)
	lines(w)
	return w.Flush()
}

// Pool shows the pool.
type Pool struct {
	Create  PoolCreate  `cmd:"" help:"Make one on disks of this machine that are empty, and mount it."`
	Status  PoolStatus  `cmd:"" help:"How large it is, and how much is free."`
	Orphans PoolOrphans `cmd:"" help:"List images that no device has: a crash has left them."`
}

// PoolStatus is a command.
type PoolStatus struct{ Server }

// Run runs it.
func (c *PoolStatus) Run(ctx context.Context, out io.Writer) error {
	var s pool.Space
	if done, err := c.do(ctx, out, "GET", "pool", nil, &s); done || err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s of %s are free, %s of these for running devices only\n",
		bytesText(s.Free), bytesText(s.Total), bytesText(min(s.Free, s.Reserve)))
	return err
}

// Volume are the commands of volumes.
type Volume struct {
	Create VolumeCreate `cmd:"" help:"Make an empty disk."`
	List   VolumeList   `cmd:"" help:"List all, with their versions."`
	Files  VolumeFiles  `cmd:"" help:"Show which files of a version are not those of the version before."`
	Delete VolumeDelete `cmd:"" help:"Delete one that no group is of."`
}

// VolumeCreate is a command.
type VolumeCreate struct {
	Server
	Name    string `arg:"" help:"Of the volume: a-z, 0-9 and '-'."`
	Size    Bytes  `required:"" help:"Of the disk, as 40G. Space is taken when it is written to." placeholder:"SIZE"`
	Network string `help:"That owns it; without it, the only one that the token is limited to, or default." placeholder:"NETWORK"`
}

// Run runs it.
func (c *VolumeCreate) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", "volumes", api.NewVolume{
		Name:    c.Name,
		Network: c.Network,
		Size:    int64(c.Size),
	}, nil)
	return err
}

// VolumeList is a command.
type VolumeList struct{ Server }

// Run runs it.
func (c *VolumeList) Run(ctx context.Context, out io.Writer) error {
	var list []room.Volume
	if done, err := c.do(ctx, out, "GET", "volumes", nil, &list); done || err != nil {
		return err
	}
	return table(out, "VOLUME\tSIZE\tVERSION\tFROM\tBY\tNOTE", func(w io.Writer) {
		for _, v := range list {
			for _, of := range v.Versions {
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", v.Name, bytesText(v.Size), of.Number, of.From,
					of.Author, of.Note)
			}
		}
	})
}

// Group are the commands of groups.
type Group struct {
	Create   GroupCreate   `cmd:"" help:"Make a group that begins with the newest version of a volume."`
	List     GroupList     `cmd:"" help:"List all."`
	Versions GroupVersions `cmd:"" help:"List the versions of one."`
	Files    GroupFiles    `cmd:"" help:"Show which files of a version are not those of the version before."`
	Update   GroupUpdate   `cmd:"" help:"Make what a device has written the newest version."`
	Release  GroupRelease  `cmd:"" help:"Let all devices have the version that canaries have tried."`
	Promote  GroupPromote  `cmd:"" help:"Give the version of a group to its volume."`
	Rollback GroupRollback `cmd:"" help:"Let devices get an older version."`
	Timeouts GroupTimeouts `cmd:"" help:"Show or say how long its devices wait for a disk that does not answer."`
	Delete   GroupDelete   `cmd:"" help:"Delete one without devices, or a version of it."`
}

// GroupCreate is a command.
type GroupCreate struct {
	Server
	Name   string `arg:""`
	Volume string `required:"" placeholder:"VOLUME"`
}

// Run runs it.
func (c *GroupCreate) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", "groups", api.NewGroup{Name: c.Name, Volume: c.Volume}, nil)
	return err
}

// GroupList is a command.
type GroupList struct{ Server }

// Run runs it.
func (c *GroupList) Run(ctx context.Context, out io.Writer) error {
	var list []room.Group
	if done, err := c.do(ctx, out, "GET", "groups", nil, &list); done || err != nil {
		return err
	}
	return table(out, "GROUP\tNETWORK\tVOLUME\tVERSIONS\tUSES", func(w io.Writer) {
		for _, g := range list {
			uses := "the newest"
			if g.Use > 0 {
				uses = fmt.Sprint("version ", g.Use)
			}
			if c := g.Canary; c != nil {
				uses += fmt.Sprintf(", version %d on %d %% of the devices", c.Version, c.Share)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", g.Name, g.Network, g.Volume, len(g.Versions), uses)
		}
	})
}

// GroupVersions is a command.
type GroupVersions struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *GroupVersions) Run(ctx context.Context, out io.Writer) error {
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

// GroupUpdate is a command.
type GroupUpdate struct {
	Server
	Name string `arg:""`
	From string `required:"" help:"The device, which is shut down." placeholder:"DEVICE"`
	Note string `help:"What is new." placeholder:"TEXT"`

	Canary int           `help:"Let only so many percent of the devices have it, until group release. Where one of these does not come up in time, it is taken back." placeholder:"PERCENT"`
	Until  string        `name:"canary-until" default:"up" enum:"up,read" help:"How far each has to come: up, as its system says, or read, from its disk."`
	Within time.Duration `name:"canary-within" default:"10m" help:"How long that may take, from its script on."`
}

// Run runs it.
func (c *GroupUpdate) Run(ctx context.Context, out io.Writer) error {
	u := api.Update{From: c.From, Note: c.Note}
	if c.Canary != 0 {
		u.Canary = &api.Canary{Share: c.Canary, Until: c.Until, Within: c.Within.Seconds()}
	}
	return c.version(ctx, out, object("groups", c.Name, "update"), u)
}

// GroupRelease is a command.
type GroupRelease struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *GroupRelease) Run(ctx context.Context, out io.Writer) error {
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

// GroupPromote is a command.
type GroupPromote struct {
	Server
	Name string `arg:""`
	Note string `help:"What is new." placeholder:"TEXT"`
}

// Run runs it.
func (c *GroupPromote) Run(ctx context.Context, out io.Writer) error {
	return c.version(ctx, out, object("groups", c.Name, "promote"), api.Update{Note: c.Note})
}

// GroupRollback is a command.
type GroupRollback struct {
	Server
	Name string `arg:""`
	To   int    `required:"" help:"The number of the version; 0: the newest again." placeholder:"VERSION"`
}

// Run runs it.
func (c *GroupRollback) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", object("groups", c.Name, "rollback"), api.Rollback{Version: c.To},
		nil)
	return err
}

// GroupTimeouts is a command.
type GroupTimeouts struct {
	Server
	Name     string         `arg:""`
	Recovery *time.Duration `placeholder:"TIME" help:"For the session to come back before writes fail, as 24h; 0: as the image says."`
	Command  *time.Duration `placeholder:"TIME" help:"For an answer, before the session is made anew, as 60s; 0: as the image says."`
}

// Run runs it.
func (c *GroupTimeouts) Run(ctx context.Context, out io.Writer) error {
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
	_, err := c.do(ctx, out, "PUT", object("groups", c.Name, "timeouts"), g.Timeouts, nil)
	return err
}

func waitText(seconds int) string {
	if seconds == 0 {
		return "as the image says"
	}
	return (time.Duration(seconds) * time.Second).String()
}

// Alerts is a command.
type Alerts struct{ Server }

// Run runs it.
func (c *Alerts) Run(ctx context.Context, out io.Writer) error {
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

// Plan is a command.
type Plan struct{ Server }

// Run runs it.
func (c *Plan) Run(ctx context.Context, out io.Writer) error {
	var list []room.Boot
	if done, err := c.do(ctx, out, "GET", "plan", nil, &list); done || err != nil {
		return err
	}
	return table(out, "DEVICE\tGROUP\tVERSION\tLOSES\tWHY", func(w io.Writer) {
		for _, b := range list {
			loses := "nothing"
			if b.Loses > 0 {
				loses = bytesText(b.Loses)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", b.Device, b.Group, b.Version, loses, b.Why)
		}
	})
}

// Token are the commands of tokens.
type Token struct {
	Create TokenCreate `cmd:"" help:"Make a token. It is shown once."`
	List   TokenList   `cmd:"" help:"List all, without their secrets."`
	Delete TokenDelete `cmd:"" help:"Take one away, at once."`
}

// TokenCreate is a command.
type TokenCreate struct {
	Server
	Name string      `arg:""`
	Role access.Role `required:"" enum:"viewer,operator,admin" help:"viewer looks, operator works, admin also says who may." placeholder:"ROLE"`

	To
}

// Run runs it.
func (c *TokenCreate) Run(ctx context.Context, out io.Writer) error {
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

// TokenList is a command.
type TokenList struct{ Server }

// Run runs it.
func (c *TokenList) Run(ctx context.Context, out io.Writer) error {
	var list []access.Token
	if done, err := c.do(ctx, out, "GET", "tokens", nil, &list); done || err != nil {
		return err
	}
	return table(out, "TOKEN\tROLE\tLIMITED TO\tSINCE", func(w io.Writer) {
		for _, t := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Role, scopesText(t.Scopes),
				t.Created.UTC().Format(time.DateTime))
		}
	})
}

// TokenDelete is a command.
type TokenDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *TokenDelete) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "DELETE", object("tokens", c.Name, ""), nil, nil)
	return err
}

// Trail is a command.
type Trail struct{ Server }

// Run runs it.
func (c *Trail) Run(ctx context.Context, out io.Writer) error {
	var list []access.Act
	if done, err := c.do(ctx, out, "GET", "trail", nil, &list); done || err != nil {
		return err
	}
	return table(out, "AT\tWHO\tWHAT\tOBJECT\tRESULT", func(w io.Writer) {
		for _, a := range list {
			result := "done"
			if a.Error != "" {
				result = a.Error
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.At.UTC().Format(time.DateTime), a.Who, a.What, a.Object,
				result)
		}
	})
}
