// Command ddb-admin operates a running node: the commands of ddb admin under
// the name they had in the original.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/host/config"
)

const description = `Operate a running Dalmatiner node over its HTTP address.

The same commands as "ddb admin", and some of the original's names.`

type grammar struct {
	admin.Commands `embed:""`
	admin.Original `embed:""`

	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	os.Exit(admin.Execute(context.Background(), "ddb-admin", description, config.BuildVersion(),
		&grammar{}, os.Args[1:], os.Stdout, os.Stderr))
}
