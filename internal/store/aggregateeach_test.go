package store

import (
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/reader"
)

// aggregateEach compares the aggregates of series that are read together with those that each
// has alone.
func aggregateEach(t fataler, s *Store, info buckets.Info, list []int, from, step int64, n int) {
	t.Helper()
	var handles []Series
	for _, i := range list {
		handles = append(handles, s.Series(info, key(i)))
	}
	dst, alone, next := make([]chunk.Header, n), make([]chunk.Header, n), 0
	dst[0].Count = 77 // what was there goes
	err := s.AggregateEach(context.Background(), handles, from, step, dst,
		func(i int, _ reader.Stats, err error) error {
			if err != nil || i != next {
				t.Fatalf("series %d of %v comes behind %d, %v", i, list, next, err)
			}
			next++
			if _, err := handles[i].Aggregate(context.Background(), from, step, alone); err != nil {
				t.Fatalf("%v", err)
			}
			for k := range dst {
				if dst[k].Rises && !alone[k].Rises { // not known of the one, which the other has read
					alone[k].Rises = slotsOf(t, handles[i], from+int64(k)*step, step).Rises
				}
				if err := drivetest.EqualAggregates(dst[k], alone[k]); err != nil {
					t.Fatalf("series %d of %v, step %d of %d from epoch%+d: %v", i, list, k, step, from-epoch, err)
				}
			}
			return nil
		})
	if err != nil || next != len(list) {
		t.Fatalf("%d of %d series, %v", next, len(list), err)
	}
}

// slotsOf returns the aggregates of slots by reading them.
func slotsOf(t fataler, of Series, from, n int64) chunk.Header {
	t.Helper()
	words := make([]uint64, n)
	for at := int64(0); at < n; at += reader.MaxRead {
		part := words[at:min(n, at+reader.MaxRead)]
		if skip := min(max(0, -from-at), int64(len(part))); skip < int64(len(part)) {
			if err := of.Read(context.Background(), from+at+skip, part[skip:]); err != nil {
				t.Fatalf("%v", err)
			}
		}
	}
	return drivetest.Aggregates(words, from)
}
