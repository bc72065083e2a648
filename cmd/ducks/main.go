// Command ducks runs rooms of machines without disks, which boot clones of golden images over iSCSI.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"dalmatiner/internal/config"
	"dalmatiner/internal/ducks/command"
)

const description = `Run rooms of machines without disks.

Each machine boots a clone of an image over iSCSI. The image is updated once, from any machine; the others have the new version when they boot next.`

type grammar struct {
	command.Grammar

	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	var g grammar
	parsed := kong.Parse(&g, kong.Name("ducks"), kong.Description(description), kong.Vars{"version": config.BuildVersion()},
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	parsed.BindTo(context.Background(), (*context.Context)(nil))
	parsed.BindTo(os.Stdout, (*io.Writer)(nil))
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "ducks:", err)
		os.Exit(1)
	}
}
