package wire

import (
	"encoding/binary"

	"dalmatiner/internal/codec/point"
)

// AppendEntry appends an entry of a stream: points of one metric in consecutive slots, from
// slot on. The key has at most metric.MaxKey bytes, and the words are normalised.
func AppendEntry(dst, key []byte, slot uint64, words ...uint64) []byte {
	dst = append(dst, byte(OpEntry))
	dst = binary.BigEndian.AppendUint64(dst, slot)
	dst = appendB16(dst, key)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(words)*point.Size))
	for _, w := range words {
		dst = point.Append(dst, w)
	}
	return dst
}

// AppendBatchStart appends the start of a batch of a stream. All points up to its end belong
// to slot, and no other message may come before its end.
func AppendBatchStart(dst []byte, slot uint64) []byte {
	dst = append(dst, byte(OpBatch))
	return binary.BigEndian.AppendUint64(dst, slot)
}

// AppendBatchPoint appends one point of a batch. The word is normalised. The key has 1 to
// metric.MaxKey bytes: an empty one would end the batch.
func AppendBatchPoint(dst, key []byte, word uint64) []byte {
	return point.Append(appendB16(dst, key), word)
}

// AppendBatchEnd appends the end of a batch.
func AppendBatchEnd(dst []byte) []byte { return append(dst, 0, 0) }

// AppendTimestampedEntry is AppendEntry for a stream with the hpts flag.
func AppendTimestampedEntry(dst, key []byte, slot uint64, points ...Timestamped) []byte {
	dst = append(dst, byte(OpEntry))
	dst = binary.BigEndian.AppendUint64(dst, slot)
	dst = appendB16(dst, key)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(points)*2*point.Size))
	for _, p := range points {
		dst = point.Append(point.Append(dst, p.Word), p.Time)
	}
	return dst
}

// AppendTimestampedBatchPoint is AppendBatchPoint for a stream with the hpts flag.
func AppendTimestampedBatchPoint(dst, key []byte, p Timestamped) []byte {
	return point.Append(point.Append(appendB16(dst, key), p.Word), p.Time)
}

// AppendFlush appends a flush of a stream: the server is to write what is pending.
func AppendFlush(dst []byte) []byte { return append(dst, byte(OpFlush)) }

// AppendFlushAck appends a flush of an acknowledged stream. The server answers it with an
// Ack of the same seq.
func AppendFlushAck(dst []byte, seq uint64) []byte {
	dst = append(dst, byte(OpFlushAck))
	return binary.BigEndian.AppendUint64(dst, seq)
}
