package corpus

import (
	"testing"

	"dalmatiner/internal/codec/chunk"
)

// BenchmarkCodec encodes and decodes the chunks of a recording, a sample a slot, in the forms
// of a flush and in those of a merge. A minute is 60 slots from the middle of every chunk that
// is not one value.
func BenchmarkCodec(b *testing.B) {
	b.Run("mix", func(b *testing.B) { benchCodec(b, mix()[:32]) })
	for _, name := range []string{"busy", "quiet", "self", "node-exporter", "telegraf"} {
		c, err := Load("data", name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) { benchCodec(b, once(b, c)) })
	}
}

// once returns the words of a recording, a sample a slot.
func once(b *testing.B, c *Corpus) (series [][]uint64) {
	first, last := c.Span()
	for i := range c.Series {
		s, words := &c.Series[i], make([]uint64, (last-first)/c.Interval+1)
		for k, at := range s.Times {
			w, err := Word(s.Values[k])
			if err != nil {
				b.Fatal(err)
			}
			words[(at-first)/c.Interval] = w
		}
		series = append(series, words)
	}
	return series
}

func benchCodec(b *testing.B, series [][]uint64) {
	var e chunk.Encoder
	for _, form := range []struct {
		name   string
		encode func(dst []byte, off int, words []uint64) []byte
	}{{"quick", e.Append}, {"dense", e.AppendDense}} {
		var chunks, encoded [][]uint64
		var bytes [][]byte
		var minutes []int // chunks with values that differ
		points, size := 0, 0
		for _, words := range series {
			for ; len(words) > 0; words = words[min(chunk.Slots, len(words)):] {
				c := words[:min(chunk.Slots, len(words))]
				chunks = append(chunks, c)
				src := form.encode(nil, 0, c)
				if len(src) == 0 {
					continue
				}
				h, err := chunk.ParseHeader(src)
				if err != nil {
					b.Fatal(err)
				}
				if h.Min != h.Max && len(c) >= 2*chunk.Lane {
					minutes = append(minutes, len(bytes))
				}
				bytes, encoded = append(bytes, src), append(encoded, c)
				points, size = points+h.Count, size+len(src)
			}
		}
		measure := func(b *testing.B, points int, each func()) {
			before := processorTime(b)
			for b.Loop() {
				each()
			}
			b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N)/float64(points),
				"cpu-ns/point")
		}
		b.Run("encode-"+form.name, func(b *testing.B) {
			dst := make([]byte, 0, 16<<10)
			measure(b, points, func() {
				for _, c := range chunks {
					dst = form.encode(dst[:0], 0, c)
				}
			})
			b.ReportMetric(float64(size)/float64(points), "B/point")
		})
		b.Run("decode-"+form.name, func(b *testing.B) {
			var out [chunk.Slots]uint64
			measure(b, points, func() {
				for i, src := range bytes {
					if err := chunk.DecodeRange(out[:len(encoded[i])], src, 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
		b.Run("minute-"+form.name, func(b *testing.B) {
			var out [chunk.Lane]uint64
			measure(b, len(minutes)*chunk.Lane, func() {
				for _, i := range minutes {
					if err := chunk.DecodeRange(out[:], bytes[i],
						len(encoded[i])/2/chunk.Lane*chunk.Lane); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
