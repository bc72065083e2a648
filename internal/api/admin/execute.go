package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"dalmatiner/client/usage"
)

// Exit codes of the programs.
const (
	ExitOK     = 0
	ExitFailed = 1
	exitUsage  = 2
)

// UsageError marks an error as one of the command line or the configuration:
// the program ends with exitUsage.
type UsageError struct{ Err error }

// Error returns the text of the error inside.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *UsageError) Unwrap() error { return e.Err }

// exited carries the exit code that a flag such as --help asked for through
// the stack of the parser.
type exited int

// Execute parses args into grammar, a kong command tree whose Run methods take
// an *Env and binds, and runs the chosen command. It writes help and output to
// out, complaints to errOut, and returns the exit code. version is printed by
// --version where the tree has that flag.
func Execute(ctx context.Context, name, description, version string, grammar any, args []string,
	out, errOut io.Writer, binds ...any) (code int) {
	parser, err := kong.New(grammar,
		kong.Name(name), kong.Description(description),
		kong.Vars{"version": name + " " + version},
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
	)
	if err != nil {
		panic(fmt.Sprintf("command tree of %s: %v", name, err))
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case exited:
			code = int(p)
		default:
			panic(p)
		}
	}()
	for _, arg := range args {
		// The parser would replace the bytes in silence, and name another bucket.
		if !utf8.ValidString(arg) {
			fmt.Fprintf(errOut, "%s: %q is not UTF-8 text: write \\xHH for a byte of a name\n", name, arg)
			return exitUsage
		}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		usage.Print(errOut, name, err)
		return exitUsage
	}
	err = parsed.Run(append(binds, &Env{Context: ctx, Out: out, Err: errOut})...)
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(errOut, "%s: %v\n", name, err)
	if of := (*UsageError)(nil); errors.As(err, &of) {
		return exitUsage
	}
	return ExitFailed
}
