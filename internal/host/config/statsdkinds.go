package config

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPercentiles is how many percentiles a distribution may have: each is a series.
const maxPercentiles = 20

// percentilesKey is a list of percentiles between commas, or none.
func percentilesKey(name, def, help string, field func(*Config) *[]float64) key {
	return key{name: name, def: def, help: help,
		set: func(c *Config, text string) error {
			list, err := parsePercentiles(text)
			if err == nil {
				*field(c) = list
			}
			return err
		},
		get: func(c *Config) string {
			var texts []string
			for _, p := range *field(c) {
				texts = append(texts, strconv.FormatFloat(p, 'f', -1, 64))
			}
			if len(texts) == 0 {
				return none
			}
			return strings.Join(texts, ",")
		},
	}
}

func parsePercentiles(text string) (list []float64, err error) {
	if text == none || text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(p > 0 && p < 100) {
			return nil, fmt.Errorf("must be numbers above 0 and below 100, separated by commas, or %s",
				none)
		}
		list = append(list, p)
	}
	if len(list) > maxPercentiles {
		return nil, fmt.Errorf("must be at most %d numbers", maxPercentiles)
	}
	return list, nil
}
