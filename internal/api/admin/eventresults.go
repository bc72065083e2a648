package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// EventList is one result of a query that selects events, in order of time.
type EventList struct {
	Name   string  `json:"name"`
	Values []Event `json:"values"`
	More   bool    `json:"more"` // there are more than an answer may have
}

// Event is one event of a query.
type Event struct {
	Timestamp int64           `json:"timestamp"` // ns
	Event     json.RawMessage `json:"event"`
}

// UnmarshalJSON parts the results into series and events, which come in one list.
func (r *Result) UnmarshalJSON(text []byte) error {
	type plain Result
	var in struct {
		*plain
		Results []json.RawMessage `json:"results"`
	}
	in.plain = (*plain)(r)
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	for _, result := range in.Results {
		var kind struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(result, &kind); err != nil {
			return err
		}
		if kind.Type == "events" {
			r.Events = append(r.Events, EventList{})
			if err := json.Unmarshal(result, &r.Events[len(r.Events)-1]); err != nil {
				return err
			}
			continue
		}
		r.Results = append(r.Results, Series{})
		if err := json.Unmarshal(result, &r.Results[len(r.Results)-1]); err != nil {
			return err
		}
	}
	return nil
}

// writeEvents prints each list of events under its name, a line for each event.
func writeEvents(w io.Writer, lists []EventList) (events int, err error) {
	for _, l := range lists {
		if _, err := fmt.Fprintf(w, "%s\n", l.Name); err != nil {
			return 0, err
		}
		t := newTable(0, 1)
		t.add("Time (UTC)", "Event")
		for _, e := range l.Values {
			t.add(time.Unix(0, e.Timestamp).UTC().Format("2006-01-02 15:04:05.000000000"), string(e.Event))
		}
		if err := t.write(w); err != nil {
			return 0, err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return 0, err
		}
		if l.More {
			if _, err := fmt.Fprintln(w,
				"There are more events than one answer may have: ask for a shorter range, or for fewer with "+
					"WHERE."); err != nil {
				return 0, err
			}
		}
		events += len(l.Values)
	}
	return events, nil
}
