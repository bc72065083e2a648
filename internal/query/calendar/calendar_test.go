package calendar

import (
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

const layout = "2006-01-02 15:04:05.999"

func at(t *testing.T, text string, zone *time.Location) int64 {
	t.Helper()
	of, err := time.ParseInLocation(layout, text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return of.UnixMilli()
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestAdd(t *testing.T) {
	zagreb := zoneOf(t, "Europe/Zagreb")
	f := func(from string, n int64, unit Unit, want string) {
		t.Helper()
		got := time.UnixMilli(Add(at(t, from, zagreb), n, unit, zagreb)).In(zagreb).Format(layout)
		if got != want {
			t.Errorf("%s and %d of unit %d is %s, want %s", from, n, unit, got, want)
		}
	}
	f("2026-03-31 12:00:00.5", -1, Month, "2026-02-28 12:00:00.5")
	f("2028-03-31 12:00:00", -1, Month, "2028-02-29 12:00:00")
	f("2028-02-29 12:00:00", 12, Month, "2029-02-28 12:00:00")
	f("2028-02-29 12:00:00", -48, Month, "2024-02-29 12:00:00")
	f("2026-01-31 00:00:00", 1, Month, "2026-02-28 00:00:00")
	f("2026-12-15 00:00:00", 1, Month, "2027-01-15 00:00:00")
	f("2026-01-15 00:00:00", -13, Month, "2024-12-15 00:00:00")
	f("2026-03-29 12:00:00", -1, Day, "2026-03-28 12:00:00") // 23 hours
	f("2026-10-25 12:00:00", -1, Week, "2026-10-18 12:00:00")
	f("2026-03-28 02:30:00", 1, Day, "2026-03-29 03:30:00") // 02:30 is left out
}

func TestBegin(t *testing.T) {
	f := func(name, of string, step Step, want string) {
		t.Helper()
		zone := zoneOf(t, name)
		got := time.UnixMilli(step.Begin(at(t, of, zone), zone)).In(zone).Format(layout)
		if got != want {
			t.Errorf("%s: the window of %v with %s begins at %s, want %s", name, step, of, got, want)
		}
	}
	f("Europe/Zagreb", "2026-11-20 12:00:00", Step{1, Day}, "2026-11-20 00:00:00")
	f("Europe/Zagreb", "2026-11-20 12:00:00", Step{1, Week}, "2026-11-16 00:00:00")
	f("Europe/Zagreb", "2026-11-16 00:00:00", Step{1, Week}, "2026-11-16 00:00:00")
	f("Europe/Zagreb", "2026-11-15 23:59:59.999", Step{1, Week}, "2026-11-09 00:00:00")
	f("Europe/Zagreb", "2026-11-20 12:00:00", Step{3, Month}, "2026-10-01 00:00:00")
	f("Europe/Zagreb", "2026-11-20 12:00:00", Step{12, Month}, "2026-01-01 00:00:00")
	f("Europe/Zagreb", "2026-11-20 12:00:00", Step{120, Month}, "2020-01-01 00:00:00")
	f("Europe/Zagreb", "1965-11-20 12:00:00", Step{1, Month}, "1965-11-01 00:00:00")
	f("America/Sao_Paulo", "2018-11-04 12:00:00", Step{1, Day}, "2018-11-04 01:00:00") // no midnight
	f("America/Havana", "2026-11-01 12:00:00", Step{1, Day}, "2026-11-01 00:00:00")
	f("Asia/Kathmandu", "2026-11-01 00:00:00", Step{1, Day}, "2026-11-01 00:00:00")
}

// The first of two midnights is the begin of a day, and a day that was left out has none.
func TestOddDays(t *testing.T) {
	havana := zoneOf(t, "America/Havana")
	list := Step{1, Day}.Windows(at(t, "2026-10-31 12:00:00", havana),
		at(t, "2026-11-03 12:00:00", havana), havana)
	if got := list[2] - list[1]; len(list) != 4 || got != 25*3600*1000 {
		t.Errorf("%v: the day of the change has %d ms", list, got)
	}
	apia := zoneOf(t, "Pacific/Apia")
	list = Step{1, Day}.Windows(at(t, "2011-12-29 12:00:00", apia), at(t, "2012-01-01 12:00:00", apia),
		apia)
	if want := []int64{0, 12 * 3600_000, 36 * 3600_000}; len(list) != 3 ||
		!slices.Equal(want, []int64{0, list[1] - list[0], list[2] - list[0]}) {
		t.Errorf("without 2011-12-30 the days begin at %v", list)
	}
}

// Windows are those of a walk over the hours of a range, each looked up on its own.
func TestWindowsEqualAWalk(t *testing.T) {
	names := []string{"UTC", "Europe/Zagreb", "America/New_York", "America/Sao_Paulo",
		"America/Havana",
		"Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "Pacific/Apia", "+0530"}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "zone")
		zone, err := Zone(name)
		if err != nil {
			rt.Fatal(err)
		}
		step := Step{rapid.SampledFrom([]int64{1, 2, 3, 12}).Draw(rt, "n"),
			Unit(rapid.IntRange(int(Day), int(Month)).Draw(rt, "unit"))}
		const minute = 60_000
		start := rapid.Int64Range(time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()/minute/15,
			time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()/minute/15).Draw(rt,
			"start") * 15 * minute
		end := start + rapid.Int64Range(1, 24*800).Draw(rt, "hours")*60*minute
		var want []int64
		last := ""
		for ms := start; ms < end; ms += 15 * minute {
			if key := windowOf(time.UnixMilli(ms).In(zone), step); key > last {
				want, last = append(want, ms), key
			}
		}
		got := step.Windows(start, end, zone)
		if !slices.Equal(got, want) {
			rt.Fatalf("%v in %s from %d to %d:\n%v, want\n%v", step, name, start, end, got, want)
		}
		if int64(len(got)) > step.Count(start, end)+2 {
			rt.Fatalf("%d windows, expected %d", len(got), step.Count(start, end))
		}
		for i, of := range got[1:] {
			if begin := step.Begin(of+rapid.Int64Range(0, 10*minute).Draw(rt, "behind"), zone); begin != of {
				rt.Fatalf("window %d begins at %d, and with a time in it at %d", i+1, of, begin)
			}
		}
	})
}

// windowOf names the window of a time, such that later ones sort behind it.
func windowOf(t time.Time, s Step) string {
	year, month, _ := t.Date()
	noon := time.Date(year, month, t.Day(), 12, 0, 0, 0, time.UTC)
	days := noon.Unix() / 86400
	var n int64
	switch s.Unit {
	case Day:
		n = days / s.N
	case Week:
		monday := days - int64(noon.Weekday()+6)%7
		n = (monday - 4) / (7 * s.N)
	case Month:
		n = (int64(year)*12 + int64(month) - 1) / s.N
	}
	return time.Unix(n, 0).UTC().Format(time.RFC3339)
}

func TestZones(t *testing.T) {
	for name := range strings.FieldsSeq(zones) {
		if _, err := Zone(name); err != nil {
			t.Errorf("%s of the list: %v", name, err)
		}
	}
	f := func(name, want string) {
		t.Helper()
		if _, err := Zone(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	f("Europe/Zagrab", `unknown time zone "Europe/Zagrab"; did you mean Europe/Zagreb, `)
	f("europe/zagreb", "did you mean Europe/Zagreb")
	f("zagreb", "did you mean Europe/Zagreb?")
	f("Local", "unknown time zone")
	f("localtime", "unknown time zone")
	f("right/Europe/Zagreb", "unknown time zone")
	f("../Europe/Zagreb", "unknown time zone")
	f("", "write a name such as Europe/Zagreb")
	f("+25:00", "unknown time zone")
}

func TestStepsAsText(t *testing.T) {
	for want, of := range map[string]Step{"1d": {1, Day}, "2w": {2, Week}, "3mo": {3, Month},
		"1y": {12, Month}, "18mo": {18, Month}} {
		if got := of.String(); got != want {
			t.Errorf("%v is %s, want %s", of.N, got, want)
		}
	}
	if got := (Step{18, Month}).Nominal(); got != (365+180)*dayMilli {
		t.Errorf("18 months have %d ms", got)
	}
}
