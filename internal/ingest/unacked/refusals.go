package unacked

import (
	"fmt"
	"log/slog"
	"net/netip"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/account"
)

// sampleBytes is how much of a refused input is logged.
const sampleBytes = 120

// Refusals counts what a listener refuses, each under its reason, and logs a
// sample: a sender that is wrong a million times a second should not fill a disk.
// Its methods may be called concurrently.
type Refusals struct {
	listener string
	account  *account.Account
	log      *loglimit.Logger
}

// NewRefusals returns a counter for one listener, whose name and an underscore
// stand before every reason in the account.
func NewRefusals(listener string, acc *account.Account, log *loglimit.Logger) *Refusals {
	return &Refusals{listener: listener, account: acc, log: log}
}

// Count counts one refused input of a peer. input is not kept.
func (r *Refusals) Count(reason string, peer netip.AddrPort, input []byte) {
	r.account.RefuseRequest(r.listener + "_" + reason)
	args := []any{"listener", r.listener, "reason", reason}
	if peer.IsValid() { // nobody sends what is scraped
		args = append(args, "peer", netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()).String())
	}
	r.log.Log(slog.LevelWarn, "refused", "input refused", append(args, "input", sample(input))...)
}

// Ended notes why a connection is over, where its peer did not just leave: that it was cut off
// within a message that had leased memory is counted, an error is logged.
func (r *Refusals) Ended(nc *conns.Conn, leased bool, err error) {
	switch why := nc.WhyCut(); {
	case why != "" && leased:
		r.account.RefuseRequest(r.listener + "_cut_" + why)
	case why == "" && err != nil:
		r.log.Log(slog.LevelInfo, "closed", "connection closed", "listener", r.listener, "peer",
			nc.RemoteAddr().String(), "err", err)
	}
}

// sample is the beginning of an input, quoted when it is written.
type sample []byte

// LogValue quotes the input: only of the few that are logged.
func (s sample) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%.*q", sampleBytes, []byte(s)))
}
