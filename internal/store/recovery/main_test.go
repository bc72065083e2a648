package recovery_test

import (
	"testing"

	"dalmatiner/internal/store/drivetest"
)

func TestMain(m *testing.M) { drivetest.Main(m) }

const epoch = drivetest.Epoch
