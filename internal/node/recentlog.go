package node

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"dalmatiner/internal/api/admin"
)

// recentLines is how many lines of the log the page can show, and maxLogText
// how many bytes of each: together they bound what the log keeps in memory.
const (
	recentLines = 256
	maxLogText  = 2000
)

// recentLog holds the last lines of the log.
type recentLog struct {
	mu    sync.Mutex
	lines []admin.LogLine // a ring once it is full
	count uint64          // lines there ever were
	text  bytes.Buffer    // the fields of the line under way
}

// keepRecent returns a logger that also keeps the last lines.
func keepRecent(logger *slog.Logger) (*recentLog, *slog.Logger) {
	r := &recentLog{}
	fields := slog.NewTextHandler(&r.text,
		&slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutHead})
	return r, slog.New(&recentHandler{recent: r, fields: fields, next: logger.Handler()})
}

// withoutHead drops what a line has fields of its own for.
func withoutHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey ||
		a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// list returns the lines that are kept, oldest first.
func (r *recentLog) list() []admin.LogLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]admin.LogLine, 0, len(r.lines))
	first := 0
	if len(r.lines) == recentLines {
		first = int(r.count % recentLines)
	}
	return append(append(out, r.lines[first:]...), r.lines[:first]...)
}

// recentHandler passes records on and keeps them.
type recentHandler struct {
	recent *recentLog
	fields slog.Handler // writes the fields of a record to recent.text
	next   slog.Handler
}

// Enabled reports whether the next handler takes the level: what is not in the
// log is not kept either.
func (h *recentHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle keeps a record and passes it on.
func (h *recentHandler) Handle(ctx context.Context, record slog.Record) error {
	h.keep(ctx, record)
	return h.next.Handle(ctx, record)
}

func (h *recentHandler) keep(ctx context.Context, record slog.Record) {
	r := h.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Reset()
	_ = h.fields.Handle(ctx, record) // a bytes.Buffer takes everything
	line := admin.LogLine{
		Number: r.count + 1, TimeMS: record.Time.UnixMilli(), Level: record.Level.String(),
		Message: cut(record.Message), Fields: cut(strings.TrimSuffix(r.text.String(), "\n")),
	}
	if len(r.lines) < recentLines {
		r.lines = append(r.lines, line)
	} else {
		r.lines[r.count%recentLines] = line
	}
	r.count++
}

// cut bounds a text.
func cut(text string) string {
	if len(text) <= maxLogText {
		return text
	}
	return strings.ToValidUTF8(text[:maxLogText], "") + "…"
}

// WithAttrs returns a handler whose records have the attributes.
func (h *recentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &recentHandler{h.recent, h.fields.WithAttrs(attrs), h.next.WithAttrs(attrs)}
}

// WithGroup returns a handler whose attributes stand in the group.
func (h *recentHandler) WithGroup(name string) slog.Handler {
	return &recentHandler{h.recent, h.fields.WithGroup(name), h.next.WithGroup(name)}
}
