package command

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	"dalmatiner/ducks/internal/emulate"
)

var (
	againLine    = regexp.MustCompile(`(?m)^chain --replace --autofree (http://\S+/boot/v1/script)`)
	passwordLine = regexp.MustCompile(`(?m)^set password (\S+)$`)
)

// testInUse: who is logged in to a running device, and asks for its script, is told that it keeps
// its disk, and it does. A clone that it gets later has another secret.
func testInUse(sh *shell, m *machine) {
	sh.t.Helper()
	r, err := m.Boot(sh.t.Context(), false)
	if err != nil {
		sh.t.Fatal(err)
	}
	was := sh.run("device list")
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodHead} {
		if err := r.Disk.ReadAt(sh.t.Context(), make([]byte, 512), 0); err != nil {
			sh.t.Fatal(err)
		}
		if said := asksAgain(sh, m, r, method); method == http.MethodGet &&
			!strings.Contains(said, "pc1 is in use, and keeps its disk") {
			sh.t.Errorf("%s says %q", method, said)
		}
	}
	if err := errors.Join(r.Disk.WriteAt(sh.t.Context(), bytes.Repeat([]byte{9}, 512), 0),
		r.Disk.Flush(sh.t.Context()), r.Off(sh.t.Context())); err != nil {
		sh.t.Errorf("it has lost its disk: %v", err)
	}
	if is := sh.run("device list"); is != was {
		sh.t.Errorf("it has another image:\n%s, before\n%s", is, was)
	}
	next, err := m.Boot(sh.t.Context(), false)
	if err != nil {
		sh.t.Fatal(err)
	}
	defer next.Session.Close()
	before, after := passwordLine.FindString(r.Script), passwordLine.FindString(next.Script)
	if before == "" || after == "" || before == after {
		sh.t.Errorf("the secret of its clones is %q, then %q", before, after)
	}
}

// asksAgain asks for the script of a machine, from it.
func asksAgain(sh *shell, m *machine, r *emulate.Running, method string) string {
	sh.t.Helper()
	q, err := http.NewRequestWithContext(sh.t.Context(), method,
		againLine.FindStringSubmatch(r.Script)[1]+"?mac="+firstMAC, nil)
	if err != nil {
		sh.t.Fatal(err)
	}
	answer, err := (&http.Client{
		Transport: &http.Transport{DialContext: m.Dial, DisableKeepAlives: true}}).Do(q)
	if err != nil {
		sh.t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		sh.t.Fatal(err)
	}
	return string(said)
}
