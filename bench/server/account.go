package server

import (
	"context"
	"fmt"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/model/account"
)

// Stat returns one of the store's own figures.
func (s *Server) Stat(ctx context.Context, name string) (float64, error) {
	all, err := s.Client().Stats(ctx)
	if err != nil {
		return 0, err
	}
	for _, st := range all {
		if st.Name == name {
			return st.Value, nil
		}
	}
	return 0, fmt.Errorf("the store has no figure %s", name)
}

// Received returns the points of a bucket in the store's account.
func (s *Server) Received(ctx context.Context, bucket string) (int64, error) {
	account, err := s.Client().Account(ctx, bucket, 0)
	if err != nil {
		return 0, err
	}
	for i := range account.Rows {
		if account.Rows[i].Bucket == bucket {
			return int64(account.Rows[i].Received), nil
		}
	}
	return 0, fmt.Errorf("bucket %s is not in the account", bucket)
}

// Stored returns the points that a bucket holds by the account; 0 before it is
// there.
func (s *Server) Stored(ctx context.Context, bucket string) (uint64, error) {
	a, err := s.Client().Account(ctx, "", 0)
	if err != nil {
		return 0, err
	}
	for _, row := range a.Rows {
		if row.Bucket == bucket {
			if n := row.Refused[account.Future.String()]; n > 0 {
				return 0, fmt.Errorf("%d points were refused as of the future: the senders have begun too late",
					n)
			}
			return row.Accepted + row.Duplicate + row.Conflicting + row.Late, nil
		}
	}
	return 0, nil
}

// Accepted checks that the store's account has every point that was sent, and
// as new ones: a load of duplicates would cost something else.
func (s *Server) Accepted(ctx context.Context, bucket string, want int64) error {
	account, err := s.Client().Account(ctx, bucket, 0)
	if err != nil {
		return err
	}
	for i := range account.Rows {
		if r := &account.Rows[i]; r.Bucket == bucket && int64(r.Accepted) == want &&
			int64(r.Received) == want {
			return nil
		}
	}
	return fmt.Errorf("%d points were sent, the account says %+v", want, account.Rows)
}

// Unaccounted waits until what is under way has arrived and returns the points
// sent that are neither received nor dropped. What the kernel drops, it drops of
// datagrams of perMessage points; perMessage is 0 for senders over TCP.
func (s *Server) Unaccounted(ctx context.Context, bucket string, sent int64,
	perMessage int) (float64, error) {
	for left := time.Now().Add(10 * time.Second); ; {
		received, err := s.Received(ctx, bucket)
		if err != nil {
			return 0, err
		}
		if perMessage > 0 {
			drops, err := s.Stat(ctx, "graphite_udp_kernel_drop_total")
			if err != nil {
				return 0, err
			}
			received += int64(drops) * int64(perMessage)
		}
		if received == sent || time.Now().After(left) {
			return float64(sent) - float64(received), nil
		}
		if err := measure.Pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// HeadNote tells what of the memory is the head's.
func (s *Server) HeadNote(ctx context.Context) (string, error) {
	var mib [3]float64
	for i, name := range []string{"head_bytes", "head_warm_bytes", "open_chunk_bytes"} {
		v, err := s.Stat(ctx, name)
		if err != nil {
			return "", err
		}
		mib[i] = v / (1 << 20)
	}
	return fmt.Sprintf("open blocks had %.0f MiB, spare ones %.0f, open chunks %.0f", mib[0], mib[1],
		mib[2]), nil
}
