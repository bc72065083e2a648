package certs

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
)

func TestACertificateWithoutANodeIsRefused(t *testing.T) {
	dir := t.TempDir()
	a, b := load(t, create(t, dir, "a", false)), load(t, create(t, dir, "b", false))
	authority, err := loadCA(a.files.CA, filepath.Join(dir, "ca.key"), start)
	if err != nil {
		t.Fatal(err)
	}
	key, der, err := sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: start, NotAfter: start.Add(nodeLifetime),
		DNSNames:    []string{"b"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority)
	if err != nil {
		t.Fatal(err)
	}
	client := b.Client("a")
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	}
	if _, _, serverErr, _ := connect(t, a.Server(), client); serverErr == nil ||
		!strings.Contains(serverErr.Error(), "names no node") {
		t.Errorf("server says %v", serverErr)
	}
}

func TestAClientVerifiesByTheCAOfNow(t *testing.T) {
	b := load(t, create(t, t.TempDir(), "b", false))
	a := load(t, create(t, t.TempDir(), "a", false))
	client := b.Client("a")
	write(t, b.files.CA, append(read(t, b.files.CA), read(t, a.files.CA)...))
	write(t, a.files.CA, append(read(t, a.files.CA), read(t, b.files.CA)...))
	b.advance(2 * b.o.Interval)
	a.advance(2 * a.o.Interval)
	if _, _, serverErr, clientErr := connect(t, a.Server(), client); serverErr != nil ||
		clientErr != nil {
		t.Error(serverErr, clientErr)
	}
}
