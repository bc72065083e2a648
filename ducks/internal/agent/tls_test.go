package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// write makes a certificate with a number for 127.0.0.1, changed at a time.
func write(t *testing.T, of TLS, number int64, at time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{of.Cert: {Type: "CERTIFICATE", Bytes: cert},
		of.Key: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := errors.Join(os.WriteFile(path, pem.EncodeToMemory(block), 0o600),
			os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate that is renewed is used at once; files that are none leave the one before.
func TestTheCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	of := TLS{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if _, err := secure(l, of, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("it listens without a certificate")
	}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Fatalf("the port is not free again: %v", err)
	}
	now := time.Now()
	write(t, of, 1, now)
	if l, err = secure(l, of, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // until the other side ends
				_ = c.Close()
			}()
		}
	}()
	sees := func(what string, want int64) {
		t.Helper()
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer c.Close()
		if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != want {
			t.Errorf("%s: it has certificate %d, not %d", what, got, want)
		}
	}
	sees("the first", 1)
	write(t, of, 2, now.Add(time.Second))
	sees("renewed", 2)
	if err := errors.Join(os.WriteFile(of.Key, []byte("none"), 0o600),
		os.Chtimes(of.Key, now, now)); err != nil {
		t.Fatal(err)
	}
	sees("damaged", 2)
	write(t, of, 3, now.Add(2*time.Second))
	sees("mended", 3)
}

// In clear the API is on loopback only.
func TestWhoReachesTheAPI(t *testing.T) {
	for address, loopback := range map[string]bool{"127.0.0.1:8091": true, "[::1]:8091": true,
		"0.0.0.0:8091": false, "10.77.0.1:8091": false, "server:8091": false} {
		if err := (&Options{HTTP: address}).reachable(); (err == nil) != loopback {
			t.Errorf("%s in clear: %v", address, err)
		}
		if err := (&Options{HTTP: address, TLS: TLS{Cert: "c", Key: "k"}}).reachable(); err != nil {
			t.Errorf("%s with TLS: %v", address, err)
		}
	}
	if err := (&Options{HTTP: "8091", TLS: TLS{Cert: "c", Key: "k"}}).reachable(); err == nil {
		t.Error("a port alone is an address")
	}
}
