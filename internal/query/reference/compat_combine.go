package reference

import "math"

// combineCompat applies a combinator. A shorter series repeats its last value with
// confidence 0. Everything is in the order it is named in.
func combineCompat(name string, in []Series, q float64) ([]Series, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := Series{Resolution: in[0].Resolution, restart: in[0].restart}
	length := 0
	for _, s := range in {
		if s.Resolution != out.Resolution {
			return nil, ErrMixedResolutions
		}
		length = max(length, len(s.Values))
		if s.restart != out.restart {
			out.restart = 0
		}
		out.Set += s.Set
		out.Slots += s.Slots
		out.Scale += s.Scale
	}
	for i := range length {
		values, sure := columnCompat(in, i)
		c := sum(sure) / float64(len(sure))
		if name != "quantile" {
			c = foldThree(name, sure)
		}
		out.Values = append(out.Values, fold(name, values, q, operateCompat))
		out.Confidence = append(out.Confidence, c)
	}
	out.rescale()
	return []Series{out}, nil
}

// foldThree is how the original combines confidences.
func foldThree(name string, c []float64) float64 {
	switch {
	case len(c) == 1:
		return c[0]
	case len(c) == 2:
		return (c[0] + c[1]) / 2
	case name == "sum" || name == "avg":
		return foldThree(name, append([]float64{(c[0] + c[1] + c[0]) / 3}, c[3:]...))
	}
	return foldThree(name, append([]float64{(c[0] + c[1] + c[2]) / 3}, c[3:]...))
}

// columnCompat returns what all series have at one time.
func columnCompat(in []Series, i int) (values, sure []float64) {
	for _, s := range in {
		switch {
		case i < len(s.Values):
			values, sure = append(values, s.Values[i]), append(sure, s.Confidence[i])
		case len(s.Values) > 0:
			values, sure = append(values, s.Values[len(s.Values)-1]), append(sure, 0)
		default:
			values, sure = append(values, 0), append(sure, 0)
		}
	}
	return values, sure
}

// topkCompat shows each value that at most k-1 others of its time are beyond.
func topkCompat(name string, in []Series, k int) ([]Series, error) {
	out := make([]Series, len(in))
	for i, s := range in {
		if s.Resolution != in[0].Resolution {
			return nil, ErrMixedResolutions
		}
		out[i] = s
		out[i].Values, out[i].Confidence = nil, nil
		out[i].hidden = true
		for j, v := range s.Values {
			values, _ := columnCompat(in, j)
			beyond := 0
			for _, other := range values {
				if name == "topk" && other > v || name == "bottomk" && other < v {
					beyond++
				}
			}
			c := s.Confidence[j]
			if beyond >= k || math.IsNaN(v) {
				v, c = math.NaN(), 0
			} else {
				out[i].hidden = false
			}
			out[i].Values, out[i].Confidence = append(out[i].Values, v), append(out[i].Confidence, c)
		}
	}
	return out, nil
}
