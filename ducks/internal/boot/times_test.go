package boot

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A boot has each stage once. A stage again begins a new one, but for firmware that asks twice.
func TestTimes(t *testing.T) {
	now := time.Unix(1e9, 0)
	var told []string
	times := NewTimes(func() time.Time { return now }, func(mac string, s Stage, since time.Duration) {
		told = append(told, fmt.Sprint(mac, " ", s, " ", since))
	})
	note := func(stages ...Stage) {
		for _, s := range stages {
			now = now.Add(time.Second)
			times.Note("m", s)
		}
	}
	note(Up, LoggedIn) // of a boot that nobody has seen
	if got := times.Of("m"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	note(Addressed, Addressed, Fetched, Loaded, Scripted)
	if got := times.Waiting(); !slices.Equal(got, []string{"m"}) {
		t.Errorf("%v wait", got)
	}
	note(LoggedIn)
	if got := times.Waiting(); !slices.Equal(got, []string{"m"}) {
		t.Errorf("%v wait for the first read", got)
	}
	note(Up, Read, Up)
	if got := times.Waiting(); len(got) != 0 {
		t.Errorf("%v wait", got)
	}
	note(Loaded, Scripted, Scripted) // its firmware is iPXE, and the disk did not boot
	got := times.Of("m")
	if len(got) != 3 || got[2].At[Up].Sub(got[2].Begun()) != 5*time.Second ||
		!got[2].At[Read].IsZero() || got[1].last() != Scripted || got[0].Begun() != now {
		t.Errorf("%v", got)
	}
	want := []string{"m dhcp 0s", "m tftp 1s", "m ipxe 1s", "m script 1s", "m login 1s", "m up 1s",
		"m ipxe 0s", "m script 1s", "m script 0s"}
	if !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
	for range 20 {
		note(Scripted)
	}
	if got := times.Of("m"); len(got) != coursesKept {
		t.Errorf("%d boots are kept", len(got))
	}
	for n := range mostCourses + 10 {
		now = now.Add(time.Second)
		times.Note(fmt.Sprint(n), Addressed)
	}
	if len(times.of) != mostCourses || len(times.Of("m")) != 0 {
		t.Errorf("%d machines are kept", len(times.of))
	}
}

// What is seen late of the boot before is not noted of one that has begun: that would be two.
func TestTimesOfTheBootBefore(t *testing.T) {
	now := time.Unix(1e9, 0)
	times := NewTimes(func() time.Time { return now }, func(string, Stage, time.Duration) {})
	for _, s := range []Stage{Addressed, Fetched, Loaded, Scripted, Addressed, LoggedIn, Read, Up,
		Fetched, LoggedIn, Loaded, Scripted, LoggedIn} {
		now = now.Add(time.Second)
		times.Note("m", s)
	}
	got := times.Of("m")
	if len(got) != 2 || got[0].Begun() != time.Unix(1e9+5, 0) || got[0].At[LoggedIn] != now ||
		!got[0].At[Read].IsZero() {
		t.Errorf("%v", got)
	}
}

// What a machine lacks is that of the boot that stands still for it, until it has something to
// load.
func TestWhatAMachineLacks(t *testing.T) {
	now := time.Unix(1e9, 0)
	times := NewTimes(func() time.Time { return now }, func(string, Stage, time.Duration) {})
	check := func(boots int, lacks string, last Stage) {
		t.Helper()
		got := times.Of("m")
		if len(got) != boots || got[0].Lacks != lacks || got[0].last() != last {
			t.Errorf("%+v, want %d boots, of which the last one lacks %q", got, boots, lacks)
		}
	}
	times.Lacks("m", "a.efi")
	times.Lacks("m", "b.efi")
	check(1, "b.efi", Addressed)
	times.Note("m", Addressed) // now the file is there
	check(1, "", Addressed)
	times.Lacks("m", "b.efi")
	times.Note("m", Fetched)
	check(1, "", Fetched)
	times.Note("m", Loaded)
	times.Lacks("m", "b.efi")
	check(2, "b.efi", Addressed)
}
