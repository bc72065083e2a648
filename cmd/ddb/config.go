package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/host/config"
)

type configCommands struct {
	Show showCommand `cmd:"" help:"Print the effective configuration: what was set, or with --all every key."`
}

type showCommand struct {
	settings     `embed:""`
	All          bool `help:"Also the keys that have their defaults."`
	admin.Output `embed:""`
}

// Help is shown below the usage of the command.
func (c *showCommand) Help() string {
	return `Each key comes with its effective value, what it does, where the value
comes from, and the default. Without --json the output is a valid
configuration file.

Examples:
  ddb config show --all
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
	defaults := 0
	if !c.All {
		every := len(entries)
		entries = slices.DeleteFunc(entries, func(e config.Entry) bool { return e.Origin == "default" })
		defaults = every - len(entries)
	}
	return c.Write(env, entries, func(w io.Writer) error {
		text := asFile(entries)
		if defaults > 0 {
			text += fmt.Sprintf("# %d keys have their defaults: --all prints them\n", defaults)
		}
		_, err := io.WriteString(w, text)
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
		if e.Secret && e.Value != e.Default {
			fmt.Fprintf(&b, "# %s is set and not shown  # %s\n", e.Key, origin)
			continue
		}
		fmt.Fprintf(&b, "%s = %s  # %s\n", e.Key, e.Value, origin)
	}
	return b.String()
}
