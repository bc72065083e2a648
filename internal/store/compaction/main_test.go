package compaction_test

import (
	"testing"
	"time"

	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

func TestMain(m *testing.M) { drivetest.Main(m) }

const epoch = drivetest.Epoch

// passing returns a function that moves the clock on, and the store follows.
func passing(t *testing.T, s *storetest.Store, clock *drivetest.Clock) func(time.Duration) {
	return func(d time.Duration) { s.Pass(t, clock, d) }
}
