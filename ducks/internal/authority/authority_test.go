package authority

import (
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"testing"
	"time"

	"dalmatiner/access/state"
)

// Certificates are of the CA that is in the state, for the names that are asked for, and are made
// anew in time.
func TestCertificates(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "state"), time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	open := func() (*Authority, func()) {
		t.Helper()
		file, err := state.Open(path, []state.Migration{Migration})
		if err != nil {
			t.Fatal(err)
		}
		a, err := Open(file, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return a, func() {
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, closed := open()
	block, _ := pem.Decode(a.PEM())
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	trusted := func(a *Authority, name string) error {
		t.Helper()
		c, err := a.Certificate([]string{"server", "10.77.0.1", "::1"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now})
		return err
	}
	for name, want := range map[string]bool{"server": true, "10.77.0.1": true, "[::1]": true,
		"other": false, "10.77.0.2": false} {
		if err := trusted(a, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	first, _ := a.Certificate(nil)
	now = now.Add(serverLifetime / 2)
	if c, _ := a.Certificate(nil); c != first {
		t.Error("it is made anew too early")
	}
	now = now.Add(serverLifetime / 4)
	if c, _ := a.Certificate([]string{"server"}); c == first {
		t.Error("it is not made anew")
	}
	closed()
	again, closed := open()
	if err := trusted(again, "server"); err != nil {
		t.Errorf("by the CA that is read again: %v", err)
	}
	closed()
	file, err := state.Open(path, []state.Migration{Migration})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	now = now.Add(lifetime)
	if _, err := Open(file, func() time.Time { return now }); err == nil {
		t.Error("a CA whose time is over is opened")
	}
}
