//go:build unix && amd64 && !purego

package kernel

import (
	"testing"
)

// What an older processor does is the same as what this one chooses: all tests of
// the loops that have a form for AVX-512 once more without it.
func TestWithoutAVX512(t *testing.T) {
	if !avx512 {
		t.Skip("this processor has AVX2 at most, which the other tests use")
	}
	defer func() { avx512 = true }()
	avx512 = false
	t.Run("unpack", TestUnpackIsReference)
	t.Run("groups", TestUnpackGroupsIsReference)
	t.Run("folds", TestFoldIsReference)
	t.Run("words", TestFoldIsTheWords)
	t.Run("sums", TestSumsAreReference)
	t.Run("codes", TestCodesAreNaive)
	t.Run("chains", TestChainIsNaive)
}
