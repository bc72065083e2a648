package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func buildCluster(t *testing.T, settings ...string) *Cluster {
	t.Helper()
	var list []Setting
	for _, text := range settings {
		s, err := ParseSet(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	c, _, err := Build(list...)
	if err != nil {
		t.Fatal(err)
	}
	return &c.Cluster
}

func TestAddressesOfACluster(t *testing.T) {
	c := buildCluster(t, "cluster.listen=10.0.0.1:8599",
		"cluster.join=ddb2, 10.0.0.3:9000,[fd00::2],fd00::3")
	if got := c.GossipAddr(); got != "10.0.0.1:8600" {
		t.Error(got)
	}
	if got := fmt.Sprint(c.Seeds()); got != "[ddb2:8600 10.0.0.3:9000 [fd00::2]:8600 [fd00::3]:8600]" {
		t.Error(got)
	}
	if got := buildCluster(t, "cluster.listen=127.0.0.1:0").GossipAddr(); got != "127.0.0.1:0" {
		t.Error(got)
	}
	if got := buildCluster(t, "cluster.listen=127.0.0.1:1",
		"cluster.gossip=127.0.0.1:7").GossipAddr(); got != "127.0.0.1:7" {
		t.Error(got)
	}
}

// TestQuorumsMeet: a read with the defaults meets every write, however many members there are.
func TestQuorumsMeet(t *testing.T) {
	c := buildCluster(t, "cluster.listen=127.0.0.1:1")
	if c.FirstCopies() != 3 || buildCluster(t).FirstCopies() != 1 {
		t.Errorf("n is %d", c.FirstCopies())
	}
	for n := 1; n <= 15; n++ {
		for members := 1; members <= 20; members++ {
			r, w := c.Quorums(n, members)
			if copies := min(n, members); r+w <= copies || r > copies || w > copies {
				t.Errorf("n = %d, %d members: r = %d, w = %d", n, members, r, w)
			}
		}
	}
	if r, w := buildCluster(t, "cluster.listen=127.0.0.1:1", "w=1", "r=3").Quorums(3, 1); r != 3 ||
		w != 1 {
		t.Errorf("r = %d, w = %d, not what was asked for", r, w)
	}
}

func TestTLSFiles(t *testing.T) {
	ca, cert, key := buildCluster(t, "cluster.tls_dir=/tls", "cluster.tls_key=/run/key").TLS("ddb@1")
	if ca != "/tls/ca.crt" || cert != "/tls/ddb@1.crt" || key != "/run/key" {
		t.Error(ca, cert, key)
	}
	if ca, cert, key = buildCluster(t).TLS("ddb@1"); ca+cert+key != "" {
		t.Error(ca, cert, key)
	}
}

func TestCookieOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cookie")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	c := buildCluster(t, "distributed_cookie_file="+path)
	if _, err := c.ReadCookie(); err == nil {
		t.Error("a missing file is a cookie")
	}
	write("0123456789abcdef\n", 0o600)
	if got, err := c.ReadCookie(); got != "0123456789abcdef" || err != nil {
		t.Error(got, err)
	}
	write("0123456789abcdef\n", 0o640)
	if _, err := c.ReadCookie(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	write(strings.Repeat("x", maxCookie+1), 0o600)
	if _, err := c.ReadCookie(); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}

// TestTheCookieIsNotShown: neither a listing nor a print of the configuration has it.
func TestTheCookieIsNotShown(t *testing.T) {
	const cookie = "0123456789abcdef"
	c, warnings, err := Build(Setting{"--set", "distributed_cookie", cookie})
	if err != nil || c.Cluster.Cookie.Reveal() != cookie {
		t.Fatal(c.Cluster.Cookie.Reveal(), err)
	}
	if text := fmt.Sprintf("%+v %v %v", c, c.Entries(), warnings); strings.Contains(text, cookie) {
		t.Error(text)
	}
}
