package plan

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"dalmatiner/internal/query/dql"
)

// Months and years follow the calendar; days and weeks do where a zone is asked for, in the text
// or beside it.
func TestRangesByTheCalendar(t *testing.T) {
	zagreb, err := time.LoadLocation("Europe/Zagreb")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2028, 3, 31, 12, 0, 0, 0, time.UTC).UnixMilli()
	rangeOf := func(text string, beside *time.Location) string {
		q, err := dql.Parse("SELECT m BUCKET b " + text)
		if err != nil {
			t.Fatal(err)
		}
		zone, err := TimeZone(q, beside)
		if err != nil {
			return err.Error()
		}
		r, err := TimeRange(q, now, zone, false)
		if err != nil {
			return err.Error()
		}
		const layout = "2006-01-02T15:04:05.999Z"
		return time.UnixMilli(r.Start).UTC().Format(layout) + " " +
			time.UnixMilli(r.End).UTC().Format(layout)
	}
	for text, want := range map[string]string{
		`LAST 1mo`:                      "2028-02-29T12:00:00Z 2028-03-31T12:00:00Z",
		`LAST 1y`:                       "2027-03-31T12:00:00Z 2028-03-31T12:00:00Z",
		`LAST 1y6mo`:                    "2026-09-30T12:00:00Z 2028-03-31T12:00:00Z",
		`LAST 1w`:                       "2028-03-24T12:00:00Z 2028-03-31T12:00:00Z",
		`LAST 0mo`:                      "2028-03-31T11:59:59.999Z 2028-03-31T12:00:00Z",
		`LAST -1mo`:                     "2028-03-31T11:59:59.999Z 2028-03-31T12:00:00Z",
		`BETWEEN 2mo AGO AND 1mo AGO`:   "2028-01-31T12:00:00Z 2028-02-29T12:00:00Z",
		`BETWEEN 3000y AGO AND 58y AGO`: "1970-01-01T00:00:00.001Z 1970-03-31T12:00:00Z",
		`AFTER NOW FOR -1mo`:            "2028-03-31T12:00:00Z 2028-03-31T12:00:00.001Z",
		`AFTER NOW FOR 7972y`: "line 1, column 19: the range ends after the year 9999: " +
			"253410120000000, the limit is 253402300799999",

		`LAST 1w TZ "Europe/Zagreb"`:                    "2028-03-24T13:00:00Z 2028-03-31T12:00:00Z",
		`LAST 168h TZ "Europe/Zagreb"`:                  "2028-03-24T12:00:00Z 2028-03-31T12:00:00Z",
		`LAST 1y TZ "Europe/Zagreb"`:                    "2027-03-31T12:00:00Z 2028-03-31T12:00:00Z",
		`LAST 1mo TZ "Europe/Zagreb"`:                   "2028-02-29T13:00:00Z 2028-03-31T12:00:00Z",
		`BETWEEN 1w AGO AND 1d AGO TZ "Europe/Zagreb"`:  "2028-03-24T13:00:00Z 2028-03-30T12:00:00Z",
		`AFTER "2026-10-25" FOR 1d TZ "Europe/Zagreb"`:  "2026-10-24T22:00:00Z 2026-10-25T23:00:00Z",
		`AFTER "2026-10-25" FOR 1mo TZ "Europe/Zagreb"`: "2026-10-24T22:00:00Z 2026-11-24T23:00:00Z",
		`BEFORE "2026-03-30" FOR 1d TZ "Europe/Zagreb"`: "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z",
		`AFTER "2026-10-25 UTC" FOR 1d TZ "+02:00"`:     "2026-10-25T00:00:00Z 2026-10-26T00:00:00Z",
		`LAST 1d TZ "Europe/Zagrab"`:                    `line 1, column 30: unknown time zone "Europe/Zagrab"; did you mean Europe/Zagreb, Europe/Madrid or Europe/Malta?`,
	} {
		if got := rangeOf(text, nil); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if beside, _, ok := strings.Cut(text, ` TZ "Europe/Zagreb"`); ok {
			if got := rangeOf(beside, zagreb); got != want {
				t.Errorf("%s beside the zone: %s, want %s", beside, got, want)
			}
		}
	}
	const want = "2026-07-01T00:00:00Z 2026-07-01T01:00:00Z"
	if got := rangeOf(`AFTER "2026-07-01" FOR 1h TZ UTC`, zagreb); got != want {
		t.Errorf("the zone of the text comes first: %s, want %s", got, want)
	}
}
