// Package loglimit keeps log lines that anybody on the network can cause from
// filling a disk: at most one line a second for each cause, and each line says how
// many of its cause were left out before it.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// every is the shortest time between two lines of one cause.
	every = time.Second

	// maxCauses bounds the causes that are remembered. Causes are texts of the
	// program, not of its clients; those beyond the bound share one limit.
	maxCauses = 64

	otherCause = "other"
)

// Logger writes log lines at a limited rate. Its methods may be called concurrently.
type Logger struct {
	logger *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	causes map[string]*cause
}

// cause is what is known of the lines of one cause.
type cause struct {
	logged  time.Time // when its last line was written
	leftOut uint64    // lines since then
	level   slog.Level
	msg     string // of the line left out last
}

// New returns a Logger that writes to logger.
func New(logger *slog.Logger, now func() time.Time) *Logger {
	return &Logger{logger: logger, now: now, causes: make(map[string]*cause)}
}

// Log writes a line about a cause unless one was written within the last second.
// The line has the attribute left_out if lines of its cause were left out before
// it. args are those of slog; it is true when the line was written.
func (l *Logger) Log(level slog.Level, about, msg string, args ...any) bool {
	l.mu.Lock()
	c := l.causeOf(about)
	now := l.now()
	// A clock that was set back does not silence the log.
	if since := now.Sub(c.logged); since >= 0 && since < every {
		c.leftOut++
		c.level, c.msg = level, msg
		l.mu.Unlock()
		return false
	}
	leftOut := c.leftOut
	c.logged, c.leftOut = now, 0
	l.mu.Unlock()
	if leftOut > 0 {
		args = append(args[:len(args):len(args)], "left_out", leftOut)
	}
	l.logger.Log(context.Background(), level, msg, args...)
	return true
}

// causeOf returns the state of a cause. The lock is held.
func (l *Logger) causeOf(about string) *cause {
	c := l.causes[about]
	if c == nil && len(l.causes) >= maxCauses {
		about = otherCause
		c = l.causes[about]
	}
	if c == nil {
		c = &cause{}
		l.causes[about] = c
	}
	return c
}

// Close writes a line for every cause of which lines were left out that no line has
// told of yet. The Logger can be used again.
func (l *Logger) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for about, c := range l.causes {
		if c.leftOut > 0 {
			l.logger.Log(context.Background(), c.level, "log lines were left out", "cause", about, "line",
				c.msg, "left_out", c.leftOut)
			c.leftOut = 0
		}
	}
}

// Writer returns a writer for loggers that only know bytes, such as that of an
// http.Server: each call of Write is a line about the cause.
func (l *Logger) Writer(level slog.Level, about string) *Writer {
	return &Writer{l: l, level: level, about: about}
}

// Writer writes lines at a limited rate.
type Writer struct {
	l     *Logger
	level slog.Level
	about string
}

// Write writes one line, or leaves it out.
func (w *Writer) Write(p []byte) (int, error) {
	line := p
	for len(line) > 0 && line[len(line)-1] == '\n' {
		line = line[:len(line)-1]
	}
	w.l.Log(w.level, w.about, string(line))
	return len(p), nil
}
