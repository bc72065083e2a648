package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dalmatiner/access"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
)

// Server is a storage server.
type Server struct {
	Name   string    `json:"name"`
	Role   string    `json:"role"` // master: its images are those that are written to
	Portal string    `json:"portal"`
	Pool   string    `json:"pool"`
	Since  time.Time `json:"since"` // it runs
}

// ShownServer is a server, and how it is.
type ShownServer struct {
	Server
	Space     pool.Space `json:"space"`
	Networks  int        `json:"networks"`
	Devices   int        `json:"devices"`
	DevicesOn int        `json:"devices_on"`
}

// ShownClient is a client, and what it has.
type ShownClient struct {
	room.Client
	Has room.Counts `json:"has"`
}

// ShownNetwork is a network, and what it has.
type ShownNetwork struct {
	room.Network
	Has room.Counts `json:"has"`
}

// NewClient makes a client.
type NewClient struct {
	Name   string      `json:"name"`
	Limits room.Counts `json:"limits,omitzero"`
}

// NewNetwork makes a network.
type NewNetwork struct {
	Name   string      `json:"name"`
	Client string      `json:"client,omitempty"` // the default if empty
	Limits room.Counts `json:"limits,omitzero"`
}

// Limited says to what a token or user is limited; without any of it, to nothing.
type Limited struct {
	Clients  []string `json:"clients,omitempty"`
	Networks []string `json:"networks,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

func owners() []route {
	return []route{
		asks("GET /api/v1/servers", "All storage servers.", access.Viewer, listServers),
		within(theirs, asks("GET /api/v1/clients", "All clients, with what they have.", access.Viewer,
			listClients)),
		acts("POST /api/v1/clients", "Make a client.", access.Admin, "create client",
			func(c *call, n NewClient) (none, error) {
				c.object = n.Name
				return none{}, c.Room.Networks().CreateClient(room.Client(n))
			}),
		acts("PUT /api/v1/clients/{name}/limits", "Limit what the networks of a client have together.",
			access.Admin, "limit client", func(c *call, to room.Counts) (none, error) {
				return none{}, c.Room.Networks().LimitClient(c.object, to)
			}),
		removes("DELETE /api/v1/clients/{name}", "Delete a client without networks.", access.Admin,
			"delete client", func(c *call) error {
				if err := c.free(ofClient + c.object); err != nil {
					return err
				}
				return c.Room.Networks().RemoveClient(c.object)
			}),
		within(theirs, asks("GET /api/v1/networks", "All networks, with what they have.", access.Viewer,
			listNetworks)),
		within(theirs, acts("POST /api/v1/networks", "Make a network of a client.", access.Admin,
			"create network", createNetwork)),
		within(theOwner, acts("PUT /api/v1/networks/{name}/limits", "Limit what a network has.",
			access.Admin, "limit network", func(c *call, to room.Counts) (none, error) {
				return none{}, c.Room.Networks().Limit(c.object, to)
			})),
		within(theOwner, removes("DELETE /api/v1/networks/{name}", "Delete a network that has nothing.",
			access.Admin, "delete network", func(c *call) error {
				if err := c.free(ofNetwork + c.object); err != nil {
					return err
				}
				return c.Room.Networks().Remove(c.object)
			})),
	}
}

func listServers(c *call) ([]ShownServer, error) {
	s := ShownServer{Server: c.Server}
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	now, err := c.live()
	if err != nil {
		return nil, err
	}
	for _, has := range t.Has {
		s.Devices += int(has.Devices)
	}
	s.Networks, s.DevicesOn = len(t.Networks), len(now.of)
	s.Space, err = c.Pool.Space(c.Context())
	return []ShownServer{s}, err
}

func listClients(c *call) ([]ShownClient, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	list := []ShownClient{}
	for _, of := range slices.SortedFunc(maps.Values(t.Clients), func(a, b room.Client) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		if c.who.Reaches(ofClient + of.Name) {
			list = append(list, ShownClient{of, t.OfClient(of.Name)})
		}
	}
	return list, nil
}

func listNetworks(c *call) ([]ShownNetwork, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	list := []ShownNetwork{}
	for _, of := range slices.SortedFunc(maps.Values(t.Networks), func(a, b room.Network) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		if c.who.Reaches(scopes(t.Place(room.ANetwork, of.Name))...) {
			list = append(list, ShownNetwork{of, t.Has[of.Name]})
		}
	}
	return list, nil
}

func createNetwork(c *call, n NewNetwork) (none, error) {
	c.object = n.Name
	if n.Client == "" {
		n.Client = room.Default
	}
	c.within = []string{ofClient + n.Client}
	if err := c.who.May(access.Admin, c.within...); err != nil {
		return none{}, fmt.Errorf("client %s: %w", n.Client, err)
	}
	return none{}, c.Room.Networks().Create(room.Network(n))
}
