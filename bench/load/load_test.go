package load

import (
	"fmt"
	"math"
	"testing"
)

// Answers are compared with what haggar sends.
func TestAnswersAreChecked(t *testing.T) {
	c := Uniform(5, 20, 10)
	s := Over(1000, 1004, 2)
	q := Query{Want: [][]float64{s.Max(&c, 1, 7)}}
	values := func(slot int64) int64 { it := c.Series(1, 7); return it.At(slot) }
	first, second := max(values(1000), values(1001)), max(values(1002), values(1003))
	right := fmt.Sprintf(`{"results":[{"values":[%d,%d],"coverage":1}]}`, first, second)
	if err := q.Check([]byte(right)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{
		fmt.Sprintf(`{"results":[{"values":[%d,%d],"coverage":1}]}`, first, second+1),
		fmt.Sprintf(`{"results":[{"values":[%d,%d],"coverage":0.5}]}`, first, second),
		fmt.Sprintf(`{"results":[{"values":[%d,null],"coverage":1}]}`, first),
		fmt.Sprintf(`{"results":[{"values":[%d],"coverage":1}]}`, first),
		`{"results":[]}`,
		`{`,
	} {
		if err := q.Check([]byte(wrong)); err == nil {
			t.Errorf("%s is taken for right", wrong)
		}
	}
	mean := s.Mean(&c, 1)
	sum := 0.0
	for i := range c.Metrics {
		it := c.Series(1, i)
		sum += float64(it.At(1002) + it.At(1003))
	}
	if want := sum / 40; math.Abs(mean[1]-want) > 1e-9 {
		t.Errorf("mean %v, want %v", mean[1], want)
	}
}
