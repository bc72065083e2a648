package collectd

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1" // the protocol has it as a checksum within what is encrypted
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Security is how a packet came. A higher level satisfies a lower one.
type Security uint8

// The levels of collectd's network plugin.
const (
	None Security = iota
	Sign
	Encrypt
)

// ParseSecurity returns the level of a name.
func ParseSecurity(name string) (Security, error) {
	for level, text := range []string{"none", "sign", "encrypt"} {
		if name == text {
			return Security(level), nil
		}
	}
	return 0, fmt.Errorf("%q is not none, sign or encrypt", name)
}

// Users are those that sign or encrypt packets.
type Users struct{ byName map[string]user }

type user struct {
	password []byte
	block    cipher.Block // of AES-256, with the hash of the password as its key
}

// NewUsers reads lines of the form `user: password`, as collectd's own AuthFile has them. A line
// that begins with # is a comment.
func NewUsers(file []byte) (*Users, error) {
	us := &Users{byName: map[string]user{}}
	number := 0
	for line := range bytes.Lines(file) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		name, password, ok := bytes.Cut(line, []byte{':'})
		if name, password = bytes.TrimSpace(name), bytes.TrimSpace(password); !ok || len(name) == 0 {
			return nil, fmt.Errorf("line %d is not `user: password`", number)
		}
		key := sha256.Sum256(password)
		block, err := aes.NewCipher(key[:])
		if err != nil {
			return nil, err
		}
		us.byName[string(name)] = user{bytes.Clone(password), block}
	}
	return us, nil
}

var (
	errUser      = errors.New("the user is not in collectd.auth_file")
	errSignature = errors.New("the signature is not that of the user")
	errChecksum  = errors.New("the packet is encrypted with another password")
)

// verify checks a part with a signature, of the rest of its packet: HMAC-SHA-256 over the name of
// the user and that rest.
func (us *Users) verify(part, rest []byte) error {
	if len(part) <= sha256.Size {
		return errPart
	}
	signature, name := part[:sha256.Size], part[sha256.Size:]
	u, ok := us.byName[string(name)]
	if !ok {
		return errUser
	}
	mac := hmac.New(sha256.New, u.password)
	mac.Write(name)
	mac.Write(rest)
	if !hmac.Equal(signature, mac.Sum(nil)) {
		return errSignature
	}
	return nil
}

// decrypt decrypts an encrypted part in place, and returns the parts in it. The part has the name
// of the user with its length, an initialization vector, and in AES-256-OFB a SHA-1 of the
// parts and the parts.
func (us *Users) decrypt(part []byte) ([]byte, error) {
	if len(part) < 2 {
		return nil, errPart
	}
	n, part := int(binary.BigEndian.Uint16(part)), part[2:]
	if len(part) < n+aes.BlockSize+sha1.Size {
		return nil, errPart
	}
	u, ok := us.byName[string(part[:n])]
	if !ok {
		return nil, errUser
	}
	stream, text := part[n:n+aes.BlockSize], part[n+aes.BlockSize:]
	for i := range text { // output feedback: each block of the stream is made of the one ahead
		at := i % aes.BlockSize
		if at == 0 {
			u.block.Encrypt(stream, stream)
		}
		text[i] ^= stream[at]
	}
	sum, parts := text[:sha1.Size], text[sha1.Size:]
	if have := sha1.Sum(parts); !bytes.Equal(sum, have[:]) {
		return nil, errChecksum
	}
	return parts, nil
}
