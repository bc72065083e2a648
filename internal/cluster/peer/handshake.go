package peer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// exporterLabel names the keying material of TLS that proofs are bound to.
const exporterLabel = "EXPORTER-dalmatiner-peer"

// The two roles. They are part of a proof, so none can be sent back to its author.
const (
	dialler  = "dalmatiner peer: dialler"
	acceptor = "dalmatiner peer: acceptor"
)

// remoteNode is the other side of a handshake that succeeded.
type remoteNode struct {
	id      ring.ID
	name    string
	version uint16
}

// greet is the dialler's handshake with the node that it takes the other side for.
func (p *Peers) greet(
	ctx context.Context, raw net.Conn, want ring.ID,
) (net.Conn, remoteNode, error) {
	var config *tls.Config
	if p.options.ClientTLS != nil {
		config = p.options.ClientTLS(want)
	}
	conn, exported, err := p.secure(ctx, raw, config, tls.Client)
	if err != nil {
		return nil, remoteNode{}, err
	}
	k, err := p.greetPlain(conn, exported, want)
	return conn, k, p.finish(conn, err)
}

func (p *Peers) greetPlain(conn net.Conn, exported []byte, want ring.ID) (remoteNode, error) {
	mine := p.hello(want)
	first := mine.append(nil)
	if _, err := conn.Write(appendMessage([]byte(magic), sayHello, first)); err != nil {
		return remoteNode{}, err
	}
	if err := readMagic(conn); err != nil {
		return remoteNode{}, err
	}
	second, err := readMessage(conn, sayHello)
	if err != nil {
		return remoteNode{}, err
	}
	theirs, err := parseHello(second)
	if err != nil {
		return remoteNode{}, err
	}
	version, err := p.agree(&theirs)
	if err != nil {
		return remoteNode{}, err
	}
	if theirs.id != want {
		return remoteNode{}, OtherNode
	}
	transcript := transcriptOf(first, second, exported)
	if _, err := conn.Write(appendMessage(nil, sayProof, p.proof(dialler, transcript))); err != nil {
		return remoteNode{}, err
	}
	proof, err := readMessage(conn, sayProof)
	if err != nil {
		return remoteNode{}, err
	}
	if !hmac.Equal(proof, p.proof(acceptor, transcript)) {
		return remoteNode{}, WrongProof
	}
	return remoteNode{theirs.id, theirs.name, version}, nil
}

// welcome is the acceptor's handshake. The dialler proves first: else everybody who connects would
// get a proof to try cookies on. Admit is asked before the dialler hears that it is welcome.
func (p *Peers) welcome(ctx context.Context, raw net.Conn,
	admit func(remoteNode) error) (net.Conn, error) {
	var config *tls.Config
	if p.options.ServerTLS != nil {
		config = p.options.ServerTLS()
	}
	conn, exported, err := p.secure(ctx, raw, config, tls.Server)
	if err != nil {
		return nil, err
	}
	return conn, p.finish(conn, p.welcomePlain(conn, exported, admit))
}

func (p *Peers) welcomePlain(conn net.Conn, exported []byte, admit func(remoteNode) error) error {
	if err := readMagic(conn); err != nil {
		return err
	}
	first, err := readMessage(conn, sayHello)
	if err != nil {
		return err
	}
	theirs, err := parseHello(first)
	if err != nil {
		return err
	}
	// The magic goes before a refusal too: the dialler reads it first.
	if _, err := conn.Write([]byte(magic)); err != nil {
		return err
	}
	version, err := p.agree(&theirs)
	if err != nil {
		return err
	}
	if theirs.other != p.options.Self {
		return OtherNode
	}
	mine := p.hello(theirs.id)
	second := mine.append(nil)
	if _, err := conn.Write(appendMessage(nil, sayHello, second)); err != nil {
		return err
	}
	transcript := transcriptOf(first, second, exported)
	proof, err := readMessage(conn, sayProof)
	if err != nil {
		return err
	}
	if !hmac.Equal(proof, p.proof(dialler, transcript)) {
		return WrongProof
	}
	if err := admit(remoteNode{theirs.id, theirs.name, version}); err != nil {
		return err
	}
	_, err = conn.Write(appendMessage(nil, sayProof, p.proof(acceptor, transcript)))
	return err
}

// agree checks what both roles check.
func (p *Peers) agree(theirs *hello) (version uint16, err error) {
	version, speaks := p.options.Protocol.Speaks(theirs.protocol)
	switch {
	case theirs.cluster != p.options.Cluster:
		return 0, OtherCluster
	case !speaks:
		return 0, OtherVersion
	case theirs.id == p.options.Self:
		return 0, Itself
	}
	return version, nil
}

// hello returns what this node says of itself, with a nonce that is used once.
func (p *Peers) hello(other ring.ID) hello {
	h := hello{
		protocol: p.options.Protocol,
		id:       p.options.Self,
		other:    other,
		cluster:  p.options.Cluster,
		name:     p.options.Name,
	}
	rand.Read(h.nonce[:]) // it never fails: it ends the process instead
	return h
}

// transcriptOf returns the hash of all that both sides said and, with TLS, of the connection they
// said it on: a proof that is relayed onto another connection does not hold there.
func transcriptOf(first, second, exported []byte) []byte {
	h := sha256.New()
	for _, part := range [][]byte{first, second, exported} {
		h.Write(appendMessage(nil, sayHello, part)) // the length in front keeps the parts apart
	}
	return h.Sum(nil)
}

func (p *Peers) proof(role string, transcript []byte) []byte {
	mac := hmac.New(sha256.New, p.options.Cookie)
	mac.Write([]byte(role))
	mac.Write(transcript)
	return mac.Sum(nil)
}

// secure sets the time limit of the handshake and puts TLS over the connection if wanted.
func (p *Peers) secure(ctx context.Context, raw net.Conn, config *tls.Config,
	side func(net.Conn, *tls.Config) *tls.Conn) (net.Conn, []byte, error) {

	if err := raw.SetDeadline(time.Now().Add(p.options.Handshake)); err != nil {
		return nil, nil, err
	}
	if config == nil {
		return raw, nil, nil
	}
	conn := side(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil, Late
		}
		return nil, nil, fmt.Errorf("%w: %w", NoTLS, err)
	}
	state := conn.ConnectionState()
	exported, err := state.ExportKeyingMaterial(exporterLabel, nil, 32)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", NoTLS, err)
	}
	return conn, exported, nil
}

// finish tells the other side why it is refused, unless it did not speak as a node, or refused
// first. The time limit of a handshake that succeeded stays: every read and write behind it sets
// its own.
func (p *Peers) finish(conn net.Conn, err error) error {
	var refusal Refusal
	switch {
	case err == nil, errors.Is(err, errByPeer):
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Late
	case errors.As(err, &refusal) && refusal != Foreign:
		// it is being refused anyway
		_, _ = conn.Write(appendMessage(nil, sayRefuse, []byte{byte(refusal)}))
	}
	return err
}
