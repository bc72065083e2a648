package command

import (
	"context"
	"fmt"
	"io"
)

type volumeDelete struct{ named }

func (c *volumeDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("volumes", c.Name, ""))
}

type groupDelete struct {
	named
	Version int `help:"Only this version of it." placeholder:"VERSION"`
}

func (c *groupDelete) Run(ctx context.Context, out io.Writer) error {
	if c.Version > 0 {
		return c.delete(ctx, out, object("groups", c.Name, fmt.Sprint("versions/", c.Version)))
	}
	return c.delete(ctx, out, object("groups", c.Name, ""))
}

type deviceDelete struct{ named }

func (c *deviceDelete) Run(ctx context.Context, out io.Writer) error {
	return c.delete(ctx, out, object("devices", c.Name, ""))
}

func (s *Server) delete(ctx context.Context, out io.Writer, path string) error {
	return s.send(ctx, out, "DELETE", path, nil)
}

type poolOrphans struct {
	Server
	Delete string `help:"Delete this one, for good." placeholder:"IMAGE"`
}

func (c *poolOrphans) Run(ctx context.Context, out io.Writer) error {
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
