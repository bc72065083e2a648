package command

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/room"
)

type diskCommands struct {
	Create diskCreate `cmd:"" help:"Make an empty one."`
	List   diskList   `cmd:"" help:"List all."`
	Attach diskAttach `cmd:"" help:"Give one to a device, which has it from its next boot on."`
	Detach diskDetach `cmd:"" help:"Take one from its device, which is off."`
	Delete diskDelete `cmd:"" help:"Delete one that no device has, with all that is on it."`
}

type diskCreate struct {
	Server
	Name    string `arg:"" help:"Of the disk: a-z, 0-9 and '-'."`
	Size    Bytes  `required:"" help:"As 40G. Space is taken when it is written to." placeholder:"SIZE"`
	Network string `help:"That owns it; without it, the only one that the token is limited to, or default." placeholder:"NETWORK"`
}

func (c *diskCreate) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", "disks", api.NewVolume{
		Name:    c.Name,
		Network: c.Network,
		Size:    int64(c.Size),
	})
}

type diskList struct{ Server }

func (c *diskList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "disks", "DISK\tSIZE\tDEVICE", func(w io.Writer, d *room.Disk) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, bytesText(d.Size), cmp.Or(d.Device, "-"))
	})
}

type diskAttach struct {
	named
	To string `required:"" placeholder:"DEVICE"`
}

func (c *diskAttach) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "PUT", object("disks", c.Name, "device"), api.Owner{Device: c.To})
}

type diskDetach struct{ named }

func (c *diskDetach) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "PUT", object("disks", c.Name, "device"), api.Owner{})
}

type diskDelete struct{ named }

func (c *diskDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("disks", c.Name, ""))
}
