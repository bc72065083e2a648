package tagstore

import (
	"cmp"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/logrecord"
)

// Load takes the committed files into the index. It is called once; whoever needs the tags waits
// for it. Damage is named and counted, and copies that are not whole are written again.
func (s *Store) Load(all []manifest.File) {
	s.loadErr = s.load(all)
	close(s.loaded)
}

func (s *Store) load(all []manifest.File) error {
	files := slices.DeleteFunc(slices.Clone(all), func(f manifest.File) bool {
		return f.Kind != manifest.TagBase && f.Kind != manifest.TagChanges
	})
	// The base that replaces the most comes first, then what it does not replace.
	slices.SortFunc(files, func(a, b manifest.File) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Replaces, a.Replaces),
			cmp.Compare(a.Seq, b.Seq))
	})
	for i := range files {
		if err := s.loadFile(&files[i]); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = files
	if !s.lacking.any {
		s.from = s.past
	}
	if s.spoilt && !s.unread || s.due() {
		s.wantMerge()
	}
	return nil
}

// Missing counts what was in files that are lost; it was named elsewhere. taken says that there are
// files not named in the MANIFEST: the log may have changes that are in none. It is called before
// Load.
func (s *Store) Missing(files []manifest.LostFile, taken bool) {
	s.lacking.any = taken
	for i := range files {
		if k := files[i].Kind; k == manifest.TagBase || k == manifest.TagChanges {
			s.counters.lost.Add(files[i].Items)
			s.lacking.any = true
		}
	}
}

// Loaded waits until Load is done, and returns what kept it from taking the files. That says
// nothing about them.
func (s *Store) Loaded() error {
	<-s.loaded
	return s.loadErr
}

// loadFile takes one file.
func (s *Store) loadFile(f *manifest.File) error {
	path := datadir.FilePaths(f.Name())[0]
	if s.past > 0 && f.From > s.past {
		s.spoilt = true // how much is lost is known where the MANIFEST names the file, see Missing
		s.o.Damage.Report("tags "+path,
			fmt.Errorf("the file in front of it is missing: changes of tags between the positions %d and "+
				"%d of the log are lost", s.past, f.From))
	}
	s.past = max(s.past, f.Past)
	take, done := s.loadRecord, func() error { return nil }
	if f.Kind == manifest.TagBase {
		take, done = s.loadBase()
	}
	report, err := s.read(f, func(item []byte) {
		if err := take(item); err != nil {
			s.damaged(f, 0, err)
		}
	})
	if err == nil {
		err = done()
	}
	if err != nil {
		return fmt.Errorf("tags: %s: %w", path, err)
	}
	s.name(&report)
	if report.Lost {
		s.unread = s.unread || report.Unread
		s.damaged(f, max(report.LostEntries, 0),
			fmt.Errorf("%s are lost in both copies; all others are served", report.LostText(f.Kind)))
		return nil
	}
	if _, err = s.mend(f, &report); err != nil { // the other copy has all of it
		s.o.Logger.Error("a damaged copy of tags cannot be written again now: it is tried behind a "+
			"later flush", "file", path, "err", err)
	}
	return nil
}

// read gives every item of a file to fn, while the next ones are read and decompressed.
func (s *Store) read(f *manifest.File, fn func(item []byte)) (report mirror.Report, err error) {
	items, free := make(chan []byte, itemsAhead), make(chan []byte, itemsAhead+2)
	for range cap(free) {
		free <- nil
	}
	go func() {
		defer close(items)
		report, err = mirror.Read(s.o.FS, s.o.Dir, s.o.Of(), f, func(item []byte) error {
			items <- append((<-free)[:0], item...)
			return nil
		})
	}()
	for item := range items {
		fn(item)
		free <- item
	}
	return report, err
}

// itemsAhead is how many items of a file are read before they are taken.
const itemsAhead = 4

// keeps says what of a series is taken from the files. Its bucket may be one that only the log
// names.
func (s *Store) keeps(bucket uint64, key []byte) (after uint64, ok bool) {
	after, ok = s.o.Incarnation(bucket, key)
	if !ok && s.o.Deleted(bucket) {
		return 0, false
	}
	if !ok {
		if s.unnamed == nil {
			s.unnamed = make(map[uint64]bool)
		}
		s.unnamed[bucket] = true
	}
	return after, true
}

// Settle drops the tags of buckets that nothing names, now that the log has been read. Where damage
// took their names, the loss is named and counted.
func (s *Store) Settle() {
	for bucket := range s.unnamed {
		if _, ok := s.o.Incarnation(bucket, nil); ok {
			continue
		}
		n := s.index.DropBucket(bucket)
		if n > 0 && !s.o.Deleted(bucket) {
			s.counters.lost.Add(int64(n))
			s.o.Damage.Report("tags",
				fmt.Errorf("nothing names the bucket with the id %016x: the tags of %d series of it are not "+
					"served", bucket, n))
		}
	}
	s.unnamed = nil
}

// damaged names what is lost, and counts what is known of it: 1 where nothing is.
func (s *Store) damaged(f *manifest.File, entries int64, err error) {
	entries = max(entries, 1)
	s.spoilt, s.lacking.any = true, true
	if n := len(s.lacking.losses); n > 0 && s.lacking.losses[n-1].FileName == f.Name() {
		s.lacking.losses[n-1].Items += entries
	} else {
		s.lacking.losses = append(s.lacking.losses, manifest.LostFile{FileName: f.Name(), Items: entries})
	}
	s.counters.lost.Add(entries)
	s.o.Damage.Report("tags "+datadir.FilePaths(f.Name())[0], err)
}

// loadBase returns what takes the items of a base, and what ends it. A base has blocks of rows, and
// records for rows that are too long for one.
func (s *Store) loadBase() (take func(item []byte) error, done func() error) {
	var b tags.Block
	rows := tags.NewLoader(s.index, s.keeps)
	take = func(item []byte) error {
		if !tags.IsBlock(item) {
			return eachChange(item, rows.Change)
		}
		if err := b.Parse(item); err != nil {
			return err
		}
		return rows.Add(&b)
	}
	return take, func() error {
		err := rows.Finish()
		s.clock = max(s.clock, rows.Clock())
		return err
	}
}

// eachChange calls fn for every change of a record.
func eachChange(item []byte, fn func(*tags.Change)) error {
	r, err := logrecord.Parse(item)
	if err != nil {
		return err
	}
	return r.EachChange(func(c *tags.Change) error {
		fn(c)
		return nil
	})
}

// loadRecord takes a record of a file of changes.
func (s *Store) loadRecord(item []byte) error {
	r, err := logrecord.Parse(item)
	if err != nil {
		return err
	}
	switch r.Kind {
	case logrecord.Tags:
		return r.EachChange(func(c *tags.Change) error {
			s.clock = max(s.clock, c.Clock)
			if after, ok := s.keeps(c.Bucket, c.Key); ok && c.Clock > after {
				s.index.Apply(c)
			}
			return nil
		})
	case logrecord.SeriesDeleted:
		if clock, ok := s.o.upTo(r.Why, r.Incarnation); ok {
			for id := range seriesOf(&r) {
				s.index.Drop(r.Bucket, id, clock)
			}
		}
	}
	return nil
}
