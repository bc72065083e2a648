package upkeep

import "time"

// Ages is what decides when blocks of a bucket close.
func (u *Upkeep) Ages(resolution int64, height int) (grace, complete, age time.Duration) {
	return u.ages(resolution, height)
}
