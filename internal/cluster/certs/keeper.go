package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// warnBefore is how long before its end a certificate is warned about, once a day.
const warnBefore = 30 * 24 * time.Hour

// KeeperOptions says how a Keeper looks at its files.
type KeeperOptions struct {
	Interval time.Duration // the files are looked at once in it at most
	Now      func() time.Time
	Log      *slog.Logger
}

// Keeper gives TLS the certificates that the files have now. It has no goroutine:
// handshakes look at the files. All methods may be called at once.
type Keeper struct {
	files Files
	o     KeeperOptions

	mu       sync.Mutex
	now      *bundle
	checked  time.Time
	reported string // the last error that was logged; "" after files that could be read
	warned   time.Time
}

// bundle is what the files had at one moment. It never changes.
type bundle struct {
	raw     [3][]byte
	cert    tls.Certificate
	roots   *x509.CertPool
	expires time.Time // when others stop accepting this node: its certificate or the CA has ended
}

// Load reads the files of a node and checks that they belong together.
func Load(files Files, o KeeperOptions) (*Keeper, error) {
	k := &Keeper{files: files, o: o}
	at := o.Now()
	raw, err := k.read()
	if err != nil {
		return nil, err
	}
	if k.now, err = k.parse(raw, at); err != nil {
		return nil, err
	}
	k.checked = at
	k.warn(at)
	return k, nil
}

// Server returns a configuration that takes connections of nodes of this cluster only.
// Session tickets are off: a resumed session would outlive a change of the CA.
func (k *Keeper) Server() *tls.Config {
	base := k.config()
	base.ClientAuth = tls.RequireAndVerifyClientCert
	base.ClientCAs = x509.NewCertPool() // nobody, should the next line ever be lost
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := k.current()
		c := k.config()
		c.Certificates = []tls.Certificate{now.cert}
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs = now.roots
		c.VerifyConnection = func(s tls.ConnectionState) error {
			_, err := Peer(s)
			return err
		}
		return c, nil
	}
	return base
}

// Client returns a configuration that connects to the node of this name and no other,
// whatever its address. It verifies by itself, because a tls.Config takes its roots
// once and knows host names only.
func (k *Keeper) Client(node string) *tls.Config {
	c := k.config()
	c.InsecureSkipVerify = true // VerifyConnection does it
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &k.current().cert, nil
	}
	c.VerifyConnection = func(s tls.ConnectionState) error { return k.verify(s, node) }
	return c
}

func (k *Keeper) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, Time: k.o.Now}
}

// verify checks the certificate of a server against the CA and the name of the node.
func (k *Keeper) verify(s tls.ConnectionState, node string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the other side sent no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: k.current().roots, Intermediates: between, CurrentTime: k.o.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("certificate of node %q: %w", node, err)
	}
	is, err := Peer(s)
	if err == nil && is != node {
		err = fmt.Errorf("the other side is node %q, not %q: check its address", is, node)
	}
	return err
}

// Peer returns the name of the node at the other side of a connection, which a
// configuration of a Keeper has verified.
func Peer(s tls.ConnectionState) (string, error) {
	if len(s.PeerCertificates) == 0 {
		return "", errors.New("the other side sent no certificate")
	}
	uris := s.PeerCertificates[0].URIs
	if len(uris) == 1 {
		name := strings.TrimPrefix(uris[0].Path, "/")
		if nodeName.MatchString(name) && *uris[0] == *nodeURI(name) {
			return name, nil
		}
	}
	return "", errors.New("the certificate of the other side names no node: make one with ddb tls " +
		"create")
}

// current returns what the files have, or had before they broke.
func (k *Keeper) current() *bundle {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.o.Now()
	if since := at.Sub(k.checked); since >= 0 && since < k.o.Interval {
		return k.now
	}
	k.checked = at
	k.reload(at)
	k.warn(at)
	return k.now
}

// reload takes the files if they have changed. Broken ones change nothing and are
// logged once, not at every look.
func (k *Keeper) reload(at time.Time) {
	raw, err := k.read()
	if err == nil && equalFiles(raw, k.now.raw) {
		k.reported = ""
		return
	}
	var next *bundle
	if err == nil {
		next, err = k.parse(raw, at)
	}
	if err != nil {
		if err.Error() != k.reported {
			k.o.Log.Error("new TLS files cannot be used; the node goes on with those from before", "err",
				err)
			k.reported = err.Error()
		}
		return
	}
	k.now, k.reported, k.warned = next, "", time.Time{}
	k.o.Log.Info("TLS files loaded again", "cert", k.files.Cert, "expires", next.expires)
}

func (k *Keeper) warn(at time.Time) {
	left := k.now.expires.Sub(at)
	if left >= warnBefore || !k.warned.IsZero() && at.Sub(k.warned) < 24*time.Hour {
		return
	}
	k.warned = at
	k.o.Log.Warn("the TLS certificate of this node, or its CA, expires soon: make a new one with "+
		"ddb tls create",
		"cert", k.files.Cert, "expires", k.now.expires, "left", left.Round(time.Hour))
}

func (k *Keeper) read() (raw [3][]byte, err error) {
	if raw[0], err = readFile(k.files.CA); err != nil {
		return raw, err
	}
	if raw[1], err = readFile(k.files.Cert); err != nil {
		return raw, err
	}
	raw[2], err = readSecret(k.files.Key)
	return raw, err
}

// parse checks what others would check of this node, so that files they would refuse
// are found here.
func (k *Keeper) parse(raw [3][]byte, at time.Time) (*bundle, error) {
	cas, err := parseCertificates(k.files.CA, raw[0])
	if err != nil {
		return nil, err
	}
	chain, err := parseCertificates(k.files.Cert, raw[1])
	if err != nil {
		return nil, err
	}
	l := &bundle{raw: raw, roots: x509.NewCertPool()}
	for _, cert := range cas {
		if !cert.IsCA {
			return nil, fmt.Errorf("%s has a certificate that is no CA's: remove it", k.files.CA)
		}
		l.roots.AddCert(cert)
	}
	if l.cert, err = tls.X509KeyPair(raw[1], raw[2]); err != nil {
		return nil, fmt.Errorf("%s and %s do not belong together, or the key cannot be read: make both "+
			"with ddb tls create", k.files.Cert, k.files.Key)
	}
	if _, err := Peer(tls.ConnectionState{PeerCertificates: chain}); err != nil {
		return nil, fmt.Errorf("%s names no node: make it with ddb tls create", k.files.Cert)
	}
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		paths, err := chain[0].Verify(x509.VerifyOptions{
			Roots: l.roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use},
		})
		if err != nil {
			return nil, fmt.Errorf("%s against %s: %w: make it with ddb tls create, with the CA of this "+
				"cluster", k.files.Cert, k.files.CA, err)
		}
		l.expires = lastEnd(paths)
	}
	return l, nil
}

// lastEnd returns when the last of some chains ends; a chain ends with its first certificate
// that does. While a CA changes there may be two.
func lastEnd(paths [][]*x509.Certificate) (last time.Time) {
	for _, path := range paths {
		end := path[0].NotAfter
		for _, cert := range path[1:] {
			if cert.NotAfter.Before(end) {
				end = cert.NotAfter
			}
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}

func equalFiles(a, b [3][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
