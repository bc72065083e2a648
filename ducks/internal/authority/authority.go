// Package authority is a CA of a server's own, for the certificate of its API. It is kept in the
// state, so that a server which is restored is trusted as before.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"dalmatiner/access/state"
)

// The times of certificates. That of the server is made anew when a third of its time is left, and
// at each start.
const (
	lifetime       = 10 * 365 * 24 * time.Hour // of the CA
	serverLifetime = 90 * 24 * time.Hour
	skew           = 5 * time.Minute // by which clocks differ
)

const table state.Table = "authority"

// key is that of the CA in the table.
const key = "ca"

// Migration makes the table, for the migrations of a file.
func Migration(tx *state.Tx) error { return tx.MakeTable(table) }

// kept is the CA in the state: its certificate in DER, its key in PKCS #8.
type kept struct{ Cert, Key []byte }

// Authority is a CA. Its methods may be called concurrently.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time

	mu     sync.Mutex
	server *tls.Certificate
}

// Open returns the CA of a state, which it makes if there is none.
func Open(file *state.File, now func() time.Time) (*Authority, error) {
	var k kept
	err := file.Update(func(tx *state.Tx) error {
		err := tx.Get(table, key, &k)
		if !errors.Is(err, state.ErrUnknown) {
			return err
		}
		if k, err = create(now()); err != nil {
			return err
		}
		return tx.Put(table, key, k)
	})
	if err != nil {
		return nil, fmt.Errorf("the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(k.Cert)
	if err != nil {
		return nil, fmt.Errorf("the CA: %w", err)
	}
	private, err := x509.ParsePKCS8PrivateKey(k.Key)
	if err != nil {
		return nil, fmt.Errorf("the CA: %w", err)
	}
	of, is := private.(*ecdsa.PrivateKey)
	if !is || now().After(cert.NotAfter) {
		return nil, fmt.Errorf("the CA: its key is a %T, and it ends at %s", private,
			cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return &Authority{cert: cert, key: of, now: now}, nil
}

// create makes a CA that signs certificates of servers, and no further CAs.
func create(now time.Time) (k kept, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return k, err
	}
	form := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "ducks CA"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
	if k.Cert, err = x509.CreateCertificate(rand.Reader, form, form, private.Public(),
		private); err != nil {
		return k, err
	}
	k.Key, err = x509.MarshalPKCS8PrivateKey(private)
	return k, err
}

// serial is a random number of 128 bits, never 0.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return new(big.Int).SetBit(new(big.Int).SetBytes(b[:]), 0, 1)
}

// PEM returns the certificate of the CA, for those who are to trust it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Certificate returns that of a server with some names and addresses, made anew where a third of
// its time is left.
func (a *Authority) Certificate(names []string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.server != nil && a.server.Leaf.NotAfter.Sub(now) > serverLifetime/3 {
		return a.server, nil
	}
	form := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "ducks"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(serverLifetime),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if form.NotAfter.After(a.cert.NotAfter) {
		form.NotAfter = a.cert.NotAfter
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			form.IPAddresses = append(form.IPAddresses, ip)
		} else {
			form.DNSNames = append(form.DNSNames, name)
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the server: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a.server = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}
	return a.server, nil
}
