package main

import (
	"fmt"
	"io"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/cluster/certs"
	"dalmatiner/internal/host/config"
)

type tlsCommands struct {
	Create tlsCreateCommand `cmd:"" help:"Make the certificate of a node, and the CA of the cluster where there is none."`
}

type tlsCreateCommand struct {
	admin.Output `embed:""`
	Dir          string   `help:"Directory of the CA and the certificates, ${default} by default; created when missing." default:"tls" placeholder:"DIR"`
	Names        []string `help:"Host names and IP addresses of the node, separated by commas: for other programs that look at them; nodes look at NODE." placeholder:"NAME"`
	ValidFor     string   `help:"How long others accept the certificate, a year by default." placeholder:"TIME"`
	Replace      bool     `help:"Replace the node's certificate and key."`
	Node         string   `arg:"" help:"Name of the node: nodename in its configuration."`
}

// Help is shown below the usage of the command.
func (c *tlsCreateCommand) Help() string {
	return `Nodes of a cluster prove to each other who they are with certificates of one
CA. The first call makes the CA: ca.crt goes to every node, ca.key stays where
certificates are made. Each call makes NODE.crt and NODE.key, which go to that
node only. A running node reads new files by itself.

Examples:
  ddb tls create --dir tls ddb1
  ddb tls create --dir tls ddb2
  scp tls/ca.crt tls/ddb2.crt tls/ddb2.key ddb2:/etc/ddb/tls/
  ddb serve --set nodename=ddb2 --set cluster.tls_dir=/etc/ddb/tls ...
  ddb tls create --dir tls --replace ddb2           before a year has passed`
}

// Run makes the files and says where they are, and where each of them goes.
func (c *tlsCreateCommand) Run(env *admin.Env) error {
	o := certs.Options{Node: c.Node, Names: c.Names, Replace: c.Replace, Now: time.Now()}
	if c.ValidFor != "" {
		d, err := config.ParseDuration(c.ValidFor)
		if err != nil {
			return &admin.UsageError{Err: fmt.Errorf("--valid-for: %w", err)}
		}
		o.ValidFor = d
	}
	files, err := certs.Create(c.Dir, o)
	if err != nil {
		return err
	}
	made := struct {
		CA   string `json:"ca"`
		Cert string `json:"cert"`
		Key  string `json:"key"`
	}{files.CA, files.Cert, files.Key}
	return c.Write(env, made, func(w io.Writer) error {
		_, err := fmt.Fprintf(w,
			"Made %s and %s, signed by the CA in %s.\nCopy these three to cluster.tls_dir of %s. Keep "+
				"ca.key here.\n",
			files.Cert, files.Key, files.CA, c.Node)
		return err
	})
}
