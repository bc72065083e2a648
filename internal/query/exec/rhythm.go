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
	lost := s.Unknown.From(begin)
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
