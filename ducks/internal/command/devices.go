package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/room"
)

type deviceCommands struct {
	Add      deviceAdd      `cmd:"" help:"Make a machine known by its MAC address."`
	List     deviceList     `cmd:"" help:"List all."`
	Show     deviceShow     `cmd:"" help:"Show one, for an admin with its secret."`
	Boots    deviceBoots    `cmd:"" help:"Show its last boots, with the seconds to each stage."`
	Change   deviceChange   `cmd:"" help:"Move it to another group, or change its mode or limits."`
	Pin      devicePin      `cmd:"" help:"Let it get a version, whatever its group uses."`
	Rollback deviceRollback `cmd:"" help:"Let it begin anew when it boots next, whatever its mode: what it has written goes."`
	Unit     deviceUnit     `cmd:"" help:"Print the unit of systemd for images, which says that a device is up."`
	Attach   deviceAttach   `cmd:"" help:"Get its disk ready for an initiator that asks for no script: a boot loader of its own, a virtual machine, a test."`
	Detach   deviceDetach   `cmd:"" help:"Take its disk away until it boots, or is attached, again. What it has written stays."`
	Wake     deviceWake     `cmd:"" help:"Switch it on, if its card is set to wake on LAN."`
	Delete   deviceDelete   `cmd:"" help:"Delete one that is off, with what it has written."`
	Leases   deviceLeases   `cmd:"" help:"List the addresses that machines have."`
	Unknown  deviceUnknown  `cmd:"" help:"List machines that have asked for something to boot and are not known."`
}

// mode reads volatile, persistent or until=DATE.
func mode(text string) (m room.Mode, until time.Time, err error) {
	date, is := strings.CutPrefix(text, string(room.Until)+"=")
	if !is {
		return room.Mode(text), until, nil
	}
	if until, err = time.ParseInLocation(time.DateOnly, date, time.Local); err != nil {
		return "", until, fmt.Errorf("--mode %s: want until=YYYY-MM-DD", text)
	}
	return room.Until, until, nil
}

type deviceAdd struct {
	Server
	MAC   string `arg:"" help:"As aa:bb:cc:dd:ee:ff."`
	Name  string `required:"" placeholder:"NAME"`
	Group string `required:"" placeholder:"GROUP"`
	Mode  string `default:"volatile" help:"volatile: what it writes is gone when it boots again; persistent: it stays; until=YYYY-MM-DD: it stays until then."`
	Limit Rate   `help:"The most that it reads, and that it writes, where serve has --shape." placeholder:"RATE"`
	Space Bytes  `help:"The most that what it writes may take of the pool, after compression; on btrfs and ZFS." placeholder:"SIZE"`
}

func (c *deviceAdd) Run(ctx context.Context, out io.Writer) error {
	m, until, err := mode(c.Mode)
	if err != nil {
		return err
	}
	return c.send(ctx, out, "POST", "devices", api.NewDevice{
		Name:  c.Name,
		MAC:   c.MAC,
		Group: c.Group,
		Mode:  m,
		Until: until,
		Limit: int64(c.Limit),
		Space: int64(c.Space),
	})
}

type deviceUnit struct {
	URL  string `arg:"" help:"Where devices reach ducks serve, as http://10.77.0.1:8092; it has the same at /boot/v1/unit."`
	JSON bool   `name:"json" help:"Print it as a text of JSON."`
}

func (c *deviceUnit) Run(out io.Writer) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.ContainsAny(c.URL, "'\"\\ $%") {
		return fmt.Errorf("%q is not where devices reach ducks: want http://ADDRESS:PORT", c.URL)
	}
	text := boot.Unit("http://" + u.Host)
	if c.JSON {
		return json.NewEncoder(out).Encode(map[string]string{"unit": text})
	}
	_, err = io.WriteString(out, text)
	return err
}

type deviceList struct{ Server }

func (c *deviceList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "devices",
		"DEVICE\tMAC\tGROUP\tMODE\tPIN\tBEGAN WITH\tDISK\tLAST BOOT",
		func(w io.Writer, d *api.Device) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.MAC, d.Group, modeText(d),
				orDash(d.Pin), orDash(d.Version), diskText(d.On), bootText(d))
		})
}

func modeText(d *api.Device) string {
	if d.Mode == room.Until {
		return "until " + d.Until.Local().Format(time.DateOnly)
	}
	return string(d.Mode)
}

func diskText(on bool) string {
	if on {
		return "in use"
	}
	return "-"
}

// bootText says how far a device came when it booted last, as ducks has seen it.
func bootText(d *api.Device) string {
	if d.Stage == "" {
		return "-"
	}
	text := d.Stage + " " + d.StageAt.UTC().Format(time.DateTime)
	if d.Lacks != "" {
		text += ", lacks " + d.Lacks
	}
	return text
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint("version ", n)
}

type deviceShow struct{ named }

func (c *deviceShow) Run(ctx context.Context, out io.Writer) error {
	var d api.Device
	if done, err := c.do(ctx, out, "GET", object("devices", c.Name, ""), nil, &d); done || err != nil {
		return err
	}
	return showDevice(out, &d)
}

