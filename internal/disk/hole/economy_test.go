package hole_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"dalmatiner/internal/disk/hole"
)

// Holes that hide nothing are dropped, and a set tells all that it was made of.
func TestEmptyHolesAreDropped(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for round := range 300 {
		list := make([]hole.Hole, r.IntN(8))
		for i := range list {
			list[i] = randomHole(r)
		}
		want := hole.Join(list)
		for _, empty := range []hole.Hole{{From: 5, Past: 5, High: 9}, {From: 7, Past: 3, High: 9},
			{Low: 4, High: 3, Past: 9}} {
			empty.At, empty.Bucket = hole.Position{Generation: r.Uint64N(9)}, r.Uint64N(2)
			list = slices.Insert(list, r.IntN(len(list)+1), empty)
		}
		before := slices.Clone(list)
		if got := hole.Join(list); !slices.Equal(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
		if !slices.Equal(list, before) {
			t.Fatalf("round %d: the list was changed", round)
		}
		for bucket := range uint64(2) {
			of := slices.DeleteFunc(slices.Clone(want), func(h hole.Hole) bool { return h.Bucket != bucket })
			if got := hole.NewSet(bucket, list).Holes(); !slices.Equal(got, of) {
				t.Fatalf("round %d: the set has %v, want %v", round, got, of)
			}
		}
	}
}

// Chunks of one series that follow each other are one mark.
func TestMarksThatAdjoinAreOne(t *testing.T) {
	list := []hole.Mark{
		{Bucket: 1, First: 4, Past: 5, Low: 7, High: 7}, {Bucket: 1, First: 2, Past: 3, Low: 7, High: 7},
		{Bucket: 1, First: 3, Past: 4, Low: 7, High: 7},
		{Bucket: 1, First: 3, Past: 4, Low: 8, High: 8}, {Bucket: 1, First: 6, Past: 7, Low: 7, High: 7},
	}
	before := slices.Clone(list)
	want := []hole.Mark{{Bucket: 1, First: 2, Past: 5, Low: 7, High: 7},
		{Bucket: 1, First: 3, Past: 4, Low: 8, High: 8}, {Bucket: 1, First: 6, Past: 7, Low: 7, High: 7}}
	if got := hole.MarksOf(list); !reflect.DeepEqual(got.List, want) {
		t.Errorf("%v, want %v", got.List, want)
	}
	if !slices.Equal(list, before) {
		t.Errorf("the list was changed: %v", list)
	}
}

// However many chunk numbers are marked, on both sides of 0 and with whatever series,
// all stay marked within the bound; of more buckets than that each keeps one mark.
func TestMarksOfManyChunksAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 10 {
		var list []hole.Mark
		for c := range int64(2000) {
			first, low := c*3-4000, r.Uint64N(1000)
			list = append(list, hole.Mark{Bucket: 7, First: first, Past: first + 1 + r.Int64N(9), Low: low,
				High: low + r.Uint64N(3)})
		}
		marks := hole.MarksOf(list)
		if len(marks.List) > hole.MaxMarks {
			t.Fatalf("%d marks, the bound is %d", len(marks.List), hole.MaxMarks)
		}
		for _, m := range list {
			for _, chunk := range []int64{m.First, m.Past - 1} {
				if !marks.Has(7, m.Low, chunk) || !marks.Has(7, m.High, chunk) {
					t.Fatalf("%v is not marked", m)
				}
			}
		}
		if marks.Has(7, 2000, 0) || marks.Has(7, 500, 3000) || marks.Has(7, 500, -4001) {
			t.Fatal("what lies outside of all is marked")
		}
	}
	var list []hole.Mark
	for bucket := range uint64(hole.MaxMarks + 50) {
		for c := range int64(3) {
			list = append(list, hole.Mark{Bucket: bucket, First: c * 1000, Past: c*1000 + 1, Low: bucket,
				High: bucket})
		}
	}
	marks := hole.MarksOf(list)
	if len(marks.List) != hole.MaxMarks+50 {
		t.Errorf("%d marks of %d buckets", len(marks.List), hole.MaxMarks+50)
	}
	for _, m := range list {
		if !marks.Has(m.Bucket, m.Low, m.First) {
			t.Fatalf("%v is not marked", m)
		}
	}
}
