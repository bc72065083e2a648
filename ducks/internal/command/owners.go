package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/room"
)

type clientCommands struct {
	Create clientCreate `cmd:"" help:"Make one, which owns networks."`
	List   clientList   `cmd:"" help:"List all, with what they have and may have."`
	Limit  clientLimit  `cmd:"" help:"Limit what its networks have together."`
	Delete clientDelete `cmd:"" help:"Delete one without networks."`
}

type networkCommands struct {
	Create networkCreate `cmd:"" help:"Make one, which owns volumes, groups, devices, disks and menus."`
	List   networkList   `cmd:"" help:"List all, with what they have and may have."`
	Limit  networkLimit  `cmd:"" help:"Limit what it has."`
	Delete networkDelete `cmd:"" help:"Delete one that has nothing."`
}

type serverCommands struct {
	List serverList `cmd:"" help:"List all, with their disks, and what they carry."`
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

type clientCreate struct {
	Server
	Name string `arg:"" help:"Of the client: a-z, 0-9 and '-'."`
	Limits
	Networks int64 `placeholder:"N" help:"The most networks."`
}

func (c *clientCreate) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", "clients",
		api.NewClient{Name: c.Name, Limits: c.on(room.Counts{Networks: c.Networks})})
}

type clientList struct{ Server }

func (c *clientList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "clients",
		"CLIENT\tNETWORKS\tVOLUMES\tGROUPS\tDEVICES\tDISKS\tMENUS\tSPACE",
		func(w io.Writer, of *api.ShownClient) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", of.Name, ofMost(of.Has.Networks, of.Limits.Networks),
				countsText(of.Has, of.Limits))
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

type clientLimit struct {
	named
	Limits
	Networks *int64 `placeholder:"N" help:"The most networks."`
}

func (c *clientLimit) Run(ctx context.Context, out io.Writer) error {
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
	return c.send(ctx, out, "PUT", object("clients", c.Name, "limits"), limits)
}

type clientDelete struct{ named }

func (c *clientDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("clients", c.Name, ""))
}

type networkCreate struct {
	Server
	Name   string `arg:"" help:"Of the network: a-z, 0-9 and '-'."`
	Client string `help:"That owns it; without it, the client default." placeholder:"CLIENT"`
	Limits
}

func (c *networkCreate) Run(ctx context.Context, out io.Writer) error {
	return c.send(ctx, out, "POST", "networks", api.NewNetwork{
		Name:   c.Name,
		Client: c.Client,
		Limits: c.on(room.Counts{}),
	})
}

type networkList struct{ Server }

func (c *networkList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "networks",
		"NETWORK\tCLIENT\tVOLUMES\tGROUPS\tDEVICES\tDISKS\tMENUS\tSPACE",
		func(w io.Writer, of *api.ShownNetwork) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", of.Name, of.Client, countsText(of.Has, of.Limits))
		})
}

type networkLimit struct {
	named
	Limits
}

func (c *networkLimit) Run(ctx context.Context, out io.Writer) error {
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
	return c.send(ctx, out, "PUT", object("networks", c.Name, "limits"), c.on(limits))
}

type networkDelete struct{ named }

func (c *networkDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("networks", c.Name, ""))
}

type serverList struct{ Server }

func (c *serverList) Run(ctx context.Context, out io.Writer) error {
	return listed(ctx, out, &c.Server, "servers",
		"SERVER\tROLE\tPORTAL\tPOOL\tFREE\tNETWORKS\tDEVICES\tON",
		func(w io.Writer, of *api.ShownServer) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s of %s\t%d\t%d\t%d\n", of.Name, of.Role, of.Portal, of.Pool,
				bytesText(of.Space.Free), bytesText(of.Space.Total), of.Networks, of.Devices, of.DevicesOn)
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
