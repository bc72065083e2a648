package main

import (
	"fmt"
	"io"
	"strings"

	"dalmatiner/internal/admin"
	"dalmatiner/internal/config"
)

type configCommands struct {
	Show showCommand `cmd:"" help:"Print every key with its effective value, where it comes from and what it does."`
}

type showCommand struct {
	settings     `embed:""`
	admin.Output `embed:""`
}

// Help is shown below the usage of the command.
func (c *showCommand) Help() string {
	return `Without --json the output is a valid configuration file.

Examples:
  ddb config show
  ddb config show --config /etc/ddb.conf
  ddb config show --json`
}

// Run prints the effective configuration as a file, or as JSON.
func (c *showCommand) Run(env *admin.Env, p *process) error {
	cfg, warnings, err := c.load()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(p.errOut, "warning: %s\n", w)
	}
	entries := cfg.Entries()
	return c.Write(env, entries, func(w io.Writer) error {
		_, err := io.WriteString(w, asFile(entries))
		return err
	})
}

// asFile returns keys as a configuration file.
func asFile(entries []config.Entry) string {
	var b strings.Builder
	for _, e := range entries {
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
	return b.String()
}
