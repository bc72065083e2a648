package command

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"dalmatiner/ducks/internal/contents"
)

type groupFiles struct{ files }

func (c *groupFiles) Run(ctx context.Context, out io.Writer) error {
	return c.show(ctx, out, "groups")
}

type volumeFiles struct{ files }

func (c *volumeFiles) Run(ctx context.Context, out io.Writer) error {
	return c.show(ctx, out, "volumes")
}

// files is what both have in common.
type files struct {
	named
	Version int `placeholder:"VERSION" help:"Without it, the newest."`
}

// signs say what became of a file.
var signs = map[string]string{contents.Added: "+", contents.Removed: "-", contents.Changed: "~"}

func (c *files) show(ctx context.Context, out io.Writer, kind string) error {
	var got contents.Changes
	if done, err := c.do(ctx, out, "GET",
		object(kind, c.Name, fmt.Sprintf("versions/%d/files", c.Version)), nil, &got); done ||
		err != nil {
		return err
	}
	if err := table(out, "PARTITION\tFILE SYSTEM\tFILES", func(w io.Writer) {
		for _, p := range got.Partitions {
			if p.Error != "" {
				fmt.Fprintf(w, "%d\t%s\tnot compared: %q\n", p.Number, cmp.Or(p.Kind, "-"), p.Error)
				continue
			}
			fmt.Fprintf(w, "%d\t%s\t%d\n", p.Number, p.Kind, p.Files)
		}
	}); err != nil {
		return err
	}
	for _, f := range got.Files {
		// Who wrote the names may have meant harm: a terminal does what some letters say.
		if _, err := fmt.Fprintf(out, "%s %d %q %s to %s\n", signs[f.What], f.Partition, f.Path,
			bytesText(f.Before), bytesText(f.After)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d added, %d removed, %d changed; %d of them shown\n", got.Added,
		got.Removed, got.Changed, len(got.Files))
	return err
}
