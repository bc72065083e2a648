package command

import (
	"context"
	"fmt"
	"io"
)

// VolumeDelete is a command.
type VolumeDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *VolumeDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("volumes", c.Name, ""))
}

// GroupDelete is a command.
type GroupDelete struct {
	Server
	Name    string `arg:""`
	Version int    `help:"Only this version of it." placeholder:"VERSION"`
}

// Run runs it.
func (c *GroupDelete) Run(ctx context.Context, out io.Writer) error {
	if c.Version > 0 {
		return c.delete(ctx, out, object("groups", c.Name, fmt.Sprint("versions/", c.Version)))
	}
	return c.delete(ctx, out, object("groups", c.Name, ""))
}

// DeviceDelete is a command.
type DeviceDelete struct {
	Server
	Name string `arg:""`
}

// Run runs it.
func (c *DeviceDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("devices", c.Name, ""))
}

func (s *Server) delete(ctx context.Context, out io.Writer, path string) error {
	_, err := s.do(ctx, out, "DELETE", path, nil, nil)
	return err
}

// PoolOrphans is a command.
type PoolOrphans struct {
	Server
	Delete string `help:"Delete this one, for good." placeholder:"IMAGE"`
}

// Run runs it.
func (c *PoolOrphans) Run(ctx context.Context, out io.Writer) error {
	if c.Delete != "" {
		return c.delete(ctx, out, object("orphans", c.Delete, ""))
	}
	var list []string
	if done, err := c.do(ctx, out, "GET", "orphans", nil, &list); done || err != nil {
		return err
	}
	for _, image := range list {
		if _, err := fmt.Fprintln(out, image); err != nil {
			return err
		}
	}
	return nil
}
