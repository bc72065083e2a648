// Package trust says which servers a client of HTTP believes.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// CA returns a configuration that trusts the CA whose certificate is in a file, in PEM, and nobody
// else. Without a file it is nil: those of the system are trusted.
func CA(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
