package statsd

import "dalmatiner/internal/model/term"

// termJSON returns a term as JSON.
func termJSON(t []byte) string { return string(term.Root(t).AppendJSON(nil)) }
