package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	// maxState is the largest state block in bytes.
	maxState = 64 << 20

	// statePart is the longest part of it that has one checksum: what is damaged in
	// a file is read and checked in pieces.
	statePart = 8 << 20

	statePartHeader = 4 + 4 // length, checksum
)

// appendState appends the parts of a state block that begins at offset at of the
// file behind dst[:0]. No state has no part, an empty one has one.
func appendState(dst, state []byte, base int64) []byte {
	for first := true; len(state) > 0 || first && state != nil; first = false {
		part := state[:min(len(state), statePart)]
		state = state[len(part):]
		at := base + int64(len(dst))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(part)))
		dst = binary.LittleEndian.AppendUint32(dst, statePartCRC(part, at))
		dst = append(dst, part...)
	}
	return dst
}

// statePartCRC covers the length and the place of a part as well.
func statePartCRC(part []byte, at int64) uint32 {
	var head [12]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(part)))
	binary.LittleEndian.PutUint64(head[4:], uint64(at))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, part)
}

// State returns a copy of what Writer.SetState was given, nil if that was nothing. Of the
// rest of the file it needs only the footer.
func (r *Reader) State() ([]byte, error) {
	if r.footer().unread {
		if err := r.readFooter(); err != nil {
			return nil, err
		}
	}
	foot := r.footer()
	at := foot.dirOff + foot.dirLen()
	end := foot.info.Size - footerSize
	if at == end {
		return nil, nil
	}
	if end-at > maxState+statePartHeader*(maxState/statePart+1) {
		return nil, r.file.damage(at, int(end-at), partState,
			fmt.Sprintf("it is longer than %d bytes", maxState))
	}
	raw := make([]byte, end-at) // not more than the file has
	if err := r.file.readAt(raw, at, partState); err != nil {
		return nil, err
	}
	state := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		if len(raw) < statePartHeader ||
			int64(binary.LittleEndian.Uint32(raw)) > int64(len(raw)-statePartHeader) {
			return nil, r.file.damage(at, len(raw), partState, "its parts do not fill it")
		}
		n := int(binary.LittleEndian.Uint32(raw))
		part := raw[statePartHeader : statePartHeader+n]
		if want, got := binary.LittleEndian.Uint32(raw[4:]), statePartCRC(part, at); want != got {
			return nil, &DamageError{
				File:   r.file.path,
				Offset: at,
				Length: int64(statePartHeader + n),
				Want:   want,
				Got:    got,
				Part:   partState,
			}
		}
		state = append(state, part...)
		raw, at = raw[statePartHeader+n:], at+int64(statePartHeader+n)
	}
	return state, nil
}

func (r *Reader) verifyState(_ *directory, found *damages) error {
	if _, err := r.State(); err != nil {
		return found.add(err)
	}
	return nil
}
