package replica

import (
	"context"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/write"
)

// positions are what was written and is not known to be durable yet. Positions begin anew with
// every start: what a start finds is on disk, and stands at 0.
type positions struct {
	last    replication.Position
	pending []pendingPosition // ascending
}

// pendingPosition is what a position stands for: everything up to a token in the log of the store,
// and then a key in the log of the replica. A key must not outlive its rows.
type pendingPosition struct {
	at    replication.Position
	token write.Token
	key   *priorResult // nil: none
}

// next returns the position of something that was written. mu is held.
func (j *journal) next(t write.Token, key *priorResult) replication.Position {
	j.last++
	if n := len(j.pending); key == nil && n > 0 && j.pending[n-1].key == nil {
		// One entry for changes without a key that follow each other.
		p := &j.pending[n-1]
		p.at, p.token = j.last, laterToken(p.token, t)
		return j.last
	}
	j.pending = append(j.pending, pendingPosition{j.last, t, key})
	return j.last
}

func laterToken(a, b write.Token) write.Token {
	if a.Position < b.Position {
		return b
	}
	return a
}

// Durable returns when everything up to a position is on disk: first the rows in the log of the
// store, then keys and hints in that of the replica. Its error is the one of ctx or of a failed
// log, or it says that the node makes nothing durable.
func (j *journal) Durable(ctx context.Context, upTo replication.Position) error {
	var token write.Token
	j.mu.Lock()
	for _, p := range j.pending {
		if p.at <= upTo {
			token = laterToken(token, p.token)
		}
	}
	j.mu.Unlock()
	if err := j.o.Points.WaitDurable(ctx, token); err != nil {
		return err
	}
	if err := j.logKeys(upTo); err != nil {
		return err
	}
	if err := j.log.Sync(); err != nil {
		return err
	}
	return j.compact()
}

// logKeys logs the keys up to a position, whose rows are on disk.
func (j *journal) logKeys(upTo replication.Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.pending) > 0 && j.pending[0].at <= upTo {
		if s := j.pending[0].key; s != nil && !s.settled {
			lsn, err := j.append(j.keys.record(s))
			if err != nil {
				return err
			}
			s.lsn = lsn
		}
		j.pending = j.pending[1:]
	}
	return nil
}
