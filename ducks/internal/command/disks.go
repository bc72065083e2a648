package command

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/room"
)

// Disk are the commands of further disks.
type Disk struct {
	Create DiskCreate `cmd:"" help:"Make an empty one."`
	List   DiskList   `cmd:"" help:"List all."`
	Attach DiskAttach `cmd:"" help:"Give one to a device, which has it from its next boot on."`
	Detach DiskDetach `cmd:"" help:"Take one from its device, which is off."`
	Delete DiskDelete `cmd:"" help:"Delete one that no device has, with all that is on it."`
}

// DiskCreate is a command.
type DiskCreate struct {
	Server
	Name    string `arg:"" help:"Of the disk: a-z, 0-9 and '-'."`
	Size    Bytes  `required:"" help:"As 40G. Space is taken when it is written to." placeholder:"SIZE"`
	Network string `help:"That owns it; without it, the only one that the token is limited to, or default." placeholder:"NETWORK"`
}

// Run runs it.
func (c *DiskCreate) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", "disks", api.NewVolume{
		Name:    c.Name,
		Network: c.Network,
		Size:    int64(c.Size),
	}, nil)
	return err
}

// DiskList is a command.
type DiskList struct{ Server }

// Run runs it.
func (c *DiskList) Run(ctx context.Context, out io.Writer) error {
	var list []room.Disk
	if done, err := c.do(ctx, out, "GET", "disks", nil, &list); done || err != nil {
		return err
	}
	return table(out, "DISK\tSIZE\tDEVICE", func(w io.Writer) {
		for _, d := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, bytesText(d.Size), cmp.Or(d.Device, "-"))
		}
	})
}

// DiskAttach is a command.
type DiskAttach struct {
	Server
	Name string `arg:""`
	To   string `required:"" placeholder:"DEVICE"`
}

// Run runs it.
func (c *DiskAttach) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "PUT", object("disks", c.Name, "device"), api.Owner{Device: c.To}, nil)
	return err
}

// DiskDetach is a command.
type DiskDetach struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *DiskDetach) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "PUT", object("disks", c.Name, "device"), api.Owner{}, nil)
	return err
}

// DiskDelete is a command.
type DiskDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *DiskDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("disks", c.Name, ""))
}
