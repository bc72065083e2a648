package ring

import (
	"math/rand/v2"
	"slices"
)

// TokensPerMember makes shares even: with 512 random tokens each, five members differ by
// about a tenth of their share.
const TokensPerMember = 512

// clear are the low bits of which a token has at least one set. Partitions begin where all
// of them are 0, up to MaxPartitions, so no token and no neighbour of one lies on the point of a
// partition, and a replacement can take the place next to a token.
const clear = 1<<16 - 1

// Tokens draws the tokens of a new member of v, in ascending order. A member keeps its tokens
// for good: others would move its whole share.
func (v *View) Tokens(rng *rand.Rand) []uint32 {
	taken := v.tokens()
	tokens := make([]uint32, 0, TokensPerMember)
	for len(tokens) < TokensPerMember {
		t := rng.Uint32()
		if low := t & clear; low <= 1 || low == clear || taken[t] {
			continue
		}
		taken[t] = true
		tokens = append(tokens, t)
	}
	slices.Sort(tokens)
	return tokens
}

// adjacentTokens returns the free places next to the tokens of a member: whoever has them owns what
// the member owned.
func (v *View) adjacentTokens(of *Member) []uint32 {
	taken := v.tokens()
	tokens := make([]uint32, 0, len(of.Tokens))
	for _, t := range of.Tokens {
		next := t + 1
		for taken[next] || next&clear == 0 {
			next++
		}
		taken[next] = true
		tokens = append(tokens, next)
	}
	slices.Sort(tokens)
	return tokens
}

func (v *View) tokens() map[uint32]bool {
	taken := make(map[uint32]bool, len(v.places))
	for _, p := range v.places {
		taken[p.token] = true
	}
	return taken
}
