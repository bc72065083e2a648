package startup

import (
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"
)

// openCatalogue loads the series. It rebuilds the catalogue from the segments if it does not open,
// if it is older than the MANIFEST says, or if nothing was ever written to it although there are
// segments. A catalogue that is empty because all series have gone has a generation. One that was
// rebuilt without names that could not be read gets those.
func (s *start) openCatalogue() error {
	mark, dir := s.found.State.Catalogue, s.path(datadir.Catalogue)
	cat, err := catalogue.Open(s.o.FS, dir, s.o.Logger)
	segments := len(s.o.Versions.Latest().Segments) > 0
	if at := catalogue.AtLeast(mark, segments); err == nil && cat.FoundMark() < at {
		err = errors.Join(cat.Close(), fmt.Errorf("%w: it opens in state %d, the MANIFEST knows state %d",
			catalogue.ErrDamaged, cat.FoundMark(), at))
	}
	loaded, written := 0, false
	if err == nil {
		s.d.Catalogue, written = cat, cat.Generation() > 0
		if loaded, err = s.loadCatalogue(); errors.Is(err, catalogue.ErrDamaged) {
			err = errors.Join(err, cat.Close())
			s.d.Catalogue = nil
		}
	}
	if errors.Is(err, catalogue.ErrDamaged) {
		s.o.Damage.Report(datadir.Catalogue, err)
		where, err := catalogue.SetAside(s.o.FS, dir, s.path(datadir.LostFound))
		if err != nil {
			return err
		}
		s.o.Logger.Warn("the catalogue was set aside and is rebuilt from the segments and the log",
			"where", where)
		cat, err = catalogue.Open(s.o.FS, dir, s.o.Logger)
		if err != nil {
			return err
		}
		s.d.Catalogue = cat
		return s.rebuildCatalogue(false)
	}
	switch {
	case err != nil:
		return err
	case mark&catalogue.NamesUnread != 0 || segments && !written:
		return s.rebuildCatalogue(loaded > 0)
	case mark == 0 && cat.Mark() > 0:
		return s.commitCatalogue() // from now on it is missed
	}
	return nil
}

func (s *start) loadCatalogue() (n int, err error) {
	err = s.d.Catalogue.Load(func(e segment.Series) error {
		n++
		return s.found.Ownership.Restore(e)
	})
	s.found.Ownership.Settle()
	return n, err
}

// rebuildCatalogue takes the series from the segments that name them; where the
// catalogue has been loaded, those that it does not know.
func (s *start) rebuildCatalogue(loaded bool) error {
	s.found.Ownership.Rebuilt = true
	all, deleted, unread, err := s.names()
	if err != nil {
		return err
	}
	s.d.Catalogue.SetNamesUnread(unread > 0)
	if unread > 0 {
		s.o.Logger.Error("names of series could not be read: what segments hold of these series is not "+
			"served, and the next start looks for them again",
			"segments", unread)
	}
	if loaded {
		all = slices.DeleteFunc(all, func(e segment.Series) bool {
			return s.o.Columns.Index.Has(metric.SeriesID(e.Hash))
		})
	}
	list := s.formerColumns(latest(s.withoutEnded(all, deleted)), deleted)
	for _, e := range list {
		if err := s.found.Ownership.Restore(e); err != nil {
			return err
		}
	}
	s.found.Ownership.Settle()
	if err = s.d.Catalogue.Put(list); err == nil {
		err = s.d.Catalogue.Flush()
	}
	if failed := s.d.Catalogue.Failure(); failed != nil {
		s.o.Damage.Report(datadir.Catalogue, failed) // the series are in memory
	} else if err != nil {
		return err
	}
	return s.commitCatalogue()
}

// commitCatalogue notes in the MANIFEST what the catalogue holds.
func (s *start) commitCatalogue() error {
	err := s.d.Manifest.Commit(manifest.Edit{Catalogue: s.d.Catalogue.Mark()})
	if errors.Is(err, manifest.ErrUnwritten) {
		return nil // the next commit says it, or the next start rebuilds again
	}
	return err
}
