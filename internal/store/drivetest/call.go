package drivetest

import (
	"encoding/binary"
	"math/rand/v2"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/write/intake"
)

// CallSeries is how many series RandCall writes to.
const CallSeries = 6

// Call is a call of a session.
type Call struct {
	Series     int
	Slot       int64
	Words      []uint64 // 0 is an explicit unset point
	Timestamps []uint64 // in a bucket with timestamps; nil is a plain write into it
}

// Send makes the call.
func (w *Call) Send(x *intake.Session) {
	if w.Timestamps != nil {
		w.sendTimestamped(x)
		return
	}
	if len(w.Words) == 1 {
		x.Point(Key(w.Series), uint64(w.Slot), w.Words[0])
		return
	}
	var data []byte
	for _, v := range w.Words {
		data = point.Append(data, v)
	}
	x.Points(Key(w.Series), uint64(w.Slot), data)
}

func (w *Call) sendTimestamped(x *intake.Session) {
	var data []byte
	for i, v := range w.Words {
		data = binary.BigEndian.AppendUint64(point.Append(data, v), w.Timestamps[i])
	}
	x.TimestampedPoints(Key(w.Series), uint64(w.Slot), data)
}

// RandCall draws a call at a time of the clock, in seconds: some are late, some have many words.
func RandCall(r *rand.Rand, now int64) Call {
	w := Call{Series: r.IntN(CallSeries), Slot: now - int64(r.IntN(20))}
	n := 1
	switch r.IntN(12) {
	case 0:
		w.Slot = now - int64(r.IntN(1400)) // late
	case 1:
		n = 1 + r.IntN(150)
		w.Slot = now - int64(n) - int64(r.IntN(1000))
	case 2:
		n = 1 + r.IntN(20)
	}
	for range n {
		v := point.FromInt(int64(r.IntN(5)))
		switch r.IntN(10) {
		case 0:
			v = point.Unset
		case 1:
			v = point.FromFloat(float64(r.IntN(100)) / 4)
		case 2:
			v = point.Stale
		}
		w.Words = append(w.Words, v)
	}
	return w
}
