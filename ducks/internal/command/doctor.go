package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"dalmatiner/ducks/internal/doctor"
)

type doctorCommand struct {
	Pool      string `help:"The pool that ducks serve is to have." placeholder:"POOL"`
	DHCP      string `name:"dhcp" help:"The interface of the room." placeholder:"INTERFACE"`
	BootFiles string `name:"boot-files" default:"/usr/lib/ipxe" help:"The directory of undionly.kpxe and ipxe.efi." placeholder:"DIR"`
	JSON      bool   `name:"json" help:"Print JSON."`
}

func (c *doctorCommand) Run(ctx context.Context, out io.Writer) error {
	list := doctor.Look(ctx, doctor.Options{Pool: c.Pool, Interface: c.DHCP, BootFiles: c.BootFiles})
	if c.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(list); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			fmt.Fprintf(out, "%-8s %s: %s\n", f.Verdict, f.What, f.Text)
			if f.Remedy != "" {
				fmt.Fprintf(out, "         %s\n", f.Remedy)
			}
		}
	}
	for _, f := range list {
		if f.Verdict == doctor.Bad {
			return errors.New("ducks does not run here yet")
		}
	}
	return nil
}
