package main

import (
	"testing"

	"dalmatiner/internal/ducks/command"
)

// The version of an image is not that of the program.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		args []string
		got  func(g *command.Grammar) int
	}{
		{[]string{"image", "export", "golden", "--file", "x"}, func(g *command.Grammar) int { return g.Image.Export.Version }},
		{[]string{"group", "delete", "lab"}, func(g *command.Grammar) int { return g.Group.Delete.Version }},
		{[]string{"group", "files", "lab"}, func(g *command.Grammar) int { return g.Group.Files.Version }},
		{[]string{"volume", "files", "golden"}, func(g *command.Grammar) int { return g.Volume.Files.Version }},
	} {
		var g command.Grammar
		if _, err := parser(&g).Parse(append(c.args, "--version", "2")); err != nil || c.got(&g) != 2 {
			t.Errorf("%q: version %d, %v", c.args, c.got(&g), err)
		}
	}
}
