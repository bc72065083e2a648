package chunk

import "dalmatiner/internal/codec/intlist"

// reader reads the fields of a chunk.
type reader struct{ intlist.Reader }

func newReader(src []byte) reader { return reader{intlist.NewReader(src)} }

// bitWriter and bitReader write and read the fields of a header.
type (
	bitWriter struct{ intlist.BitWriter }
	bitReader struct{ intlist.BitReader }
)
