package oracle

// JudgeNames compares a listing of the bucket. A series with an acknowledged
// point that has not expired must be listed. One that was never sent, or has been deleted, must not
// be listed. One that expired and was seen to be gone must not come back. lost says for which
// series damage may have taken the name, or its deletion. The caller holds the lane.
func (b *Bucket) JudgeNames(listed []string, clock Clock, lost func(*Series) bool,
	found func(Finding)) int64 {
	there := make(map[string]bool, len(listed))
	for _, k := range listed {
		if there[k] {
			found(Finding{Class: Name, Text: "bucket " + b.Name + " lists twice: " + printable([]byte(k))})
		}
		there[k] = true
	}
	for _, s := range b.Series {
		k := string(s.Key)
		is := there[k]
		delete(there, k)
		must, may := s.mustBeListed(clock)
		switch {
		case is && !may && !lost(s):
			found(Finding{Name, b.Name, printable(s.Key), 0, "listed, and is deleted or was never sent"})
		case is && s.left:
			found(Finding{Name, b.Name, printable(s.Key), 0, "expired, was gone, and is listed again"})
		case !is && must && !lost(s):
			found(Finding{Name, b.Name, printable(s.Key), 0, "not listed"})
		case !is && b.TTL > 0 && may && !must:
			s.left = true
		}
	}
	for k := range there {
		found(Finding{Class: Name, Text: "bucket " + b.Name + " lists what nobody sent: " +
			printable([]byte(k))})
	}
	return int64(len(listed))
}

// mustBeListed says whether the name must, and whether it may be listed.
func (s *Series) mustBeListed(clock Clock) (must, may bool) {
	for i, n := range s.cells {
		if n == 0 && len(s.over[int32(i)]) == 0 {
			continue
		}
		may = true
		allowed := s.allowed(int32(i))
		if s.Bucket.First+int64(i) >= clock.Shown && len(allowed) > 0 && allowed[0] != 0 && !s.Deleting {
			return true, true
		}
	}
	return false, may
}

// Decide ends the doubt about a bucket whose deletion or creation was cut off,
// by whether the node lists it.
func (b *Bucket) Decide(there bool) {
	b.Lane.Lock()
	defer b.Lane.Unlock()
	switch {
	case b.State == Deleting && there, b.State == Adding && there:
		b.setState(Present)
	case b.State == Deleting, b.State == Adding:
		b.setState(Gone)
	}
}
