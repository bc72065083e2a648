package account

import (
	"encoding/hex"
	"fmt"
	"testing"
)

// The format is frozen: the account is written as these bytes into the MANIFEST,
// and read from them. Reasons that came later take nothing from it.
func TestFrozenSnapshot(t *testing.T) {
	a := New()
	a.Add(1, 100, &Counts{Accepted: 300, Duplicate: 2, Conflicting: 1, Late: 4, Unset: 5})
	a.Add(1, 101, &Counts{Accepted: 1})
	a.Add(1<<63, -7, &Counts{Refused: [NumReasons]uint64{Future: 3, SameHash: 1 << 40}})
	a.Lose("block_damaged", 70_000)
	a.Recover("block_damaged", 130)
	a.Recover("segment_unreadable", 2)
	a.RefuseRequests("query_syntax", 9)
	const snapshot = "020100000000000000ad02020104050002c801ac020201040500ca01010000000000000000000000008000000000000200030a808080808020010d00000000000200030a808080808020010d626c6f636b5f64616d61676564f0a204020d626c6f636b5f64616d616765648201127365676d656e745f756e7265616461626c6502010c71756572795f73796e74617809"
	if got := hex.EncodeToString(a.Snapshot()); got != snapshot {
		t.Errorf("the format is frozen: the account is now written as %s", got)
	}
	src, err := hex.DecodeString(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	b := New()
	if err := b.Restore(src); err != nil {
		t.Fatal(err)
	}
	text := func(a *Account) string {
		return fmt.Sprint(a.Totals(), a.Minutes(1), a.Minutes(1<<63), a.Losses(), a.Requests())
	}
	if text(b) != text(a) {
		t.Errorf("it is read as\n%s, was\n%s", text(b), text(a))
	}
}
