package load

import (
	"errors"
	"fmt"
	"net/http"

	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// metric is the text of a series of this load.
func metric(s *oracle.Series) string { return oracle.Text(s.Key) }

// deleteSeries deletes a series. Nothing of it is under way, but all of it may have
// been refused: then there may be no such series.
func (a *lane) deleteSeries(n *subject.Node) error {
	if err := a.drain(); err != nil {
		return err
	}
	s := a.bucket.Series[a.rng.IntN(len(a.bucket.Series))]
	if !s.Written() || s.Deleting {
		return nil
	}
	known := s.Acknowledged()
	s.SetDeleting()
	_, err := n.Post("/admin/series/delete",
		map[string]any{"bucket": a.bucket.Name, "metric": metric(s)})
	if err == nil {
		s.Deleted()
		return nil
	}
	var refused *subject.StatusError
	if errors.As(err, &refused) {
		if !known && refused.Code == http.StatusNotFound {
			s.Deleted()
			return nil
		}
		a.load.problem("deletion of %s in %s: %v", metric(s), a.bucket.Name, err)
	}
	// It may have happened; until the next start nothing is known, so nothing more
	// is sent.
	return fmt.Errorf("deletion in doubt: %w", err)
}

func (a *lane) deleteBucket(n *subject.Node) error {
	if err := a.drain(); err != nil {
		return err
	}
	a.bucket.SetState(oracle.Deleting)
	_, err := n.Post("/admin/buckets/delete", map[string]any{"name": a.bucket.Name})
	if err == nil {
		a.bucket.SetState(oracle.Gone)
	}
	var refused *subject.StatusError
	if errors.As(err, &refused) {
		a.load.problem("deletion of bucket %s: %v", a.bucket.Name, err)
	}
	return err
}
