package drivetest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and fails when they leave a goroutine behind.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		// An Open of pebble that fails leaves one behind.
		goleak.IgnoreTopFunction(
			"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}
