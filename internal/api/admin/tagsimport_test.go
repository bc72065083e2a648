package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/api/tagline"
)

// importNode takes lines as a node with a limit of bodies does, and refuses those that begin with
// "bad".
type importNode struct {
	limit int
	lines []string
}

func (n *importNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > int64(n.limit) {
		http.Error(w, "the limit is http.max_body", http.StatusRequestEntityTooLarge)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := tagline.Imported{Errors: []tagline.LineError{}}
	for i, line := range strings.Split(strings.TrimSuffix(string(body), "\n"), "\n") {
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "bad"):
			out.Refused++
			out.Errors = append(out.Errors, tagline.LineError{Line: int64(i + 1), Error: "bad"})
		default:
			n.lines = append(n.lines, line)
			out.Changed++
		}
		out.Lines++
	}
	if err := json.NewEncoder(w).Encode(&out); err != nil {
		panic(err)
	}
}

// TestImportsFitTheNode: each line arrives once and in order, or is named with its number and the
// reason, however little the node takes at a time.
func TestImportsFitTheNode(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		node := &importNode{limit: rapid.IntRange(1, 300).Draw(t, "limit")}
		server := httptest.NewServer(node)
		defer server.Close()
		var src bytes.Buffer
		var want, refused []string
		n := rapid.IntRange(0, 40).Draw(t, "lines")
		noEnd := rapid.Bool().Draw(t, "no end")
		lines := int64(0)
		for i := range n {
			line := fmt.Sprint("line", i) +
				strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 40, 200, 400}).Draw(t, "length"))
			switch rapid.IntRange(0, 8).Draw(t, "kind") {
			case 0:
				line = ""
			case 1:
				line = "bad" + line
			}
			if src.WriteString(line); i < n-1 || !noEnd {
				src.WriteByte('\n')
				line += "\n"
			}
			text := strings.TrimSuffix(line, "\n")
			switch {
			case len(line) > node.limit:
				refused = append(refused,
					fmt.Sprintf("%d: the line has %d bytes: the limit is http.max_body; raise it on the node", i+1,
						len(line)))
			case text == "":
				continue
			case strings.HasPrefix(text, "bad"):
				refused = append(refused, fmt.Sprintf("%d: bad", i+1))
			default:
				want = append(want, text)
			}
			lines++
		}
		name := filepath.Join(dir, "lines")
		if err := os.WriteFile(name, src.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		code := Execute(context.Background(), "ddb-admin", "Test.", "v1", &tree{},
			[]string{"tags", "import", name, "--json", "--addr", strings.TrimPrefix(server.URL, "http://")},
			&out, &errOut)
		var got tagline.Imported
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s, %s: %v", &out, &errOut, err)
		}
		var named []string
		for _, e := range got.Errors {
			named = append(named, fmt.Sprintf("%d: %s", e.Line, strings.TrimSpace(e.Error)))
		}
		if !slices.Equal(node.lines, want) || !slices.Equal(named, refused) || got.Lines != lines ||
			got.Refused != int64(len(refused)) || got.Changed != int64(len(want)) {
			t.Fatalf("%d of %d lines arrived; named %q, want %q; %+v", len(node.lines), len(want), named,
				refused, got)
		}
		if (code != 0) != (len(refused) > 0) {
			t.Fatalf("exit %d with %d refused", code, len(refused))
		}
	})
}
