// Package usage says what is wrong with a command line, in the same three lines in all programs.
package usage

import (
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// Print prints an error of a command line of kong: what is wrong, how the command is used, and how
// to read more.
func Print(w io.Writer, program string, err error) {
	command, line := program, program+" <command> [flags]"
	if of := (*kong.ParseError)(nil); errors.As(err, &of) && of.Context != nil {
		if node := of.Context.Selected(); node != nil {
			command, line = node.FullPath(), program+" "+node.Summary()
		}
	}
	Lines(w, program, err, line, command+" --help")
}

// Lines prints the same for a program that reads its command line in another way.
func Lines(w io.Writer, program string, err error, line, help string) {
	fmt.Fprintf(w, "%s: %v\nusage: %s\nhelp:  %s\n", program, err, line, help)
}
