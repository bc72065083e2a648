package main

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/verify"
)

// maxViolations ends an attack: what comes after is mostly the same.
const maxViolations = 8

// outcome is the line of an attack in the table.
type outcome struct {
	name       string
	notRun     string
	took       time.Duration
	rounds     int
	events     int // kills, cuts, failed operations, damaged places, cases
	compared   verify.Report
	violations int // rounds with one
	reproduce  []string
	kinds      map[string]int // rounds by what was harmed
	peak       int64          // anonymous memory, bytes
}

// table prints the outcomes and says whether all is well.
func table(outcomes []*outcome) bool {
	fmt.Printf("\n%-7s %6s %7s %13s %6s %6s %11s %10s %9s\n", "Attack", "Rounds", "Events", "Points",
		"Wrong", "Lost", "Unexplained", "Peak MiB", "Took")
	ok := true
	for _, o := range outcomes {
		if o.notRun != "" {
			fmt.Printf("%-7s NOT RUN: %s\n", o.name, o.notRun)
			continue
		}
		missing := o.compared.Classes[oracle.Missing]
		peak := "-"
		if o.peak > 0 {
			peak = fmt.Sprint(o.peak >> 20)
		}
		fmt.Printf("%-7s %6d %7d %13d %6d %6d %11d %10s %9v\n", o.name, o.rounds, o.events,
			o.compared.Slots,
			o.compared.Faults-missing, o.compared.Lost, missing, peak, o.took.Round(time.Second))
		ok = ok && o.violations == 0
	}
	fmt.Println("Points: slots read back and judged. Wrong: values, names and answers that must not " +
		"be. Lost: acknowledged points that are gaps where")
	fmt.Println("damage was put, and are named as such. Unexplained: acknowledged points that are " +
		"missing anywhere else.")
	for _, o := range outcomes {
		if c := o.compared; c.Events+c.Tags > 0 {
			fmt.Printf("%s: %d events and %d tags compared; lost where damage was put: %d and %d\n", o.name,
				c.Events, c.Tags, c.LostEvents, c.LostTags)
		}
		kinds := make([]string, 0, len(o.kinds))
		for k, n := range o.kinds {
			kinds = append(kinds, fmt.Sprintf("%s %d", k, n))
		}
		sort.Strings(kinds)
		if len(kinds) > 0 {
			fmt.Printf("%s: %s\n", o.name, strings.Join(kinds, ", "))
		}
	}
	for _, o := range outcomes {
		for _, r := range o.reproduce {
			fmt.Println("reproduce:", r)
		}
	}
	if ok {
		fmt.Println("No violation.")
	} else {
		fmt.Println("VIOLATIONS: see above.")
	}
	return ok
}
