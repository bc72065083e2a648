package access

import (
	"fmt"
	"time"

	"dalmatiner/access/state"
)

// Act is something that somebody did, or was refused.
type Act struct {
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	// name of the token or user; empty: nobody who was let in
	Who    string   `json:"who"`
	From   string   `json:"from"`             // the address
	What   string   `json:"what"`             // as: update group
	Object string   `json:"object"`           // as: lab
	Within []string `json:"within,omitempty"` // the scopes in which it lies; none: it concerns all
	Error  string   `json:"error,omitempty"`  // why it failed; empty: it was done
}

// mostActs is how many are kept: the oldest go.
const mostActs = 100_000

func actKey(n uint64) string { return fmt.Sprintf("%020d", n) }

// Record notes an act, on disk. Its number and time are set.
func (a *Access) Record(act Act) error {
	return a.file.Update(func(tx *state.Tx) (err error) {
		if act.Number, err = tx.Next(trail); err != nil {
			return err
		}
		act.At = a.now()
		if act.Number > mostActs {
			if err := tx.Delete(trail, actKey(act.Number-mostActs)); err != nil {
				return err
			}
		}
		return tx.Put(trail, actKey(act.Number), act)
	})
}

// Acts returns at most so many before a number that concern somebody, the newest first; 0 is the
// newest of all.
func (a *Access) Acts(of *Identity, before uint64, most int) (list []Act, err error) {
	list = []Act{}
	err = a.file.View(func(tx *state.Tx) error {
		from := ""
		if before > 0 {
			from = actKey(before)
		}
		return state.Backward(tx, trail, from, func(_ string, act Act) (more bool, err error) {
			if len(list) == most {
				return false, nil
			}
			if of.Reaches(act.Within...) {
				list = append(list, act)
			}
			return true, nil
		})
	})
	return list, err
}
