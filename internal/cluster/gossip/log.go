package gossip

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"dalmatiner/internal/host/loglimit"
)

// logger passes the lines of dskit on to slog. Anybody who reaches the port can cause most of
// them, so each text is limited.
type logger struct{ to *loglimit.Logger }

func newLogger(l *slog.Logger) logger { return logger{loglimit.New(l, time.Now)} }

// Log is part of log.Logger.
func (l logger) Log(pairs ...any) error {
	at, msg := slog.LevelInfo, "gossip"
	var args []any
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := fmt.Sprint(pairs[i]), pairs[i+1]
		if v, ok := value.(log.Valuer); ok {
			value = v()
		}
		switch key {
		case "level":
			at = levelOf(value)
		case "msg":
			msg = fmt.Sprint(value)
		default:
			args = append(args, key, fmt.Sprint(value))
		}
	}
	if strings.Contains(msg, "locally-generated") {
		// at the start there is no port to send the ring from yet, at the end none any more
		at = slog.LevelDebug
	}
	l.to.Log(at, msg, "gossip: "+msg, args...)
	return nil
}

// levelOf lowers info to debug: what dskit finds worth it, joins and waits, is no news to an
// operator, who sees members go up and down.
func levelOf(value any) slog.Level {
	switch value {
	case level.ErrorValue():
		return slog.LevelError
	case level.WarnValue():
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
