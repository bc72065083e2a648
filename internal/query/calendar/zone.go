package calendar

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"dalmatiner/internal/host/suggest"
)

// zones are the names of the IANA database, for those who write another one.
//
//go:embed zones.txt
var zones string

// Zone returns the time zone of a name of the IANA database, such as Europe/Zagreb, or of an
// offset such as +0200. The error of another name says which one may be meant.
func Zone(name string) (*time.Location, error) {
	if zone, ok := offset(name); ok {
		return zone, nil
	}
	// Other files of the system's database begin with a small letter. Local would be another zone
	// on each node.
	if name != "" && name[0] >= 'A' && name[0] <= 'Z' && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("unknown time zone %.100q%s", name, hint(name))
}

// offset returns the zone of an offset.
func offset(text string) (*time.Location, bool) {
	for _, layout := range []string{"-0700", "-07:00", "-07"} {
		if t, err := time.Parse(layout, text); err == nil {
			_, seconds := t.Zone()
			return time.FixedZone(text, seconds), true
		}
	}
	return nil, false
}

// hint names zones that may be meant: by their whole name, or by the city.
func hint(name string) string {
	near, cities := suggest.NewCollector(name), suggest.NewCollector(name)
	whole := make(map[string]string)
	for zone := range strings.FieldsSeq(zones) {
		near.Add(zone)
		city := zone[strings.LastIndexByte(zone, '/')+1:]
		cities.Add(city)
		whole[city] = zone
	}
	list := near.Names()
	if list == nil {
		for _, city := range cities.Names() {
			list = append(list, whole[city])
		}
	}
	if list == nil {
		return ": write a name such as Europe/Zagreb, or an offset such as +0200"
	}
	return suggest.Hint(list)
}
