package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/room"
)

// Client are the commands of clients.
type Client struct {
	Create ClientCreate `cmd:"" help:"Make one, which owns networks."`
	List   ClientList   `cmd:"" help:"List all, with what they have and may have."`
	Limit  ClientLimit  `cmd:"" help:"Limit what its networks have together."`
	Delete ClientDelete `cmd:"" help:"Delete one without networks."`
}

// Network are the commands of networks.
type Network struct {
	Create NetworkCreate `cmd:"" help:"Make one, which owns volumes, groups, devices, disks and menus."`
	List   NetworkList   `cmd:"" help:"List all, with what they have and may have."`
	Limit  NetworkLimit  `cmd:"" help:"Limit what it has."`
	Delete NetworkDelete `cmd:"" help:"Delete one that has nothing."`
}

// Servers are the commands of storage servers.
type Servers struct {
	List ServersList `cmd:"" help:"List all, with their disks, and what they carry."`
}

// Limits are how much there may be of each; what is not given stays.
type Limits struct {
	Volumes *int64 `placeholder:"N" help:"The most volumes; 0: no limit. So for each that follows."`
	Groups  *int64 `placeholder:"N" help:"The most groups."`
	Devices *int64 `placeholder:"N" help:"The most devices."`
	Disks   *int64 `placeholder:"N" help:"The most further disks."`
	Menus   *int64 `placeholder:"N" help:"The most menus."`
	Space   *Most  `placeholder:"SIZE" help:"The most that is given away, as 2T: the sizes of volumes and further disks, and of each device that of its volume, or its --space."`
}

// on returns some limits with those that are given in their place.
func (l *Limits) on(c room.Counts) room.Counts {
	for of, to := range map[*int64]*int64{&c.Volumes: l.Volumes, &c.Groups: l.Groups,
		&c.Devices: l.Devices, &c.Disks: l.Disks, &c.Menus: l.Menus, &c.Space: (*int64)(l.Space)} {
		if to != nil {
			*of = *to
		}
	}
	return c
}

// ClientCreate is a command.
type ClientCreate struct {
	Server
	Name string `arg:"" help:"Of the client: a-z, 0-9 and '-'."`
	Limits
	Networks int64 `placeholder:"N" help:"The most networks."`
}

// Run runs it.
func (c *ClientCreate) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", "clients",
		api.NewClient{Name: c.Name, Limits: c.on(room.Counts{Networks: c.Networks})}, nil)
	return err
}

// ClientList is a command.
type ClientList struct{ Server }

// Run runs it.
func (c *ClientList) Run(ctx context.Context, out io.Writer) error {
	var list []api.ShownClient
	if done, err := c.do(ctx, out, "GET", "clients", nil, &list); done || err != nil {
		return err
	}
	return table(out, "CLIENT\tNETWORKS\tVOLUMES\tGROUPS\tDEVICES\tDISKS\tMENUS\tSPACE",
		func(w io.Writer) {
			for _, of := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", of.Name, ofMost(of.Has.Networks, of.Limits.Networks),
					countsText(of.Has, of.Limits))
			}
		})
}

// ofMost returns a number, and how large it may be.
func ofMost(n, most int64) string {
	if most == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %d", n, most)
}

// countsText returns the columns of what there is, but for networks.
func countsText(has, most room.Counts) string {
	var columns []string
	for _, of := range [][2]int64{{has.Volumes, most.Volumes}, {has.Groups, most.Groups},
		{has.Devices, most.Devices}, {has.Disks, most.Disks}, {has.Menus, most.Menus}} {
		columns = append(columns, ofMost(of[0], of[1]))
	}
	space := bytesText(has.Space)
	if most.Space > 0 {
		space += " of " + bytesText(most.Space)
	}
	return strings.Join(append(columns, space), "\t")
}

// ClientLimit is a command.
type ClientLimit struct {
	Server
	Name string `arg:""`
	Limits
	Networks *int64 `placeholder:"N" help:"The most networks."`
}

