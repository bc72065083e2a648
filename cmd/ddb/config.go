package main

import (
	"fmt"
	"strings"

	"dalmatiner/internal/admin"
)

type configCommands struct {
	Show showCommand `cmd:"" help:"Print every key with its effective value, where it comes from and what it does."`
}

type showCommand struct {
	settings `embed:""`
}

// Help is shown below the usage of the command.
func (c *showCommand) Help() string {
	return `The output is a valid configuration file.

Examples:
  ddb config show
  ddb config show --config /etc/ddb.conf`
}

// Run prints the effective configuration as a file.
func (c *showCommand) Run(env *admin.Env, p *process) error {
	cfg, warnings, err := c.load()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(p.errOut, "warning: %s\n", w)
	}
	var b strings.Builder
	for _, e := range cfg.Entries() {
		fmt.Fprintf(&b, "# %s\n", e.Help)
		origin := "the default"
		if e.Origin != "default" {
			origin = fmt.Sprintf("from %s, the default is %s", e.Origin, e.Default)
		}
		if !e.Effect {
			origin += ", without effect"
		}
		fmt.Fprintf(&b, "%s = %s  # %s\n", e.Key, e.Value, origin)
	}
	_, err = fmt.Fprint(env.Out, b.String())
	return err
}
