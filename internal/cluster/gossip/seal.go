package gossip

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/grafana/dskit/kv/memberlist"
)

// maxValue bounds what is encoded and what is decoded: a ring of 1000 members has 3 MB.
const maxValue = 16 << 20

// secrets are what the nodes of one cluster derive from their cookie.
type secrets struct {
	label string // in clear in front of every message: others are turned away by it
	aead  cipher.AEAD
}

func newSecrets(cookie string) (secrets, error) {
	if cookie == "" {
		return secrets{}, errors.New("gossip needs a distributed_cookie, the same on all nodes")
	}
	label, err := hkdf.Key(sha256.New, []byte(cookie), nil, "dalmatiner gossip label", 16)
	if err != nil {
		return secrets{}, err
	}
	key, err := hkdf.Key(sha256.New, []byte(cookie), nil, "dalmatiner gossip key", 32)
	if err != nil {
		return secrets{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return secrets{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return secrets{hex.EncodeToString(label), aead}, err
}

// sealedCodec is a codec of dskit whose bytes only nodes with the cookie can make and read. dskit
// does not offer the encryption of memberlist, so values are sealed one by one.
type sealedCodec struct {
	id     string
	aead   cipher.AEAD
	encode func(any) ([]byte, error)
	decode func([]byte) (memberlist.Mergeable, error)
}

// CodecID is part of codec.Codec.
func (s *sealedCodec) CodecID() string { return s.id }

// Encode is part of codec.Codec. The id is sealed along, so a value cannot pass for another.
func (s *sealedCodec) Encode(v any) ([]byte, error) {
	plain, err := s.encode(v)
	if err != nil {
		return nil, err
	}
	if len(plain) > maxValue {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are gossiped", s.id, len(plain), maxValue)
	}
	return s.aead.Seal(nil, nil, plain, []byte(s.id)), nil
}

// Decode is part of codec.Codec.
func (s *sealedCodec) Decode(b []byte) (any, error) {
	if len(b) > maxValue+s.aead.Overhead() {
		return nil, fmt.Errorf("%s of %d bytes is too long", s.id, len(b))
	}
	plain, err := s.aead.Open(nil, nil, b, []byte(s.id))
	if err != nil {
		return nil, fmt.Errorf("%s is not from a node with our cookie: %w", s.id, err)
	}
	return s.decode(plain)
}
