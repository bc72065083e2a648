package replica

import (
	"encoding/binary"
	"errors"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/fields"
)

// The kinds of records; DESIGN.md has their bytes.
const (
	recordBoot = iota + 6 // 1 to 5 were those of keys without further partitions
	recordKey
	recordHint
	recordDrop
	recordSettled
)

// maxInt bounds numbers that become an int.
const maxInt = 1 << 31

// errRecord says that a record of the log makes no sense: its checksum is right, so another version
// of the program wrote it.
var errRecord = errors.New("a record of another version")

func bootRecord(boot uint64) []byte {
	return binary.AppendUvarint([]byte{recordBoot}, boot)
}

func dropRecord(number uint64) []byte {
	return binary.AppendUvarint([]byte{recordDrop}, number)
}

func settledRecord(coordinator ring.ID, boot, below uint64) []byte {
	b := append([]byte{recordSettled}, coordinator[:]...)
	return binary.AppendUvarint(binary.AppendUvarint(b, boot), below)
}

// record returns the record of a key, with what its coordinator has settled.
func (k *keys) record(e *priorResult) []byte {
	b := appendKey([]byte{recordKey}, e)
	return binary.AppendUvarint(b, k.sender(e.key.Batch.Coordinator).below)
}

func appendKey(b []byte, e *priorResult) []byte {
	b = append(b, e.key.Batch.Coordinator[:]...)
	for _, n := range []uint64{e.key.Batch.Boot, e.key.Batch.Number, uint64(e.key.Partition),
		uint64(e.key.Further), uint64(e.key.Attempt)} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, e.key.For[:]...)
	for _, n := range []int{e.counts.Accepted, e.counts.Duplicate, e.counts.Conflicting,
		e.counts.Unconfirmed} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func readKey(f *fields.Reader) *priorResult {
	e := &priorResult{}
	copy(e.key.Batch.Coordinator[:], f.Take(len(ring.ID{})))
	e.key.Batch.Boot, e.key.Batch.Number = f.Uvarint(), f.Uvarint()
	e.key.Partition, e.key.Further, e.key.Attempt = int(f.UpTo(maxInt)), int(f.UpTo(maxInt)),
		int(f.UpTo(maxInt))
	copy(e.key.For[:], f.Take(len(ring.ID{})))
	for _, n := range []*int{&e.counts.Accepted, &e.counts.Duplicate, &e.counts.Conflicting,
		&e.counts.Unconfirmed} {
		*n = int(f.UpTo(maxInt))
	}
	return e
}

// hintRecord returns the record of a hint, with its key unless that is nil.
func (j *journal) hintRecord(h *replication.Hint, e *priorResult) ([]byte, error) {
	b := binary.AppendUvarint([]byte{recordHint}, h.Number)
	b = append(b, h.For[:]...)
	if e == nil {
		b = append(b, 0)
	} else {
		b = appendKey(append(b, 1), e)
	}
	return j.o.Codec.Append(b, h.Change)
}

// entry is what a record says.
type entry struct {
	kind   byte
	boot   uint64
	number uint64 // of a hint; below which batches are settled
	key    *priorResult
	hint   replication.Hint
	sender ring.ID
	change []byte // of the hint, encoded
}

// parse reads a record but for the change of a hint.
func parse(rec []byte) (e entry, err error) {
	f := fields.Reader{Src: rec}
	e.kind = f.U8()
	switch e.kind {
	case recordBoot:
		e.boot = f.Uvarint()
	case recordKey:
		e.key = readKey(&f)
		e.number = f.Uvarint()
	case recordHint:
		e.hint.Number = f.Uvarint()
		copy(e.hint.For[:], f.Take(len(ring.ID{})))
		if f.UpTo(1) == 1 {
			e.key = readKey(&f)
		}
		e.change = f.Rest()
	case recordDrop:
		e.number = f.Uvarint()
	case recordSettled:
		copy(e.sender[:], f.Take(len(ring.ID{})))
		e.boot, e.number = f.Uvarint(), f.Uvarint()
	default:
		return e, errRecord
	}
	if !f.IsDone() {
		return e, errRecord
	}
	return e, nil
}
