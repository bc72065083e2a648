package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
)

// queryError is an error with the text of the query it is about.
type queryError struct {
	error
	text string
}

func (e *queryError) Unwrap() error { return e.error }

// newProblem describes an error that is answered with a status.
func newProblem(err error, status int, reason string) admin.Problem {
	p := admin.Problem{Error: reason, Message: err.Error()}
	if reason == "" {
		p.Error = strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
	}
	var (
		asked  *queryError
		syntax *dql.Error
		limit  *query.LimitError
	)
	if errors.As(err, &syntax) && errors.As(err, &asked) {
		p.Position = &admin.Position{
			Line:   syntax.Line,
			Column: syntax.Col,
			Offset: syntax.Pos,
			Near:   near(asked.text, syntax.Pos),
		}
	}
	if errors.As(err, &limit) {
		p.Limit = &admin.Excess{What: limit.What, Got: limit.Got, Limit: limit.Limit}
	}
	return p
}

// nearBefore and nearAfter are the characters of a long line that are shown
// around the place.
const (
	nearBefore = 60
	nearAfter  = 60
)

// near returns the line of text around the byte offset pos, and below it a
// mark at the place. Long lines are cut, what cannot be printed is a blank, and
// an empty line is nothing.
func near(text string, pos int) string {
	pos = min(max(pos, 0), len(text))
	from := strings.LastIndexByte(text[:pos], '\n') + 1
	to := len(text)
	if n := strings.IndexByte(text[pos:], '\n'); n >= 0 {
		to = pos + n
	}
	cutLeft, cutRight := "", ""
	start, end := pos, pos
	for n := 0; start > from; n++ {
		if n == nearBefore {
			cutLeft = "…"
			break
		}
		_, size := utf8.DecodeLastRuneInString(text[from:start])
		start -= size
	}
	for n := 0; end < to; n++ {
		if n == nearAfter {
			cutRight = "…"
			break
		}
		_, size := utf8.DecodeRuneInString(text[end:to])
		end += size
	}
	if end == from {
		return ""
	}
	before := cutLeft + printable(text[start:pos])
	line := strings.TrimRight(before+printable(text[pos:end])+cutRight, " ")
	return line + "\n" + strings.Repeat(" ", utf8.RuneCountInString(before)) + "^"
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// wantsJSON reports whether errors go out as JSON: with format=json, or when
// Accept names it before anything that text satisfies.
func wantsJSON(r *http.Request) bool {
	if format := param(r, "format"); format != "" {
		return format == "json"
	}
	for mediaType := range entries(r, "Accept") {
		switch mediaType {
		case "application/json":
			return true
		case "text/plain", "text/html", "text/*", "*/*":
			return false
		}
	}
	return false
}
