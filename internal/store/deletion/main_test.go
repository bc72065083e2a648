package deletion_test

import (
	"testing"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
)

func TestMain(m *testing.M) { drivetest.Main(m) }

const epoch = drivetest.Epoch

func mustBucket(t *testing.T, s drivetest.Store, name string) buckets.Info {
	t.Helper()
	info, err := s.BucketByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
