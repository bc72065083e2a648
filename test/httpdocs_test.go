package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dalmatiner/internal/testkit/golden"
)

// TestHTTPDocs runs the commands of docs/http.md.
func TestHTTPDocs(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "self_monitor=off")
	fillShop(t, n)
	runPage(t, n, "../docs/http.md")
}

// TestLanguageDocs runs the commands of docs/dql.md. The first of them makes the data.
func TestLanguageDocs(t *testing.T) {
	t.Parallel()
	runPage(t, startNode(t, t.TempDir(), "--set", "self_monitor=off"), "../docs/dql.md")
}

// runPage runs the commands of a page, the lines behind "$ " in its blocks, in order on one
// node, and compares what they print. "…" stands for anything within a line, and alone in a
// line for the rest. -update replaces what differs.
func runPage(t *testing.T, n *node, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	lines := strings.Split(string(text), "\n")
	var out []string
	inBlock, ran := false, 0
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if strings.HasPrefix(lines[i], "```") {
			inBlock = !inBlock
		}
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !inBlock || !ok {
			continue
		}
		ran++
		end := i + 1
		for ; !strings.HasPrefix(lines[end], "$ ") && !strings.HasPrefix(lines[end], "```"); end++ {
		}
		got, want := runDocumented(t, n, command), lines[i+1:end]
		switch {
		case matchesLines(want, got):
			got = want
		case !golden.Update():
			t.Errorf("%s:%d: $ %s\ngot\n%s\nwant\n%s", file, i+1, command, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
		out = append(out, got...)
		i = end - 1
	}
	if ran == 0 {
		t.Errorf("there is no command in %s", file)
	}
	if golden.Update() {
		golden.Same(t, file, strings.Join(out, "\n"))
	}
}

const documentedAddr = "127.0.0.1:8080"

// runDocumented returns the lines that a command prints on a node at the
// address of the page.
func runDocumented(t *testing.T, n *node, command string) []string {
	t.Helper()
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, documentedAddr, n.http))
	cmd.Env = append(os.Environ(), "DDB_ADDR="+n.http,
		"PATH="+filepath.Dir(program("ddb"))+":"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("$ %s\n%v", command, err)
	}
	printed := strings.ReplaceAll(string(text), n.http, documentedAddr)
	printed = strings.ReplaceAll(strings.TrimSuffix(printed, "\n"), "\r", "")
	return strings.Split(queryTime.ReplaceAllString(printed, `"query_time":57`), "\n")
}

func matchesLines(want, got []string) bool {
	for i, w := range want {
		if w == "…" {
			return true
		}
		var literal []string
		for _, part := range strings.Split(w, "…") {
			literal = append(literal, regexp.QuoteMeta(part))
		}
		if i >= len(got) || !regexp.MustCompile("^"+strings.Join(literal, ".*")+"$").MatchString(got[i]) {
			return false
		}
	}
	return len(want) == len(got)
}
