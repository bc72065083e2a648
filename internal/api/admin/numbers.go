package admin

import (
	"encoding/json"
	"strconv"
)

// UnmarshalJSON reads a series of a result. Integers that doubles do not hold go to Exact.
func (s *Series) UnmarshalJSON(data []byte) error {
	type plain Series
	var from struct {
		plain
		Values []json.Number `json:"values"`
	}
	if err := json.Unmarshal(data, &from); err != nil {
		return err
	}
	*s = Series(from.plain)
	if from.Values == nil {
		return nil
	}
	s.Values = make([]*float64, len(from.Values))
	values := make([]float64, len(from.Values))
	for i, text := range from.Values {
		if text == "" {
			continue // null
		}
		var err error
		if values[i], err = text.Float64(); err != nil {
			return err
		}
		s.Values[i] = &values[i]
		if exact, err := text.Int64(); err == nil && int64(values[i]) != exact {
			if s.Exact == nil {
				s.Exact = make(map[int]int64)
			}
			s.Exact[i] = exact
		}
	}
	return nil
}

// text returns value i as it is shown.
func (s *Series) text(i int) string {
	if exact, ok := s.Exact[i]; ok {
		return strconv.FormatInt(exact, 10)
	}
	return number(*s.Values[i])
}
