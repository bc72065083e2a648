package message

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Every message comes back as it was, and its names with it.
func TestRoundTrip(t *testing.T) {
	here := newWorld(12)
	for kind := kindWrite; kind <= kindAskKeeps; kind++ {
		t.Run(fmt.Sprint("kind ", kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				there := emptyWorld()
				e, d := here.encoder(1), NewDecoder(there.Registry)
				for range rapid.IntRange(1, 4).Draw(t, "messages") {
					m := generator{t, here}.message(kind)
					frame, err := e.Append([]byte("front"), m)
					if err != nil {
						t.Fatal(err)
					}
					e.ConfirmSent(true)
					got, news, err := d.Decode(frame[len("front"):])
					if err != nil {
						t.Fatal(err)
					}
					clear(frame)
					requireEqual(t, got, m)
					for _, b := range news {
						there.buckets[b.ID()] = b
					}
					there.mustKnow(t, here, got)
				}
			})
		})
	}
}
