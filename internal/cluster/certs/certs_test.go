package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// node is a Keeper, its clock, and what it logged.
type node struct {
	*Keeper
	files Files
	at    atomic.Int64
	log   bytes.Buffer
}

func (n *node) now() time.Time          { return start.Add(time.Duration(n.at.Load())) }
func (n *node) advance(d time.Duration) { n.at.Add(int64(d)) }

func create(t *testing.T, dir, name string, replace bool) Files {
	t.Helper()
	f, err := Create(dir, Options{Node: name, Names: []string{"localhost", "127.0.0.1"}, Now: start,
		Replace: replace})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func load(t *testing.T, files Files) *node {
	t.Helper()
	n := &node{files: files}
	var err error
	n.Keeper, err = Load(files,
		KeeperOptions{Interval: time.Minute, Now: n.now, Log: slog.New(slog.NewTextHandler(&n.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// connect shakes hands and sends a byte each way, because a client of TLS 1.3 learns
// by its first read that it was refused.
func connect(t *testing.T, server,
	client *tls.Config) (s, c *tls.Conn, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	sc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, c = tls.Server(sc, server), tls.Client(cc, client)
	t.Cleanup(func() { s.Close(); c.Close() })
	deadline := time.Now().Add(10 * time.Second)
	if err := errors.Join(sc.SetDeadline(deadline), cc.SetDeadline(deadline)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := echo(s)
		if err != nil {
			s.Close()
		}
		done <- err
	}()
	clientErr = ask(c)
	if clientErr != nil {
		c.Close()
	}
	return s, c, <-done, clientErr
}

func echo(s net.Conn) error {
	var b [1]byte
	if _, err := io.ReadFull(s, b[:]); err != nil {
		return err
	}
	_, err := s.Write(b[:])
	return err
}

func ask(c net.Conn) error {
	b := [1]byte{1}
	if _, err := c.Write(b[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b[:])
	return err
}

func TestNodesKnowEachOther(t *testing.T) {
	dir := t.TempDir()
	a, b := load(t, create(t, dir, "a", false)), load(t, create(t, dir, "b", false))
	s, c, serverErr, clientErr := connect(t, a.Server(), b.Client("a"))
	if serverErr != nil || clientErr != nil {
		t.Fatal(serverErr, clientErr)
	}
	if name, err := Peer(s.ConnectionState()); name != "b" || err != nil {
		t.Errorf("server sees %q, %v", name, err)
	}
	if name, err := Peer(c.ConnectionState()); name != "a" || err != nil {
		t.Errorf("client sees %q, %v", name, err)
	}
}

func TestRefused(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	a, b := load(t, create(t, dir, "a", false)), load(t, create(t, dir, "b", false))
	stranger := load(t, create(t, other, "b", false))
	late := load(t, b.files)
	late.advance(2 * 365 * 24 * time.Hour)
	lateServer := load(t, a.files)
	lateServer.advance(2 * 365 * 24 * time.Hour)
	bare := b.Client("a")
	bare.GetClientCertificate = nil
	old := b.Client("a")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	wrongCA := stranger.Client("a")
	wrongCA.VerifyConnection = nil // the server has to refuse by itself
	f := func(name string, server, client *tls.Config, serverSays, clientSays string) {
		t.Helper()
		_, _, serverErr, clientErr := connect(t, server, client)
		if serverErr == nil || clientErr == nil {
			t.Fatalf("%s: taken: server %v, client %v", name, serverErr, clientErr)
		}
		if !strings.Contains(serverErr.Error(), serverSays) ||
			!strings.Contains(clientErr.Error(), clientSays) {
			t.Errorf("%s: server %v; client %v", name, serverErr, clientErr)
		}
	}
	f("wrong name", a.Server(), b.Client("c"), "", `is node "a", not "c"`)
	f("no name", a.Server(), b.Client(""), "", `is node "a", not ""`)
	f("CA of the client", a.Server(), wrongCA, "unknown authority", "")
	f("CA of the server", stranger.Server(), b.Client("b"), "", "unknown authority")
	f("no certificate of the client", a.Server(), bare, "didn't provide a certificate", "")
	f("TLS 1.2", a.Server(), old, "unsupported versions", "")
	f("server expired", a.Server(), late.Client("a"), "", "expired")
	f("client expired", lateServer.Server(), b.Client("a"), "expired", "")
}

func TestReloadKeepsConnections(t *testing.T) {
	dir, next := t.TempDir(), t.TempDir()
	a, b := load(t, create(t, dir, "a", false)), load(t, create(t, dir, "b", false))
	server, client := a.Server(), b.Client("a")
	s, c, serverErr, clientErr := connect(t, server, client)
	if serverErr != nil || clientErr != nil {
		t.Fatal(serverErr, clientErr)
	}
	fa, fb := create(t, next, "a", false), create(t, next, "b", false)
	both := append(read(t, a.files.CA), read(t, fa.CA)...)
	for _, step := range []func(){
		// both CAs, old certificates
		func() { write(t, a.files.CA, both) },
		// a new, b old
		func() { write(t, a.files.Cert, read(t, fa.Cert)); write(t, a.files.Key, read(t, fa.Key)) },
		func() { write(t, b.files.Cert, read(t, fb.Cert)); write(t, b.files.Key, read(t, fb.Key)) },
		func() { write(t, a.files.CA, read(t, fa.CA)) }, // the old CA is gone
	} {
		step()
		a.advance(time.Minute)
		b.advance(time.Minute)
		if _, _, serverErr, clientErr := connect(t, server, client); serverErr != nil ||
			clientErr != nil {
			t.Fatal(serverErr, clientErr)
		}
	}
	old := load(t, create(t, t.TempDir(), "b", false))
	if _, _, serverErr, _ := connect(t, server, old.Client("a")); serverErr == nil {
		t.Error("another CA is taken")
	}
	done := make(chan error, 1)
	go func() { done <- echo(s) }()
	if err := errors.Join(ask(c), <-done); err != nil {
		t.Errorf("connection from before: %v", err)
	}
}

func TestTheOldCAIsGoneAfterReload(t *testing.T) {
	dir, next := t.TempDir(), t.TempDir()
	a, b := load(t, create(t, dir, "a", false)), load(t, create(t, dir, "b", false))
	fa := create(t, next, "a", false)
	own := Files{CA: filepath.Join(next, "mine.crt"), Cert: a.files.Cert, Key: a.files.Key}
	write(t, own.CA, read(t, a.files.CA))
	moved := load(t, own)
	server, client := moved.Server(), b.Client("a")
	for to, from := range map[string]string{own.CA: fa.CA, own.Cert: fa.Cert, own.Key: fa.Key} {
		write(t, to, read(t, from))
	}
	if _, _, serverErr, clientErr := connect(t, server, client); serverErr != nil || clientErr != nil {
		t.Fatal("files were looked at before the interval was over:", serverErr, clientErr)
	}
	moved.advance(time.Minute)
	client.VerifyConnection = nil
	if _, _, serverErr, _ := connect(t, server, client); serverErr == nil {
		t.Error("a certificate of the old CA is taken")
	}
}

func TestBrokenFilesKeepTheOld(t *testing.T) {
	dir := t.TempDir()
	a, b := load(t, create(t, dir, "a", false)), load(t, create(t, dir, "b", false))
	for _, path := range []string{a.files.CA, a.files.Cert, a.files.Key} {
		whole := read(t, path)
		a.log.Reset()
		write(t, path, whole[:len(whole)/2])
		for range 3 {
			a.advance(time.Minute)
			if _, _, serverErr, clientErr := connect(t, a.Server(), b.Client("a")); path != a.files.CA &&
				errors.Join(serverErr, clientErr) != nil {
				t.Fatal(serverErr, clientErr)
			}
			a.current()
		}
		if n := strings.Count(a.log.String(), "level=ERROR"); n != 1 ||
			!strings.Contains(a.log.String(), path) {
			t.Errorf("%s: reported %d times: %s", path, n, &a.log)
		}
		noSecret(t, a.log.String(), read(t, b.files.Key), whole)
		write(t, path, whole)
		a.advance(time.Minute)
		a.current()
	}
}

func TestExpiryIsWarnedOfOnceADay(t *testing.T) {
	a := load(t, create(t, t.TempDir(), "a", false))
	if want := start.Add(nodeLifetime); !a.current().expires.Equal(want) || a.log.Len() > 0 {
		t.Fatalf("expires %s, not %s; %s", a.current().expires, want, &a.log)
	}
	a.advance(nodeLifetime - warnBefore + time.Hour)
	for range 48 {
		a.current()
		a.advance(time.Hour)
	}
	if n := strings.Count(a.log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings in 48 hours", n)
	}
}

func TestFilesOfCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	files := create(t, dir, "a", false)
	authority := read(t, files.CA)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Error(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode() != 0o600 {
			t.Error(e.Name(), info.Mode(), err)
		}
	}
	before := read(t, files.Key)
	_, err = Create(dir, Options{Node: "a", Now: start})
	if err == nil || !strings.Contains(err.Error(), files.Cert) ||
		!bytes.Equal(before, read(t, files.Key)) {
		t.Error("written over:", err)
	}
	create(t, dir, "a", true)
	if bytes.Equal(before, read(t, files.Key)) || !bytes.Equal(authority, read(t, files.CA)) {
		t.Error("replace: the key is the old one, or the CA a new one")
	}
	cas, err := readCertificates(files.CA)
	if err != nil || !cas[0].IsCA || !cas[0].MaxPathLenZero ||
		cas[0].KeyUsage != x509.KeyUsageCertSign {
		t.Errorf("CA: %v", err)
	}
	leaf, err := readCertificates(files.Cert)
	if err != nil || leaf[0].IsCA || leaf[0].VerifyHostname("127.0.0.1") != nil ||
		!leaf[0].NotBefore.Equal(start.Add(-skew)) {
		t.Errorf("certificate: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	f := func(says string, o Options, prepare func(dir string)) {
		t.Helper()
		dir := t.TempDir()
		create(t, dir, "a", false)
		prepare(dir)
		_, err := Create(dir, o)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	remove := func(name string) func(string) {
		return func(dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := Options{Node: "b", Now: start}
	nothing := func(string) {}
	f("name of node", Options{Node: "../b", Now: start}, nothing)
	f("name of node", Options{Node: "ca", Now: start}, nothing)
	f("above 0", Options{Node: "b", Now: start, ValidFor: -1}, nothing)
	f("shorter time", Options{Node: "b", Now: start, ValidFor: 2 * caLifetime}, nothing)
	f("expired", Options{Node: "b", Now: start.Add(2 * caLifetime)}, nothing)
	f("without", b, remove("ca.key"))
	f("without", b, remove("ca.crt"))
	f("belongs to no certificate", b, func(dir string) {
		write(t, filepath.Join(dir, "ca.key"), read(t, filepath.Join(dir, "a.key")))
	})
	f("chmod 600", b, func(dir string) {
		if err := os.Chmod(filepath.Join(dir, "ca.key"), 0o640); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	a, b := create(t, dir, "a", false), create(t, dir, "b", false)
	other := create(t, t.TempDir(), "a", false)
	open := filepath.Join(dir, "open.key")
	write(t, open, read(t, a.Key))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(says string, files Files, now time.Time) {
		t.Helper()
		_, err := Load(files, KeeperOptions{Now: func() time.Time {
			return now
		}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Fatalf("want %q, got %v", says, err)
		}
		noSecret(t, err.Error(), read(t, a.Key), read(t, b.Key))
	}
	f("do not belong together", Files{a.CA, a.Cert, b.Key}, start)
	f("unknown authority", Files{other.CA, a.Cert, a.Key}, start)
	f("expired", a, start.Add(2*nodeLifetime))
	f("chmod 600", Files{a.CA, a.Cert, open}, start)
	f("no such file", Files{filepath.Join(dir, "none"), a.Cert, a.Key}, start)
	f("no CA's", Files{a.Cert, a.Cert, a.Key}, start)
	f("names no node", Files{a.CA, a.CA, filepath.Join(dir, "ca.key")}, start)
	f("something else", Files{a.Key, a.Cert, a.Key}, start)
}

func TestRule10NoOpenDoor(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:8087", "[::1]:8087", "localhost:8087",
		"[::ffff:127.0.0.1]:1"} {
		if err := CheckListen(listen, false, false); err != nil {
			t.Error(err)
		}
	}
	for _, listen := range []string{":8087", "0.0.0.0:8087", "[::]:8087", "10.0.0.1:8087",
		"node1:8087", "localhost.example:1"} {
		if err := CheckListen(listen, true, true); err != nil {
			t.Error(err)
		}
		for _, with := range [][2]bool{{false, false}, {true, false}, {false, true}} {
			err := CheckListen(listen, with[0], with[1])
			if err == nil {
				t.Fatalf("%s with %v is taken", listen, with)
			}
			for _, says := range []string{"cluster.listen", "cluster.tls_dir", "distributed_cookie_file",
				"ddb tls create"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("no %q in %v", says, err)
				}
			}
		}
	}
	if CheckListen("127.0.0.1", true, true) == nil {
		t.Error("an address without a port is taken")
	}
}

func FuzzParseCertificates(f *testing.F) {
	dir := f.TempDir()
	files, err := Create(dir, Options{Node: "a", Now: start})
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{files.CA, files.Key} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if certs, err := parseCertificates("x", data); (err == nil) != (len(certs) > 0) {
			t.Error(len(certs), err)
		}
	})
}

// noSecret fails if a line of a key is in a text.
func noSecret(t *testing.T, text string, keys ...[]byte) {
	t.Helper()
	for _, key := range keys {
		for line := range strings.Lines(string(key)) {
			if line = strings.TrimSpace(line); len(line) > 8 && !strings.HasPrefix(line, "-----") &&
				strings.Contains(text, line) {
				t.Errorf("a line of a key is in %s", text)
			}
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
