// Command ducks runs rooms of machines without disks, which boot clones of golden images over iSCSI.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"dalmatiner/internal/config"
	"dalmatiner/internal/ducks/command"
	"dalmatiner/internal/ducks/contents"
)

const description = `Run rooms of machines without disks.

Each machine boots a clone of an image over iSCSI. The image is updated once, from any machine; the others have the new version when they boot next.

ducks --version prints the version of the program.`

func main() {
	contents.Main()
	// It is no flag of all commands: that of some is the version of an image.
	if slices.Equal(os.Args[1:], []string{"--version"}) {
		fmt.Println(config.BuildVersion())
		return
	}
	var g command.Grammar
	p := parser(&g)
	parsed, err := p.Parse(os.Args[1:])
	p.FatalIfErrorf(err)
	parsed.BindTo(context.Background(), (*context.Context)(nil))
	parsed.BindTo(os.Stdout, (*io.Writer)(nil))
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "ducks:", err)
		os.Exit(1)
	}
}

// parser returns what reads the arguments.
func parser(g *command.Grammar) *kong.Kong {
	return kong.Must(g, kong.Name("ducks"), kong.Description(description), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
}
