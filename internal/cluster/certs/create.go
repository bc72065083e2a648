// Package certs makes the certificates by which nodes of a cluster know each other,
// and serves them to TLS: mutual, TLS 1.3 only, and reloaded when the files change.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const (
	// skew is how far the clock of a node may be behind that of the node that made
	// its certificate.
	skew = time.Hour
	// caLifetime is ten years: a change of the CA touches every node.
	caLifetime = 10 * 365 * 24 * time.Hour
	// nodeLifetime is what Options.ValidFor is when it is 0.
	nodeLifetime = 365 * 24 * time.Hour
)

// nodeName is what a node may be called: it becomes the name of a file, and a part of a URI.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

// Options says what Create makes.
type Options struct {
	Node     string        // name of the node
	Names    []string      // its host names and IP addresses
	ValidFor time.Duration // 0 is a year
	Now      time.Time
	Replace  bool // replace the certificate and key of the node if there are any
}

// Files says where the certificates of one node lie.
type Files struct {
	CA   string // certificates of one CA, or of two while it changes
	Cert string
	Key  string
}

// Create makes a certificate and a key for a node in dir, signed by the CA in dir.
// It makes the CA if there is none, and never writes over one.
func Create(dir string, o Options) (Files, error) {
	if !nodeName.MatchString(o.Node) || o.Node == "ca" {
		return Files{}, fmt.Errorf("name of node %q: use 1 to 100 letters, digits and . _ @ -, the "+
			"first a letter or digit, not \"ca\"", o.Node)
	}
	if o.ValidFor == 0 {
		o.ValidFor = nodeLifetime
	}
	if o.ValidFor < 0 {
		return Files{}, fmt.Errorf("certificate of %s: valid for %s: give a time above 0", o.Node,
			o.ValidFor)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, err
	}
	files := Files{
		CA:   filepath.Join(dir, "ca.crt"),
		Cert: filepath.Join(dir, o.Node+".crt"),
		Key:  filepath.Join(dir, o.Node+".key"),
	}
	if !o.Replace {
		for _, path := range []string{files.Cert, files.Key} {
			if there, err := exists(path); err != nil {
				return Files{}, err
			} else if there {
				return Files{}, fmt.Errorf("%s exists: replace it (ddb tls create --replace), or choose "+
					"another directory", path)
			}
		}
	}
	authority, err := openCA(files.CA, filepath.Join(dir, "ca.key"), o.Now)
	if err != nil {
		return Files{}, err
	}
	return files, authority.issue(files, o)
}

// ca is a CA that can sign.
type ca struct {
	path string
	cert *x509.Certificate
	key  crypto.Signer
}

// openCA loads a CA, or makes it if both of its files are missing.
func openCA(certPath, keyPath string, now time.Time) (*ca, error) {
	haveCert, err := exists(certPath)
	if err != nil {
		return nil, err
	}
	haveKey, err := exists(keyPath)
	switch {
	case err != nil:
		return nil, err
	case haveCert && haveKey:
		return loadCA(certPath, keyPath, now)
	case haveCert:
		return nil, fmt.Errorf("%s exists without %s: run this where the key of the CA is, or copy it "+
			"here", certPath, keyPath)
	case haveKey:
		return nil, fmt.Errorf("%s exists without %s: restore the certificate, or remove the key to "+
			"begin a new CA", keyPath, certPath)
	}
	return newCA(certPath, keyPath, now)
}

// loadCA finds the certificate that belongs to the key: while a CA changes, the file
// has those of both.
func loadCA(certPath, keyPath string, now time.Time) (*ca, error) {
	certs, err := readCertificates(certPath)
	if err != nil {
		return nil, err
	}
	key, err := readKey(keyPath)
	if err != nil {
		return nil, err
	}
	for _, cert := range certs {
		public, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
		if !ok || !public.Equal(key.Public()) {
			continue
		}
		if !cert.IsCA || now.After(cert.NotAfter) {
			return nil, fmt.Errorf("%s: not a CA, or expired at %s: begin a new CA in another directory",
				certPath, cert.NotAfter.UTC().Format(time.RFC3339))
		}
		return &ca{path: certPath, cert: cert, key: key}, nil
	}
	return nil, fmt.Errorf(
		"%s belongs to no certificate in %s: put the two that belong together there", keyPath, certPath)
}

// newCA makes a CA that signs certificates of nodes and no further CAs.
func newCA(certPath, keyPath string, now time.Time) (*ca, error) {
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "Dalmatiner cluster CA"},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	key, der, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("make CA %s: %w", certPath, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make CA %s: %w", certPath, err)
	}
	// The key comes first: a certificate without its key would look like a CA whose
	// key is kept elsewhere.
	if err := writeKey(keyPath, key, false); err != nil {
		return nil, err
	}
	if err := writePEM(certPath, "CERTIFICATE", der, false); err != nil {
		return nil, err
	}
	return &ca{path: certPath, cert: cert, key: key}, nil
}

// issue makes and writes the certificate of a node.
func (c *ca) issue(files Files, o Options) error {
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: o.Node},
		NotBefore:             o.Now.Add(-skew),
		NotAfter:              o.Now.Add(o.ValidFor),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:                  []*url.URL{nodeURI(o.Node)},
	}
	if template.NotAfter.After(c.cert.NotAfter) {
		return fmt.Errorf("%s expires at %s, before the certificate of %s would: ask for a shorter "+
			"time, or begin a new CA in another directory",
			c.path, c.cert.NotAfter.UTC().Format(time.RFC3339), o.Node)
	}
	for _, name := range o.Names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	key, der, err := sign(template, c)
	if err != nil {
		return fmt.Errorf("make %s: %w", files.Cert, err)
	}
	if err := writeKey(files.Key, key, o.Replace); err != nil {
		return err
	}
	return writePEM(files.Cert, "CERTIFICATE", der, o.Replace)
}

// sign makes a key and a certificate for it, signed by issuer, or by itself if that is nil.
// Keys are ECDSA P-256, because every TLS library and hardware module takes them;
// not all take Ed25519.
func sign(template *x509.Certificate, issuer *ca) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return key, der, err
}

// serial is a random number of 128 bits, never 0.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the process ends instead
	n := new(big.Int).SetBytes(b[:])
	return n.SetBit(n, 0, 1)
}

// nodeURI is the name of a node in its certificate. It is no DNS name: a host that is
// called like a node is not that node.
func nodeURI(node string) *url.URL {
	return &url.URL{Scheme: "ddb", Host: "node", Path: "/" + node}
}
