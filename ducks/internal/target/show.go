package target

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// sessions asks tgtd who is logged in. Callers hold mu.
func (t *Targets) sessions(ctx context.Context, m *made) ([]Session, error) {
	out, err := t.options.tgtadm(ctx, "--mode", "conn", "--op", "show", "--tid", strconv.Itoa(m.TID))
	if err != nil {
		return nil, err
	}
	return parseSessions(out)
}

// parseSessions reads what tgtadm shows of connections.
func parseSessions(out []byte) (list []Session, err error) {
	for line := range strings.Lines(string(out)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		if key == "Session" {
			id, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("tgtadm shows session %q", value)
			}
			list = append(list, Session{ID: id})
			continue
		}
		if len(list) == 0 {
			continue
		}
		last := &list[len(list)-1]
		switch key {
		case "Initiator":
			last.Initiator, _, _ = strings.Cut(value, " alias: ")
		case "IP Address":
			if last.Address, err = netip.ParseAddr(value); err != nil {
				return nil, fmt.Errorf("tgtadm shows address %q", value)
			}
		}
	}
	return list, nil
}
