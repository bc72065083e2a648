package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/authority"
)

// TLS are the files of a certificate and its key, in PEM, or a CA of ducks' own that makes them.
// None: the API is in clear, on loopback.
type TLS struct {
	Cert, Key string
	Own       bool
}

// CAFile is the file in DataDir with the certificate of the CA of ducks, for those who are to trust
// it.
const CAFile = "ca.crt"

// secureAPI returns a listener that speaks TLS, where that is wanted.
func secureAPI(l net.Listener, o *Options, file *state.File) (net.Listener, error) {
	if !o.TLS.Own {
		return secure(l, o.TLS, o.Logger)
	}
	get, err := ownCertificate(o.DataDir, file)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return speakTLS(l, get), nil
}

// speakTLS returns a listener that asks for the certificate at each connection.
func speakTLS(l net.Listener, get func() (*tls.Certificate, error)) net.Listener {
	return tls.NewListener(l,
		&tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return get() }})
}

// ownCertificate returns what makes the certificate of this machine, and writes that of its CA into
// a directory.
func ownCertificate(dir string,
	file *state.File) (get func() (*tls.Certificate, error), err error) {
	ca, err := authority.Open(file, time.Now)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, CAFile), ca.PEM(), 0o644); err != nil {
		return nil, err
	}
	names, err := ownNames()
	if err != nil {
		return nil, err
	}
	get = func() (*tls.Certificate, error) { return ca.Certificate(names) }
	_, err = get() // so that a failure ends the start
	return get, err
}

// ownNames returns by what this machine is reached: its name and its addresses.
func ownNames() ([]string, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	names := []string{host, "localhost"}
	list, err := net.InterfaceAddrs()
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
			names = append(names, p.Addr().String())
		}
	}
	return names, err
}

// certificate is the certificate in the files as they are now. Connections that begin after a
// renewal use the renewed one.
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
	return speakTLS(l, func() (*tls.Certificate, error) { return c.get(), nil }), nil
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
