package main

import (
	"io"
	"strings"
	"testing"

	"dalmatiner/ducks/internal/command"
)

// The version of an image is not that of the program.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		args []string
		got  func(g *command.Grammar) int
	}{
		{[]string{"image", "export", "golden", "--file", "x"}, func(g *command.Grammar) int {
			return g.Image.Export.Version
		}},
		{[]string{"group", "delete", "lab"}, func(g *command.Grammar) int {
			return g.Group.Delete.Version
		}},
		{[]string{"group", "files", "lab"}, func(g *command.Grammar) int {
			return g.Group.Files.Version
		}},
		{[]string{"volume", "files", "golden"}, func(g *command.Grammar) int {
			return g.Volume.Files.Version
		}},
	} {
		var g command.Grammar
		if _, err := parser(&g, io.Discard,
			io.Discard).Parse(append(c.args, "--version", "2")); err != nil || c.got(&g) != 2 {
			t.Errorf("%q: version %d, %v", c.args, c.got(&g), err)
		}
	}
}

// What is wrong comes first, and the help does not hide it.
func TestUsageErrorsAreThreeLines(t *testing.T) {
	for line, want := range map[string]string{
		"image import golden": "ducks: missing flags: --file=FILE\nusage: ducks image import " +
			"--file=FILE <volume> [flags]\nhelp:  ducks image import --help\n",
		"image": "ducks: expected one of \"import\", \"export\"\nusage: ducks image " +
			"<command>\nhelp:  ducks image --help\n",
		"pool status --foo": "ducks: unknown flag --foo\nusage: ducks pool status [flags]\nhelp:  " +
			"ducks pool status --help\n",
		"nothing": "ducks: unexpected argument nothing\nusage: ducks <command> " +
			"[flags]\nhelp:  ducks --help\n",
	} {
		var out, errOut strings.Builder
		if code := execute(strings.Fields(line), &out, &errOut); code != exitUsage ||
			errOut.String() != want || out.Len() > 0 {
			t.Errorf("%s: exit %d\n%s%s, want\n%s", line, code, out.String(), errOut.String(), want)
		}
	}
}

// One name for one thing, in all programs; the one before it is known, too.
func TestTheAddressOfTheServer(t *testing.T) {
	for _, flag := range []string{"--addr", "--server"} {
		var g command.Grammar
		if _, err := parser(&g, io.Discard, io.Discard).Parse([]string{"pool", "status", flag,
			"10.77.0.1:8091"}); err != nil || g.Pool.Status.Addr != "10.77.0.1:8091" {
			t.Errorf("%s: %q, %v", flag, g.Pool.Status.Addr, err)
		}
	}
}
