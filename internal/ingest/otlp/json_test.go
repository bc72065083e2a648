package otlp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/store/storetest"
)

// The form of the example of the specification: integers of 64 bits as texts or numbers, names in
// lowerCamelCase, and names that are not known.
func TestJSON(t *testing.T) {
	st, s := newServer(t, storetest.Options())
	second := time.Now().Unix() - 10
	text := strings.ReplaceAll(`{"resourceMetrics":[{"resource":{"attributes":[
		{"key":"service.name","value":{"stringValue":"my.service"}}]},"scopeMetrics":[{
		"scope":{"name":"my.library","version":"1.0.0","attributes":[]},"metrics":[
		{"name":"my.counter","unit":"1","description":"x","sum":{"aggregationTemporality":2,
			"isMonotonic":true,"dataPoints":[{"asDouble":5,"startTimeUnixNano":"1","timeUnixNano":"NS",
			"attributes":[{"key":"list","value":{"arrayValue":{"values":[{"intValue":"7"},
				{"boolValue":true}]}}}]}]}},
		{"name":"my.gauge","gauge":{"dataPoints":[{"asInt":"-10","timeUnixNano":NS,"future":null}]}},
		{"name":"my.histogram","histogram":{"aggregationTemporality":2,"dataPoints":[{"count":"2",
			"sum":2.5,"bucketCounts":["1",1],"explicitBounds":[1],"timeUnixNano":"NS"}]}},
		{"name":"my.exp","exponentialHistogram":{"aggregationTemporality":2,"dataPoints":[{"count":3,
			"sum":10,"scale":0,"zeroCount":1,"positive":{"offset":1,"bucketCounts":[0,2]},
			"timeUnixNano":"NS"}]}}]}]}]}`, "NS", fmt.Sprint(second*1e9+789))
	msg, err := s.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), "b", netip.AddrPort{}, msg); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"'my_counter_total'.'job=my.service'.'list=[7,true]' 5", "'my_gauge'.'job=my.service' -10",
		"'my_histogram_bucket'.'job=my.service'.'le=+Inf' 2",
		"'my_histogram_bucket'.'job=my.service'.'le=1' 1",
		"'my_histogram_count'.'job=my.service' 2", "'my_histogram_sum'.'job=my.service' 2.5",
		"'my_exp_bucket'.'job=my.service'.'le=+Inf' 3", "'my_exp_bucket'.'job=my.service'.'le=0' 1",
		"'my_exp_bucket'.'job=my.service'.'le=4' 1", "'my_exp_bucket'.'job=my.service'.'le=8' 3",
		"'my_exp_count'.'job=my.service' 3", "'my_exp_sum'.'job=my.service' 10",
	}
	slices.Sort(want)
	if got := stored(t, st, second); !slices.Equal(got, want) {
		t.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for text, want := range map[string]string{
		"{":                        "no JSON",
		"[]":                       "in place of an object",
		`{"resourceMetrics":[[]]}`: "in place of an object",
		`{"resourceMetrics":{"scopeMetrics":{"metrics":{"gauge":{"dataPoints":{"asInt":"x"}}}}}}`: `asInt: strconv.ParseUint: parsing "x"`,
	} {
		if _, err := s.FromJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzJSON: what JSON becomes is a message, or an error.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"resourceMetrics":[{"resource":{"attributes":[{"key":"a","value":{"intValue":"1"}}]},
		"scopeMetrics":[{"metrics":[{"name":"m","sum":{"dataPoints":[{"asInt":1,"flags":0}]}}]}]}]}`))
	s := New(Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		msg, err := s.FromJSON(text)
		if err == nil && !isMessage(msg) {
			t.Errorf("%x is no message", msg)
		}
	})
}