func showDevice(out io.Writer, d *api.Device) error {
	secret := d.Secret
	if secret == "" {
		secret = "(for an admin only)"
	}
	_, err := fmt.Fprintf(out,
		"name         %s\nmac          %s\ngroup        %s\nmode         %s\nlimit        "+
			"%s\nspace        %s\niqn          %s\nportal       %s\ninitiator    %s\nchap_user    "+
			"%s\nchap_secret  %s\n",
		d.Name, d.MAC, d.Group, modeText(d), rateText(d.Limit), spaceText(d.Space), d.IQN, d.Portal,
		d.Initiator, d.User, secret)
	return err
}

type deviceAttach struct{ named }

func (c *deviceAttach) Run(ctx context.Context, out io.Writer) error {
	var d api.Device
	if done, err := c.do(ctx, out, "POST", object("devices", c.Name, "attach"), nil, &d); done ||
		err != nil {
		return err
	}
	return showDevice(out, &d)
}

type deviceDetach struct {
	named
	Force bool `help:"Also while somebody is logged in, whose session is closed."`
}

func (c *deviceDetach) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", object("devices", c.Name, "detach"), api.Detach{Force: c.Force})
}

// Most is a limit in bytes, as 20G, or 0 for none.
type Most Bytes

// UnmarshalText reads it.
func (m *Most) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*m = 0
		return nil
	}
	return (*Bytes)(m).UnmarshalText(text)
}

// spaceText returns a limit of space, and "-" for none.
func spaceText(n int64) string {
	if n == 0 {
		return "-"
	}
	return bytesText(n)
}

type deviceBoots struct{ named }

func (c *deviceBoots) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, object("devices", c.Name, "boots"), "BEGAN\tSTAGES, SECONDS",
		func(w io.Writer, of *api.Course) {
			stages := make([]string, len(of.Stages))
			for i, s := range of.Stages {
				stages[i] = fmt.Sprintf("%s %.1f", s.Stage, s.After)
			}
			fmt.Fprintf(w, "%s\t%s\n", of.Begun.UTC().Format(time.DateTime), strings.Join(stages, ", "))
		})
}

type deviceChange struct {
	named
	Group string `placeholder:"GROUP"`
	Mode  string `placeholder:"MODE" help:"volatile, persistent or until=YYYY-MM-DD."`
	Limit *Rate  `placeholder:"RATE" help:"The most that it reads, and that it writes, as 200mbit, at once; 0: no limit."`
	Space *Most  `placeholder:"SIZE" help:"The most that what it writes may take of the pool, as 20G, at once; 0: no limit."`
}

func (c *deviceChange) Run(ctx context.Context, out io.Writer) error {
	change := api.DeviceChange{}
	if c.Group != "" {
		change.Group = &c.Group
	}
	if c.Mode != "" {
		m, until, err := mode(c.Mode)
		if err != nil {
			return err
		}
		change.Mode, change.Until = &m, until
	}
	if c.Limit != nil {
		change.Limit = (*int64)(c.Limit)
	}
	if c.Space != nil {
		change.Space = (*int64)(c.Space)
	}
	if change == (api.DeviceChange{}) {
		return errors.New("nothing is to change: give --group, --mode, --limit or --space")
	}
	return c.send(ctx, out, "PATCH", object("devices", c.Name, ""), change)
}

type devicePin struct {
	named
	To int `required:"" placeholder:"VERSION" help:"Of its group; 0: that of the group again."`
}

func (c *devicePin) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "PATCH", object("devices", c.Name, ""), api.DeviceChange{Pin: &c.To})
}

type deviceRollback struct {
	named
	To  *int `placeholder:"VERSION" help:"Of its group, and pinned to it; 0: that of the group, and pinned to none. Without it, what it gets now."`
	Not bool `help:"Take that back, before it boots."`
}

func (c *deviceRollback) Run(ctx context.Context, out io.Writer) error {
	if c.Not && c.To != nil {
		return errors.New("--not takes a roll-back back: it goes without --to")
	}
	afresh := !c.Not
	return c.send(ctx, out, "PATCH", object("devices", c.Name, ""),
		api.DeviceChange{Pin: c.To, Afresh: &afresh})
}

type deviceLeases struct{ Server }

func (c *deviceLeases) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "leases", "MAC\tADDRESS\tUNTIL",
		func(w io.Writer, of *dhcp.Lease) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", of.MAC, of.Address, of.Until.UTC().Format(time.DateTime))
		})
}

type deviceWake struct{ named }

func (c *deviceWake) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", object("devices", c.Name, "wake"), nil)
}

type deviceUnknown struct{ Server }

func (c *deviceUnknown) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "unknown", "MAC\tADDRESS\tFIRST SEEN\tLAST SEEN",
		func(w io.Writer, u *room.Unknown) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.MAC, u.Address, u.First.UTC().Format(time.DateTime),
				u.Last.UTC().Format(time.DateTime))
		})
}
