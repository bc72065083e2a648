package chunk_test

import (
	"fmt"
	"log"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
)

// A chunk is written once. Its header answers what aggregates ask without the
// words, and any part of the words can be read alone.
func Example() {
	words := make([]uint64, chunk.Slots) // 0 is unset
	for slot := range 100 {
		words[slot] = point.FromInt(int64(slot))
	}
	var e chunk.Encoder
	data := e.Append(nil, 0, words)
	fmt.Println(e.Count(), "points, less than", (len(data)/10+1)*10, "bytes")

	h, err := chunk.ParseHeader(data)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("count", h.Count, "sum", h.Sum.Float64(), "min", point.Int(h.Min), "max",
		point.Int(h.Max))

	part := make([]uint64, 3)
	if err := chunk.DecodeRange(part, data, 98); err != nil {
		log.Fatal(err)
	}
	fmt.Println(point.Int(part[0]), point.Int(part[1]), part[2] == 0)
	// Output:
	// 100 points, less than 20 bytes
	// count 100 sum 4950 min 0 max 99
	// 98 99 true
}
