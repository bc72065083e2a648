package initiator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The units of the protocol. Source: RFC 7143, section 11.
const (
	opNopOut     = 0x00
	opCommand    = 0x01
	opLogin      = 0x03
	opDataOut    = 0x05
	opLogout     = 0x06
	opNopIn      = 0x20
	opResponse   = 0x21
	opLoginReply = 0x23
	opDataIn     = 0x25
	opLogoutDone = 0x26
	opR2T        = 0x31
	opAsync      = 0x32
	opReject     = 0x3f

	immediate = 0x40 // beside an opcode: it is not numbered
	final     = 0x80 // in byte 1

	noTag = 0xffffffff
)

const (
	headerBytes = 48
	maxReceive  = 256 << 10 // of the data of one unit; the target is told at login
)

// pdu is a unit: its header and its data.
type pdu struct {
	header [headerBytes]byte
	data   []byte
}

// errProtocol is what a target does that no target may.
var errProtocol = errors.New("the target does not keep to iSCSI")

func (p *pdu) opcode() byte { return p.header[0] & 0x3f }

func (p *pdu) u32(at int) uint32 { return binary.BigEndian.Uint32(p.header[at:]) }

func (p *pdu) put32(at int, v uint32) { binary.BigEndian.PutUint32(p.header[at:], v) }

// putLUN addresses a logical unit below 256.
func (p *pdu) putLUN(lun byte) { p.header[9] = lun }

// write writes a unit, padded.
func (p *pdu) write(w io.Writer) error {
	n := len(p.data)
	p.header[5], p.header[6], p.header[7] = byte(n>>16), byte(n>>8), byte(n)
	if _, err := w.Write(p.header[:]); err != nil {
		return err
	}
	if _, err := w.Write(p.data); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, -n&3))
	return err
}

// readPDU reads a unit. Its data are its own.
func readPDU(r io.Reader) (*pdu, error) {
	p := new(pdu)
	if _, err := io.ReadFull(r, p.header[:]); err != nil {
		return nil, err
	}
	n := int(p.header[5])<<16 | int(p.header[6])<<8 | int(p.header[7])
	if n > maxReceive {
		return nil, fmt.Errorf("%w: a unit has %d bytes of data, the limit is %d", errProtocol, n,
			maxReceive)
	}
	more := 4 * int(p.header[4]) // further headers, of which none concerns an initiator
	b := make([]byte, more+n+(-n&3))
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	p.data = b[more : more+n]
	return p, nil
}
