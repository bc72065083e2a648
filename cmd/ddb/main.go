// Command ddb is the metric store: the node, queries and administration in one
// binary.
package main

import (
	"os"
	_ "time/tzdata" // time zones on machines that have none

	"github.com/alecthomas/kong"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/demo"
	"dalmatiner/internal/node"
)

const description = `Dalmatiner, a metric store.

  ddb serve                                     run a node, data in ./data
  ddb query "SELECT *.mps BUCKET dalmatinerdb LAST 1m"
  ddb demo shop                                 the data of the examples in docs/dql.md
  ddb admin buckets create metrics 1s 1w false
  ddb admin account                             what became of every point`

type grammar struct {
	Serve   serveCommand         `cmd:"" help:"Run a node."`
	Query   admin.QueryCommand   `cmd:"" help:"Run a DQL query and print tables, or JSON."`
	Demo    demo.Commands        `cmd:"" help:"Make example data."`
	Admin   admin.Commands       `cmd:"" help:"Operate a running node."`
	Restore admin.RestoreCommand `cmd:"" help:"Make a data directory out of a snapshot."`
	Config  configCommands       `cmd:"" help:"Look at the configuration."`
	TLS     tlsCommands          `cmd:"" name:"tls" help:"Make certificates for the nodes of a cluster."`

	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr, process{
		run:     node.Run,
		signals: notify(),
		exit:    os.Exit,
	}))
}
