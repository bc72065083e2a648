package columns_test

import (
	"testing"
	"time"

	"dalmatiner/internal/store/drivetest"
)

func TestMain(m *testing.M) { drivetest.Main(m) }

const (
	epoch  = drivetest.Epoch
	second = uint64(time.Second)
)

func key(i int) []byte { return drivetest.Key(i) }
