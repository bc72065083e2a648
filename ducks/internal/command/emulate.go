package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"dalmatiner/ducks/internal/emulate"
)

type emulateCommand struct {
	Bridge string `required:"" help:"Where the machines are plugged in: the bridge that ducks serve --dhcp serves." placeholder:"BRIDGE"`
	Count  int    `default:"1" help:"How many machines boot at once."`
	First  string `name:"first-mac" default:"02:64:75:63:00:01" help:"The MAC address of the first one; those of the others follow it." placeholder:"MAC"`
	UEFI   bool   `help:"They are UEFI machines, else BIOS."`
	Write  Bytes  `help:"What each writes to its disk and reads back, as 64M." placeholder:"SIZE"`
	Mark   string `help:"A text that each writes into the first block; what was there is printed." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print JSON: times in seconds."`
	Crash  bool   `help:"Each loses its cable at the end, without a word; else it is shut down."`
}

// mostMachines is how many there may be: each is a thread and a network namespace.
const mostMachines = 1000

func (c *emulateCommand) Run(ctx context.Context, out io.Writer) error {
	first, err := net.ParseMAC(c.First)
	switch {
	case err != nil || len(first) != 6:
		return fmt.Errorf("--first-mac %s is no MAC address: want aa:bb:cc:dd:ee:ff", c.First)
	case c.Count < 1 || c.Count > mostMachines:
		return fmt.Errorf("--count %d: it is from 1 to %d", c.Count, mostMachines)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fleet := emulate.Fleet{
		Bridge: c.Bridge,
		MACs:   emulate.MACs(first, c.Count),
		UEFI:   c.UEFI,
		Bytes:  int64(c.Write),
		Mark:   c.Mark,
		Crash:  c.Crash,
	}
	list := fleet.Run(ctx)
	if c.JSON {
		if err := outcomes(out, list); err != nil {
			return err
		}
	} else if err := c.show(out, list); err != nil {
		return err
	}
	if failed := slices.DeleteFunc(slices.Clone(list), func(o emulate.Outcome) bool {
		return o.Err == nil
	}); len(failed) > 0 {
		return errors.New(fmt.Sprint(len(failed), " of ", len(list), " machines did not boot and work"))
	}
	return nil
}

// show prints what became of machines.
func (c *emulateCommand) show(out io.Writer, list []emulate.Outcome) error {
	return table(out, "MAC\tADDRESS\tDHCP\tLOADER\tSCRIPT\tLOGIN\tREAD\tWHOLE\tWORK\tMARK",
		func(w io.Writer) {
			for _, o := range list {
				if o.Err != nil {
					fmt.Fprintf(w, "%s\t%s\t%v\n", o.MAC, o.Address, o.Err)
					continue
				}
				fmt.Fprintf(w, "%s\t%s", o.MAC, o.Address)
				for _, d := range []time.Duration{o.Times.Address, o.Times.Load, o.Times.Script, o.Times.Login,
					o.Times.Read, o.Times.Whole(), o.Wrote} {
					fmt.Fprintf(w, "\t%s", d.Round(100*time.Microsecond))
				}
				fmt.Fprintf(w, "\t%q\n", o.Mark)
			}
		})
}

// outcomes prints the same as JSON.
func outcomes(out io.Writer, list []emulate.Outcome) error {
	type outcome struct {
		MAC     string             `json:"mac"`
		Address string             `json:"address"`
		Error   string             `json:"error,omitempty"`
		Seconds map[string]float64 `json:"seconds,omitempty"` // of each stage
		Mark    string             `json:"mark,omitempty"`    // what was there before
	}
	shown := make([]outcome, len(list))
	for i, o := range list {
		shown[i] = outcome{MAC: o.MAC, Address: o.Address}
		if o.Err != nil {
			shown[i].Error = o.Err.Error()
			continue
		}
		shown[i].Mark = o.Mark
		shown[i].Seconds = map[string]float64{"dhcp": o.Times.Address.Seconds(),
			"loader": o.Times.Load.Seconds(), "script": o.Times.Script.Seconds(),
			"login": o.Times.Login.Seconds(), "read": o.Times.Read.Seconds(),
			"whole": o.Times.Whole().Seconds(), "work": o.Wrote.Seconds()}
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(shown)
}
