package oneway

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"dalmatiner/internal/account"
)

const (
	// logEvery is the shortest time between two log lines about refusals: a
	// sender that is wrong a million times a second should not fill a disk.
	logEvery = time.Second

	// sampleBytes is how much of a refused input is logged.
	sampleBytes = 120
)

// Refusals counts what a door refuses, each under its reason, and logs a
// sample. Its methods may be called concurrently.
type Refusals struct {
	door    string
	account *account.Account
	logger  *slog.Logger
	now     func() time.Time

	mu     sync.Mutex
	logged time.Time // when the last line was written
	silent uint64    // refused since then
}

// NewRefusals returns a counter for one door, whose name and an underscore
// stand before every reason in the account.
func NewRefusals(door string, acc *account.Account, logger *slog.Logger, now func() time.Time) *Refusals {
	return &Refusals{door: door, account: acc, logger: logger, now: now}
}

// Count counts one refused input of a peer. input is not kept.
func (r *Refusals) Count(reason string, peer netip.AddrPort, input []byte) {
	r.account.RefuseRequest(r.door + "_" + reason)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent++
	now := r.now()
	if since := now.Sub(r.logged); since >= 0 && since < logEvery {
		return
	}
	r.logger.Warn("input refused", "door", r.door, "reason", reason,
		"peer", netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()).String(),
		"input", fmt.Sprintf("%.*q", sampleBytes, input), "refused", r.silent)
	r.logged, r.silent = now, 0
}

// Close logs how many refusals no line has told of yet.
func (r *Refusals) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent > 0 {
		r.logger.Warn("inputs refused since the last line about them", "door", r.door, "refused", r.silent)
		r.silent = 0
	}
}
