package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// TLS are the files of a certificate and its key, in PEM. None: the API is in clear, on loopback.
type TLS struct{ Cert, Key string }

// certificate is that of the files as they are now: one that is renewed is used for the connections that follow.
type certificate struct {
	of  TLS
	log *slog.Logger

	mu     sync.Mutex
	now    *tls.Certificate
	from   [2]time.Time // when the files were changed
	failed bool         // it was said
}

// secure returns a listener that speaks TLS, where there is a certificate.
func secure(l net.Listener, of TLS, log *slog.Logger) (net.Listener, error) {
	if of == (TLS{}) {
		return l, nil
	}
	c := &certificate{of: of, log: log}
	if err := c.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("the certificate of the API: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil }}), nil
}

// load reads the files, if they have changed.
func (c *certificate) load() error {
	var at [2]time.Time
	for i, path := range []string{c.of.Cert, c.of.Key} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		at[i] = info.ModTime()
	}
	if c.now != nil && at == c.from {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.of.Cert, c.of.Key)
	if err != nil {
		return err
	}
	c.now, c.from = &pair, at
	return nil
}

// get returns the certificate. Files that cannot be read leave the one before.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	if err != nil && !c.failed {
		c.log.Warn("the certificate of the API cannot be read, and stays what it was", "err", err)
	}
	c.failed = err != nil
	return c.now
}
