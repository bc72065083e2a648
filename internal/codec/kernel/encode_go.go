//go:build !amd64 || purego

package kernel

// The following tell how many they have done: none.

func kinds(_ []uint64) (k Kinds, done int) { return noKinds, 0 }

func integers(_ []int64, _ []uint64) int                   { return 0 }
func offsets(_ []uint64, _ []int64, _ int64) int           { return 0 }
func steps(_ []uint64, _ []int64, _ int64) int             { return 0 }
func spread(_ *Spread, _ []int64) int                      { return 0 }
func scaledIntegers(_ []int64, _ []uint64, _ Quotient) int { return 0 }
func turn(_ []uint64, _ int, _ []uint64, _, _ int) int     { return 0 }

func pack(_ []byte, _ int, _ []uint64, _ uint) (rest uint64, done int) { return 0, 0 }
