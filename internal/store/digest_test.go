package store

import (
	"context"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
)

// naiveDigest is the definition of Digest over the words that reads give.
func naiveDigest(t fataler, s *Store, info buckets.Info, key []byte, incarnation uint64, from,
	past int64) uint64 {
	t.Helper()
	return drivetest.Digest(t, info, key, incarnation, from, past,
		func(at int64, words, timestamps []uint64) error {
			of, err := s.Series(info, key).WithStale().now()
			if err == nil && info.HPTS {
				return s.reader.ReadPairs(context.Background(), of, at, words, timestamps)
			} else if err == nil {
				err = s.reader.Read(context.Background(), of, at, words, nil)
			}
			return err
		})
}

func mustDigest(t fataler, s *Store, info buckets.Info, key []byte, from, past int64) uint64 {
	t.Helper()
	d, err := s.Series(info, key).Digest(context.Background(), from, past)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}
