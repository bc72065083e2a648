package exec

// hold gives values between the points of a sender that is slower than its bucket a
// confidence, so that they are no gaps: a point stands for the slots up to the next one,
// and for half as many more, since senders are late at times. Behind a point that is
// missing there is a gap, and what damage took stays one.
func (s *Series) hold() {
	if s.Interval <= s.BucketResolution || s.Interval <= s.Resolution {
		return
	}
	share := float64(s.BucketResolution) / float64(s.Interval)
	begin := s.Start - s.Start%s.BucketResolution
	past := begin // what the last point stands for ends there
	lost := s.Unknown.from(begin)
	for i, c := range s.Confidence {
		at := begin + int64(i)*s.Resolution
		switch {
		case c > 0:
			past = at + s.Interval + s.Interval/2
		case lost(at, at+s.Resolution):
			past = at
		case at < past:
			s.Confidence[i] = share
		}
	}
}

// from returns a function that reports whether a time range may have unknown slots. It is
// asked for ranges that ascend, none of them before begin.
func (h *Holes) from(begin int64) func(from, to int64) bool {
	if h == nil {
		return func(int64, int64) bool { return false }
	}
	ranges, end := h.Ranges, begin
	return func(from, to int64) bool {
		for len(ranges) > 0 && ranges[0][1] <= from {
			end, ranges = ranges[0][1], ranges[1:]
		}
		if len(ranges) == 0 {
			return h.More > 0 && to > end // those behind the last one listed are anywhere
		}
		return ranges[0][0] < to
	}
}
