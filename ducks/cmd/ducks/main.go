// Command ducks runs rooms of machines without disks, which boot clones of golden images over
// iSCSI.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/alecthomas/kong"

	"dalmatiner/client/usage"
	"dalmatiner/ducks/internal/command"
	"dalmatiner/ducks/internal/contents"
)

const description = `Run rooms of machines without disks.

Each machine boots a clone of an image over iSCSI. The image is updated once, from any machine; the others have the new version when they boot next.

ducks --version prints the version of the program.`

func main() {
	contents.Main()
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// execute runs a command, and returns the exit code.
func execute(args []string, out, errOut io.Writer) int {
	// It is no flag of all commands: that of some is the version of an image.
	if slices.Equal(args, []string{"--version"}) {
		fmt.Fprintln(out, buildVersion())
		return 0
	}
	var g command.Grammar
	parsed, err := parser(&g, out, errOut).Parse(args)
	if err != nil {
		usage.Print(errOut, "ducks", err)
		return exitUsage
	}
	parsed.BindTo(context.Background(), (*context.Context)(nil))
	parsed.BindTo(out, (*io.Writer)(nil))
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(errOut, "ducks:", err)
		return exitFailed
	}
	return 0
}

// parser returns what reads the arguments.
func parser(g *command.Grammar, out, errOut io.Writer) *kong.Kong {
	return kong.Must(g, kong.Name("ducks"), kong.Description(description), kong.Writers(out, errOut),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
}

// version is set by the linker (see the Makefile).
var version string

// buildVersion returns what the build said, else what Go knows of the commit.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		return info.Main.Version
	}
	return version
}
