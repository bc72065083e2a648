package room

import (
	"fmt"
	"testing"

	"dalmatiner/access/state"
)

// BenchmarkTree counts what there is, as each addition does, in a room of 1,000 devices in 50
// groups of 20 versions.
func BenchmarkTree(b *testing.B) {
	r, _, closed := inMemory(b)
	defer closed()
	if err := r.o.State.Update(func(tx *state.Tx) error {
		if err := tx.Put(volumes, "v", Volume{Name: "v", Network: Default, Size: 1 << 30,
			Versions: make([]Version, 20)}); err != nil {
			return err
		}
		for i := range 1000 {
			if err := tx.Put(devices, fmt.Sprint("pc", i),
				Device{Name: fmt.Sprint("pc", i), Group: fmt.Sprint("g", i%50), Mode: Volatile}); err != nil {
				return err
			}
			if i < 50 {
				if err := tx.Put(groups, fmt.Sprint("g", i),
					Group{Name: fmt.Sprint("g", i), Network: Default, Volume: "v",
						Versions: make([]Version, 20)}); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if t, err := r.Networks().Tree(); err != nil || t.Has[Default].Devices != 1000 {
			b.Fatal(t.Has, err)
		}
	}
}