// Run runs it.
func (c *ClientLimit) Run(ctx context.Context, out io.Writer) error {
	var list []api.ShownClient
	if err := c.ask(ctx, "clients", &list); err != nil {
		return err
	}
	var limits room.Counts
	for _, of := range list {
		if of.Name == c.Name {
			limits = of.Limits
		}
	}
	limits = c.on(limits)
	if c.Networks != nil {
		limits.Networks = *c.Networks
	}
	_, err := c.do(ctx, out, "PUT", object("clients", c.Name, "limits"), limits, nil)
	return err
}

// ClientDelete is a command.
type ClientDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *ClientDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("clients", c.Name, ""))
}

// NetworkCreate is a command.
type NetworkCreate struct {
	Server
	Name   string `arg:"" help:"Of the network: a-z, 0-9 and '-'."`
	Client string `help:"That owns it; without it, the client default." placeholder:"CLIENT"`
	Limits
}

// Run runs it.
func (c *NetworkCreate) Run(ctx context.Context, out io.Writer) error {
	_, err := c.do(ctx, out, "POST", "networks", api.NewNetwork{
		Name:   c.Name,
		Client: c.Client,
		Limits: c.on(room.Counts{}),
	}, nil)
	return err
}

// NetworkList is a command.
type NetworkList struct{ Server }

// Run runs it.
func (c *NetworkList) Run(ctx context.Context, out io.Writer) error {
	var list []api.ShownNetwork
	if done, err := c.do(ctx, out, "GET", "networks", nil, &list); done || err != nil {
		return err
	}
	return table(out, "NETWORK\tCLIENT\tVOLUMES\tGROUPS\tDEVICES\tDISKS\tMENUS\tSPACE",
		func(w io.Writer) {
			for _, of := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", of.Name, of.Client, countsText(of.Has, of.Limits))
			}
		})
}

// NetworkLimit is a command.
type NetworkLimit struct {
	Server
	Name string `arg:""`
	Limits
}

// Run runs it.
func (c *NetworkLimit) Run(ctx context.Context, out io.Writer) error {
	var list []api.ShownNetwork
	if err := c.ask(ctx, "networks", &list); err != nil {
		return err
	}
	var limits room.Counts
	for _, of := range list {
		if of.Name == c.Name {
			limits = of.Limits
		}
	}
	_, err := c.do(ctx, out, "PUT", object("networks", c.Name, "limits"), c.on(limits), nil)
	return err
}

// NetworkDelete is a command.
type NetworkDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *NetworkDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("networks", c.Name, ""))
}

// ServersList is a command.
type ServersList struct{ Server }

// Run runs it.
func (c *ServersList) Run(ctx context.Context, out io.Writer) error {
	var list []api.ShownServer
	if done, err := c.do(ctx, out, "GET", "servers", nil, &list); done || err != nil {
		return err
	}
	return table(out, "SERVER\tROLE\tPORTAL\tPOOL\tFREE\tNETWORKS\tDEVICES\tON", func(w io.Writer) {
		for _, of := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s of %s\t%d\t%d\t%d\n", of.Name, of.Role, of.Portal, of.Pool,
				bytesText(of.Space.Free), bytesText(of.Space.Total), of.Networks, of.Devices, of.DevicesOn)
		}
	})
}

// To says what somebody is limited to.
type To struct {
	Clients  []string `name:"client" help:"Only the networks of these clients; without any limit, all." placeholder:"CLIENT"`
	Networks []string `name:"network" help:"Only these networks." placeholder:"NETWORK"`
	Groups   []string `name:"group" help:"Only these groups and their devices." placeholder:"GROUP"`
}

// scopesText names what somebody is limited to.
func scopesText(scopes []string) string {
	if len(scopes) == 0 {
		return "all"
	}
	return strings.Join(scopes, ", ")
}
