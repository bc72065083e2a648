package replication

// Chunks that a store adopts go into files past its log, so that nobody who waits for the log waits for them.

// Files are how far a store is with them.
type Files struct {
	core    *Core
	adopted uint64   // the last chunk that is in a file
	waiting []onFile // ascending
}

// onFile is what happens once the chunks up to one are in files.
type onFile struct {
	last uint64
	do   func()
}

// Files returns how far the store is with chunks that it adopts.
func (c *Core) Files() *Files { return c.files }

// whenStored does something once all is on disk that this node has now.
func (f *Files) whenStored(do func()) {
	last, _ := f.core.store.Adopting()
	if last <= f.adopted {
		f.core.whenSynced(f.core.noted, do)
		return
	}
	f.waiting = append(f.waiting, onFile{last, do})
}

// Awaited reports whether somebody waits for chunks that the store has to adopt.
func (f *Files) Awaited() bool { return len(f.waiting) > 0 }

// Adopted says that the chunks up to one are in files, on disk.
func (f *Files) Adopted(t Time, upTo uint64) {
	f.core.now = t
	f.adopted = max(f.adopted, upTo)
	for len(f.waiting) > 0 && f.waiting[0].last <= upTo {
		do := f.waiting[0].do
		f.waiting = f.waiting[1:]
		f.core.whenSynced(f.core.noted, do)
	}
}

// crowded reports whether so many chunks wait to be adopted that no more are asked for.
func (f *Files) crowded() bool {
	_, waiting := f.core.store.Adopting()
	return waiting > maxAdopting
}
