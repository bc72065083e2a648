package target

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// tgtadm takes a secret as an argument, which every user of the machine can read. It gets another
// text of the same length, and says that to a socket of ours, which puts the secret into its place
// on the way to tgtd: what is between the two does not have to be known here.

// secretName is the socket, to which tgtadm adds ".0".
const secretName = "secret"

// mostRequest bounds a request of tgtadm. That of an account has some 200 bytes.
const mostRequest = 64 << 10

// account tells tgtd of a user of CHAP.
func (o *Options) account(ctx context.Context, user, secret string) error {
	standIn := rand.Text()[:len(secret)]
	path := filepath.Join(o.Dir, secretName)
	// a crash has left it
	if err := os.Remove(path + ".0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", path+".0")
	if err != nil {
		return err
	}
	passed := make(chan error, 1)
	go func() { passed <- o.pass(l, standIn, secret) }()
	_, err = o.tgtadmAt(ctx, path, "--mode", "account", "--op", "new", "--user", user, "--password",
		standIn)
	return errors.Join(err, l.Close(), <-passed)
}

// pass hands one request to tgtd, with a text in the place of another one, and its answer back.
func (o *Options) pass(l net.Listener, standIn, secret string) (err error) {
	from, err := l.Accept()
	if err != nil {
		if errors.Is(err, net.ErrClosed) {
			return nil // tgtadm has said why
		}
		return err
	}
	defer from.Close()
	if err := from.SetDeadline(time.Now().Add(answersWithin)); err != nil {
		return err
	}
	// tgtd is asked when there is a request: it reads from who says nothing without a pause.
	var request []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(request, []byte(standIn)) {
		n, err := from.Read(buf)
		if request = append(request, buf[:n]...); err != nil || len(request) > mostRequest {
			return fmt.Errorf("a request of tgtadm: after %d bytes it has no secret: %w", len(request), err)
		}
	}
	to, err := net.DialTimeout("unix", filepath.Join(o.Dir, socketName+".0"), answersWithin)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := to.SetDeadline(time.Now().Add(answersWithin)); err != nil {
		return err
	}
	if _, err := to.Write(bytes.Replace(request, []byte(standIn), []byte(secret), 1)); err != nil {
		return err
	}
	// what of the request came later; it ends with the connections
	go func() { _, _ = io.Copy(to, from) }()
	_, err = io.Copy(from, to)
	return err
}
