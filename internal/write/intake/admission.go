package intake

import (
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/columns"
)

// Admission says which points of a bucket a node takes, for those who do not store them here. Its
// methods may be called concurrently.
type Admission struct {
	o     *Options
	b     *columns.Bucket
	stale bool // stale markers are taken
}

// Admission returns that of a bucket, with stale markers or without. The error wraps
// buckets.ErrUnknown where it was deleted.
func (in *Intake) Admission(info buckets.Info, stale bool) (Admission, error) {
	b, err := in.o.Buckets.ByIdentity(info)
	return Admission{&in.o, b, stale}, err
}

// Slots returns the slots [lo, hi) that are taken now.
func (a Admission) Slots() (lo, hi uint64) { return a.o.Columns.AdmittedSlots(a.b) }

// IsDeleted reports whether the bucket was deleted.
func (a Admission) IsDeleted() bool {
	_, err := a.o.Buckets.ByIdentity(a.b.Info())
	return err != nil
}

// DiskFull reports whether points are refused because the disk is nearly full.
func (a Admission) DiskFull() bool { return a.o.Pressure.DiskFull() }

// Wait holds a sender back while the node cannot take more. One that cannot wait is told so at
// once: false refuses its points as overload.
func (a Admission) Wait(never bool) bool {
	if never {
		return !a.o.Pressure.IsFull()
	}
	a.o.Pressure.Wait()
	return true
}

// Point returns the words under which a point is kept, or, where it is not taken, why. lo and hi
// are those of Slots. In a bucket without timestamps, and of a stale marker, the second word is 0.
func (a Admission) Point(key []byte, slot, raw, timestamp, lo, hi uint64) (word,
	timestampWord uint64, refused account.Reason, ok bool) {
	if word, ok = normalize(raw, a.stale); !ok {
		return 0, 0, account.BadType, false
	}
	if refused, outside := refusalReason(key, slot, lo, hi); outside {
		return 0, 0, refused, false
	}
	if a.b.HPTS && word > point.Stale {
		if timestampWord, ok = a.b.TimestampWord(slot, timestamp); !ok {
			return 0, 0, account.BadTimestamp, false
		}
	}
	return word, timestampWord, 0, true
}

// refusalReason says why a point is refused whatever its value is.
func refusalReason(key []byte, slot, lo, hi uint64) (account.Reason, bool) {
	switch {
	case len(key) == 0:
		return account.EmptyName, true
	case slot >= hi:
		return account.Future, true
	case slot < lo:
		return account.Expired, true
	}
	return 0, false
}
