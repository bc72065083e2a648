package admin

import (
	"bytes"
	"encoding/json"
)

// Problem is an error as JSON.
type Problem struct {
	// a word for programs: the reason under which the account counts it, or the status
	Error    string    `json:"error"`
	Message  string    `json:"message"`
	Position *Position `json:"position,omitempty"`
	Limit    *Excess   `json:"limit,omitempty"`
}

// Position is the place in a query that is the reason of an error.
type Position struct {
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // in characters, from 1
	Offset int    `json:"offset"` // in bytes, from 0
	Near   string `json:"near"`   // the line, and below it a mark at the place
}

// Excess is a limit and what was beyond it.
type Excess struct {
	What  string `json:"what"`
	Got   int64  `json:"got"` // at least
	Limit int64  `json:"limit"`
}

// Text returns the form for people: the message, and the place below it.
func (p *Problem) Text() string {
	if p.Position == nil || p.Position.Near == "" {
		return p.Message
	}
	return p.Message + "\n" + p.Position.Near
}

// JSON returns the form for programs, with a line feed.
func (p *Problem) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p); err != nil {
		panic(err) // there is nothing in it that JSON cannot hold
	}
	return b.Bytes()
}

// remedy returns what the operator of a command does about a problem of the node at
// addr. The text itself goes to senders and programs, too, who have no commands.
func (p *Problem) remedy(addr string) string {
	if p.Error == "query_unknown_bucket" {
		return listBuckets(addr)
	}
	return ""
}

// listBuckets says which command lists the buckets of the node at addr.
func listBuckets(addr string) string {
	return ": " + command("ddb admin buckets list", addr) + " shows all"
}

// command returns the text of a command, as the node at addr takes it.
func command(text, addr string) string { return text + NodeFlag(addr) }

// NodeFlag returns what a command says, behind all else, about the node at addr that
// it is meant for, "" about the default one.
func NodeFlag(addr string) string {
	if addr == "" || addr == defaultAddr {
		return ""
	}
	return " --addr " + addr
}

// problemText returns the text of the answer of the node at addr to a request that
// failed: that of a Problem with its remedy, or else the body.
func problemText(body []byte, addr string) string {
	var p Problem
	if err := json.Unmarshal(body, &p); err == nil && p.Message != "" {
		p.Message += p.remedy(addr)
		return p.Text()
	}
	return string(bytes.TrimSpace(body))
}
