package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"dalmatiner/ducks/internal/pool"
)

type poolCreate struct {
	Pool    string   `arg:"" help:"btrfs:DIR, zfs:DATASET, or reflink:DIR for xfs."`
	Devices []string `arg:"" help:"The disks, as /dev/sdb. Two and more are mirrors. Those that have something are refused."`
	JSON    bool     `name:"json" help:"Print the outcome as JSON."`
}

func (c *poolCreate) Run(ctx context.Context, out io.Writer) error {
	tell := out
	if c.JSON {
		tell = io.Discard
	}
	fstab, err := pool.Make(ctx, c.Pool, c.Devices, tell)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(out).Encode(map[string]string{"pool": c.Pool, "fstab": fstab})
	}
	if fstab != "" {
		if _, err := fmt.Fprintf(out,
			"It is mounted. For the next start of the machine, add to /etc/fstab:\n%s\n",
			fstab); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "ducks serve --pool %s uses it.\n", c.Pool)
	return err
}
