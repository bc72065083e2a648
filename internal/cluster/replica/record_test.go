package replica

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// Whatever a record is, parsing it ends, and one that is understood is what the program writes.
func FuzzRecord(f *testing.F) {
	var k keys
	e := &priorResult{key: key(7, 3), counts: replication.Counts{Accepted: 1, Unconfirmed: 1 << 20}}
	for _, rec := range [][]byte{bootRecord(1 << 60), dropRecord(9), settledRecord(ring.ID{1}, 5, 6),
		k.record(e),
		append(appendKey([]byte{recordHint, 1, 15: 0, 17: 1}, e), "change"...)} {
		f.Add(rec)
	}
	// A number in more bytes than it takes is read all the same.
	f.Add([]byte("\x02" + strings.Repeat("\x01", 19) + strings.Repeat("\x01", 16) +
		"\x01\x01\x01\x01\x80\x80\x00\x00"))
	f.Fuzz(func(t *testing.T, rec []byte) {
		e, err := parse(rec)
		if err != nil {
			return
		}
		var again []byte
		switch e.kind {
		case recordBoot:
			again = bootRecord(e.boot)
		case recordKey:
			again = binary.AppendUvarint(appendKey([]byte{recordKey}, e.key), e.number)
		case recordDrop:
			again = dropRecord(e.number)
		case recordSettled:
			again = settledRecord(e.sender, e.boot, e.number)
		case recordHint:
			return
		}
		if f, err := parse(again); err != nil || !reflect.DeepEqual(e, f) {
			t.Errorf("%x is %+v, and %x is %+v: %v", rec, e, again, f, err)
		}
	})
}

// Keys are a map from which settled ones are gone.
func TestKeysAreTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k keys
		model := make(map[replication.Key]replication.Counts)
		var boot, below [2]uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := rapid.IntRange(0, 1).Draw(t, "coordinator")
			b := replication.BatchID{Coordinator: ring.ID{byte(c)},
				Boot:   rapid.Uint64Range(0, 2).Draw(t, "boot"),
				Number: rapid.Uint64Range(0, 40).Draw(t, "number")}
			if rapid.Bool().Draw(t, "settle") {
				if at := b.Number; b.Boot > boot[c] || b.Boot == boot[c] && at > below[c] {
					boot[c], below[c] = b.Boot, at
				}
				k.settle(k.sender(b.Coordinator), b.Boot, b.Number)
			} else {
				e := &priorResult{key: replication.Key{Batch: b,
					Attempt: rapid.IntRange(0, 1).Draw(t, "attempt")},
					counts: replication.Counts{Accepted: rapid.Int().Draw(t, "counts")}}
				if _, ok := model[e.key]; ok {
					continue
				}
				if b.Boot > boot[c] {
					boot[c], below[c] = b.Boot, 0
				}
				k.add(e)
				model[e.key] = e.counts
			}
			for key := range model {
				if i := int(key.Batch.Coordinator[0]); key.Batch.Boot < boot[i] || key.Batch.Boot == boot[i] &&
					key.Batch.Number < below[i] {
					delete(model, key)
				}
			}
			if k.count != len(model) {
				t.Fatalf("%d keys, want %d", k.count, len(model))
			}
			for key, counts := range model {
				if e := k.find(key); e == nil || e.counts != counts || e.settled {
					t.Fatalf("%+v is %+v, want %+v", key, e, counts)
				}
			}
		}
	})
}

// What is written of a key is what is read.
func TestKeyRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k keys
		small := rapid.IntRange(0, maxInt)
		e := &priorResult{key: replication.Key{Partition: small.Draw(t, "partition"),
			Further: small.Draw(t, "further"), Attempt: small.Draw(t, "attempt"),
			Batch: replication.BatchID{Boot: rapid.Uint64().Draw(t, "boot"),
				Number: rapid.Uint64().Draw(t, "number")}},
			counts: replication.Counts{Accepted: small.Draw(t, "accepted"),
				Duplicate: small.Draw(t, "duplicate"), Conflicting: small.Draw(t, "conflicting")}}
		copy(e.key.For[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "owner"))
		got, err := parse(k.record(e))
		if err != nil || !reflect.DeepEqual(got.key, e) {
			t.Fatalf("%+v, want %+v: %v", got.key, e, err)
		}
	})
}
