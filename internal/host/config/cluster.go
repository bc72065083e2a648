package config

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Cluster has the keys of a cluster.
type Cluster struct {
	Listen string // cluster.listen, host:port for other nodes; empty for off: a node on its own
	Gossip string // cluster.gossip, host:port; empty for the port after that of Listen
	// cluster.advertise, host:port where others reach Listen; empty for Listen itself
	Advertise string
	// cluster.join, where others gossip: host:port, or a host with the port of this node's gossip
	Join     []string
	Zone     string // cluster.zone
	RingSize int    // ring_size, a power of two
	Copies   int    // n; 0 for auto
	Reads    int    // r; 0 for auto
	Writes   int    // w; 0 for auto

	Cookie     Secret // distributed_cookie
	CookieFile string // distributed_cookie_file
	TLSDir     string // cluster.tls_dir
	TLSCA      string // cluster.tls_ca
	TLSCert    string // cluster.tls_cert
	TLSKey     string // cluster.tls_key

	HintsMax  int64         // cluster.hints_max, bytes
	MoveRate  int           // cluster.move_rate, points a second
	DropAfter time.Duration // cluster.drop_after
	Heartbeat time.Duration // cluster.heartbeat
	Timeout   time.Duration // cluster.timeout
	Repair    time.Duration // read_repair.delay
}

// Secret is a text that is never printed.
type Secret struct{ text string }

// hidden stands for the text of a secret wherever a configuration is shown.
const hidden = "hidden"

// String returns a word that says no more than that there is a text.
func (s Secret) String() string {
	if s.text == "" {
		return none
	}
	return hidden
}

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// IsEnabled reports whether the node takes part in a cluster.
func (c *Cluster) IsEnabled() bool { return c.Listen != "" }

// defaultCopies is n of a cluster that is told none: a node may be lost while another is repaired.
const defaultCopies = 3

// FirstCopies returns n of a cluster that this node founds. Later the ring says it.
func (c *Cluster) FirstCopies() int {
	switch {
	case c.Copies > 0:
		return c.Copies
	case c.IsEnabled():
		return defaultCopies
	}
	return 1
}

// Quorums returns r and w of a ring with n copies and so many members that can own something. Where
// w is auto it is the majority of the copies that there can be; where r is, the fewest that meet
// every such write.
func (c *Cluster) Quorums(n, members int) (r, w int) {
	copies := max(1, min(n, members))
	majority := copies/2 + 1
	r, w = c.Reads, c.Writes
	if r == 0 {
		r = copies - majority + 1
	}
	if w == 0 {
		w = majority
	}
	return r, w
}

// GossipAddr returns where this node listens for gossip.
func (c *Cluster) GossipAddr() string {
	if c.Gossip != "" {
		return c.Gossip
	}
	host, port, _ := net.SplitHostPort(c.Listen) // its key has checked it
	n, _ := strconv.ParseUint(port, 10, 16)
	if n > 0 {
		n++
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10))
}

// Seeds returns where others gossip, each with its port.
func (c *Cluster) Seeds() []string {
	_, port, _ := net.SplitHostPort(c.GossipAddr())
	var out []string
	for _, addr := range c.Join {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), port)
		}
		out = append(out, addr)
	}
	return out
}

// TLS returns the files of the CA, of the certificate and of the key of a node; all are empty where
// nodes speak without TLS.
func (c *Cluster) TLS(node string) (ca, cert, key string) {
	ca, cert, key = c.TLSCA, c.TLSCert, c.TLSKey
	if c.TLSDir == "" {
		return ca, cert, key
	}
	for _, f := range []struct {
		path *string
		name string
	}{{&ca, "ca.crt"}, {&cert, node + ".crt"}, {&key, node + ".key"}} {
		if *f.path == "" {
			*f.path = filepath.Join(c.TLSDir, f.name)
		}
	}
	return ca, cert, key
}

// maxCookie is the largest file of a cookie that is read.
const maxCookie = 4 << 10

// ReadCookie returns the cookie, from its file where it is in one.
func (c *Cluster) ReadCookie() (string, error) {
	if c.CookieFile == "" {
		return c.Cookie.Reveal(), nil
	}
	f, err := os.Open(c.CookieFile)
	if err != nil {
		return "", fmt.Errorf("distributed_cookie_file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("distributed_cookie_file: %s has mode %04o, so others than its owner can "+
			"use it: chmod 600 %s", c.CookieFile, mode, c.CookieFile)
	}
	if info.Size() > maxCookie {
		return "", fmt.Errorf("distributed_cookie_file: %s has %d bytes, at most %d are read",
			c.CookieFile, info.Size(), maxCookie)
	}
	text, err := os.ReadFile(c.CookieFile)
	if err != nil {
		return "", fmt.Errorf("distributed_cookie_file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// clash is what is wrong with a key beside others.
type clash struct{ key, problem string }

// clashes returns which keys do not go together.
func (c *Cluster) clashes() (out []clash) {
	say := func(key, format string, args ...any) {
		out = append(out, clash{key, fmt.Sprintf(format, args...)})
	}
	n := c.FirstCopies()
	if !c.IsEnabled() {
		for _, q := range []struct {
			name  string
			value int
		}{{"n", c.Copies}, {"r", c.Reads}, {"w", c.Writes}} {
			if q.value > 1 {
				say(q.name, "one node keeps one copy: only %s = 1 is accepted without cluster.listen", q.name)
			}
		}
		return out
	}
	if c.Reads > n {
		say("r", "a read cannot wait for more answers than there are copies: n is %d", n)
	}
	if c.Writes > n {
		say("w", "a write cannot wait for more acknowledgements than there are copies: n is %d", n)
	}
	if c.Cookie.text != "" && c.CookieFile != "" {
		say("distributed_cookie_file", "distributed_cookie is set as well: keep one of the two")
	}
	if c.Timeout < 2*c.Heartbeat {
		say("cluster.timeout",
			"must be at least twice cluster.heartbeat, %s: a node would be down between two heartbeats",
			FormatDuration(2*c.Heartbeat))
	}
	return out
}
