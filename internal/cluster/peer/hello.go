package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"dalmatiner/internal/cluster/ring"
)

// magic begins what each side says first. Its last byte is the version of the handshake.
const magic = "DDBPEER\x01"

// The kinds of messages of the handshake.
const (
	sayHello  = 1
	sayProof  = 2
	sayRefuse = 3
)

const (
	nonceSize  = 32
	proofSize  = 32
	maxLabel   = 255 // bytes of the cluster's label and of a name
	helloFixed = 2 + 2 + 16 + 16 + nonceSize

	// maxMessage bounds a message of the handshake. The rest beyond what this version knows is for
	// later versions.
	maxMessage = 1024
)

// Refusal says why a handshake failed.
type Refusal uint8

// The reasons for which a handshake fails.
const (
	Foreign      Refusal = iota + 1 // bytes that are no handshake, or a connection that ended in it
	OtherCluster                    // another label
	OtherVersion                    // no version that both speak
	OtherNode                       // the dialled address belongs to another data directory
	Itself                          // both sides have one id
	WrongProof                      // another cookie, or a handshake that was recorded or relayed
	Late                            // not done within the time limit
	Crowded                         // too many handshakes or peers at once
	NoTLS                           // the handshake of TLS failed
	refusals     = iota + 1
)

var refusalTexts = [refusals]string{
	Foreign: "not the handshake of a node", OtherCluster: "it belongs to another cluster",
	OtherVersion: "no version of the protocol is spoken by both",
	OtherNode:    "the address belongs to another node",
	Itself:       "it has the id of this node", WrongProof: "it does not know the cookie",
	Late: "the handshake took too long", Crowded: "too many connections",
	NoTLS: "the handshake of TLS failed",
}

// Error returns the reason in words.
func (r Refusal) Error() string {
	if r < Foreign || r >= refusals {
		return fmt.Sprintf("refusal %d", uint8(r))
	}
	return refusalTexts[r]
}

// errByPeer is wrapped, beside the Refusal, by the error of a handshake that the other side
// refused.
var errByPeer = errors.New("the peer refuses this node")

// hello is what each side says of itself.
type hello struct {
	protocol ring.Protocol
	id       ring.ID // of the side that speaks
	other    ring.ID // whom it takes the other side for
	nonce    [nonceSize]byte
	cluster  string
	name     string
}

func (h *hello) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, h.protocol.Min)
	dst = binary.BigEndian.AppendUint16(dst, h.protocol.Max)
	dst = append(append(append(dst, h.id[:]...), h.other[:]...), h.nonce[:]...)
	dst = append(append(dst, byte(len(h.cluster))), h.cluster...)
	return append(append(dst, byte(len(h.name))), h.name...)
}

// parseHello returns what a side said. Bytes behind that are for later versions, and passed over.
func parseHello(src []byte) (h hello, err error) {
	if len(src) < helloFixed {
		return hello{}, Foreign
	}
	h.protocol = ring.Protocol{Min: binary.BigEndian.Uint16(src),
		Max: binary.BigEndian.Uint16(src[2:])}
	src = src[4:]
	src = src[copy(h.id[:], src):]
	src = src[copy(h.other[:], src):]
	src = src[copy(h.nonce[:], src):]
	for _, text := range []*string{&h.cluster, &h.name} {
		if len(src) == 0 {
			return hello{}, Foreign
		}
		past := 1 + int(src[0])
		if len(src) < past {
			return hello{}, Foreign
		}
		*text, src = string(src[1:past]), src[past:]
	}
	if h.id == (ring.ID{}) {
		return hello{}, Foreign
	}
	return h, nil
}

// appendMessage appends a message of the handshake.
func appendMessage(dst []byte, kind byte, body []byte) []byte {
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(body)))
	return append(dst, body...)
}

// readMessage reads exactly one message, so that no byte of a frame behind it is lost.
func readMessage(src io.Reader, want byte) ([]byte, error) {
	var head [3]byte
	if _, err := io.ReadFull(src, head[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint16(head[1:]))
	if length > maxMessage {
		return nil, Foreign
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(src, body); err != nil {
		return nil, err
	}
	switch {
	case head[0] == sayRefuse && length == 1:
		return nil, fmt.Errorf("%w: %w", errByPeer, Refusal(body[0]))
	case head[0] != want:
		return nil, Foreign
	}
	return body, nil
}

// readMagic refuses everything that does not begin as a node does.
func readMagic(src io.Reader) error {
	var got [len(magic)]byte
	if _, err := io.ReadFull(src, got[:]); err != nil {
		return err
	}
	if string(got[:]) != magic {
		return Foreign
	}
	return nil
}
