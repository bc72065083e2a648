package store

import (
	"fmt"
	"strings"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
)

// check compares reads and aggregates with the model.
func (w *logWorld) check(what string) (hiddenSlots int) {
	w.t.Helper()
	for bucket := range 2 {
		if _, err := w.s.BucketByName(logBucket(bucket)); err != nil {
			continue
		}
		for series := range int64(logHoleSeries) {
			words, unknown := readUnknown(w.t, w.s, logBucket(bucket), int(series), epoch, logHoleSlots)
			for slot := range int64(logHoleSlots) {
				want, _, hidden, mayBe := w.truth(bucket, series, slot)
				if unknown[slot] {
					hiddenSlots++
				}
				if words[slot] != want || unknown[slot] && !mayBe || hidden && !unknown[slot] {
					w.t.Fatalf("%s: bucket %d series %d slot %d holds %d, unknown %v; want %d, unknown %v (may "+
						"be: %v)\n%s",
						what, bucket, series, slot, point.Int(words[slot]), unknown[slot], point.Int(want), hidden,
						mayBe, w.story(bucket, slot))
				}
			}
			w.checkSums(what, bucket, int(series), words)
		}
	}
	return hiddenSlots
}

func (w *logWorld) checkSums(what string, bucket, series int, words []uint64) {
	w.t.Helper()
	info, err := w.s.BucketByName(logBucket(bucket))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, step := range []int64{7, logHoleSlots} {
		dst := make([]chunk.Header, (logHoleSlots+step-1)/step)
		if _, err := w.s.Series(info, key(series)).Aggregate(w.t.Context(), epoch, step,
			dst); err != nil {
			w.t.Fatal(err)
		}
		for i := range dst {
			lo, hi := int64(i)*step, min(int64(i+1)*step, logHoleSlots)
			if sum := chunk.Summarize(words[lo:hi], 0); dst[i].Count != sum.Count || sum.Count > 0 &&
				(dst[i].Min != sum.Min || dst[i].Max != sum.Max) {
				w.t.Fatalf("%s: step %d of %d slots of bucket %d series %d is %+v, want %+v", what, i, step,
					bucket, series, dst[i], sum)
			}
		}
	}
}

// checkOlder wants the last value that is whole where older ones are asked for.
func (w *logWorld) checkOlder(what string) {
	w.t.Helper()
	for bucket := range 2 {
		info, err := w.s.BucketByName(logBucket(bucket))
		if err != nil {
			continue
		}
		for series := range int64(logHoleSeries) {
			got := make([]uint64, logHoleSlots)
			if _, err := w.s.Series(info, key(int(series))).ReadOlder(w.t.Context(), epoch,
				got); err != nil {
				w.t.Fatal(err)
			}
			for slot := range int64(logHoleSlots) {
				if _, older, hidden, _ := w.truth(bucket, series, slot); hidden && got[slot] != older {
					w.t.Fatalf("%s: the older value of bucket %d series %d slot %d is %d, want %d\n%s", what,
						bucket, series, slot,
						point.Int(got[slot]), point.Int(older), w.story(bucket, slot))
				}
			}
		}
	}
}

// story is what a slot went through.
func (w *logWorld) story(bucket int, slot int64) (text string) {
	names, _ := w.s.Damage()
	text = strings.Join(names, "\n") + "\n"
	for i := range w.sent {
		if c := &w.sent[i]; c.bucket == bucket && c.lo <= slot && slot <= c.hi {
			text += fmt.Sprintf("commit %d at %d, slots %d to %d, segment %v, lost %v:", i, c.lsn, c.lo,
				c.hi, c.segment, c.lost)
			for series := range int64(logHoleSeries) {
				if word, ok := c.words[[2]int64{series, slot}]; ok {
					text += fmt.Sprintf(" series %d = %d", series, point.Int(word))
				}
			}
			text += "\n"
		}
	}
	return text
}
