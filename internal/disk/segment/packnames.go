package segment

import "dalmatiner/internal/model/identity"

// packNames appends the records in src, which appendSeries wrote, as they are stored, and
// returns how many of the bytes in front do not compress.
func packNames(p *identity.Packer, dst, src []byte) (packed []byte, plain int) {
	p.Begin(0, 0, 0)
	for len(src) > 0 {
		s, rest, err := parseSeries(src)
		if err != nil {
			panic("segment: an identity that was added is none")
		}
		p.Add(&s)
		src = rest
	}
	return p.Append(dst)
}

// unpackNames appends to dst the records that packNames stored as src: at most limit bytes.
func unpackNames(dst, src []byte, limit int) ([]byte, error) {
	limit += len(dst)
	err := identity.Unpack(src, 0, 0, 0, func(s *Series) error {
		if dst = appendSeries(dst, s); len(dst) > limit {
			return identity.ErrPacked
		}
		return nil
	})
	return dst, err
}

// names reads block i, of identities, and returns their records as appendSeries wrote them,
// which are valid until s is used again.
func (d *directory) names(s *scratch, i int) ([]byte, error) {
	packed, err := d.readBlock(s, i, kindSeries)
	if err != nil {
		return nil, err
	}
	records, err := unpackNames(s.block[:0], packed, maxBlock)
	if err != nil {
		return nil, d.malformed(i, kindSeries, err.Error())
	}
	s.block = records
	return records, nil
}
