package segment

import (
	"bytes"
	"encoding/binary"
	"slices"

	"dalmatiner/internal/disk/hole"
)

// fenceKey is a fence taken apart.
type fenceKey struct {
	bucket uint64
	hash   Hash
	chunk  int64
}

func (d *directory) key(i int) (k fenceKey) {
	f := d.fence(i)
	k.bucket = binary.BigEndian.Uint64(f)
	copy(k.hash[:], f[8:])
	k.chunk = int64(binary.BigEndian.Uint64(f[fenceSize-8:]) ^ 1<<63)
	return k
}

// span is the keys that leaf i may hold: from the first one on, and below past. Where
// another bucket begins behind it, or nothing, past is behind all of the bucket.
func (d *directory) span(i int, info *Info) (first, past fenceKey) {
	first = d.key(i)
	past = fenceKey{bucket: first.bucket, hash: lastHash(), chunk: info.MaxChunk + 1}
	if i+1 < len(d.leaves) {
		if next := d.key(i + 1); next.bucket == first.bucket {
			past = next
		}
	}
	return first, past
}

// lostOf returns which chunks of a series leaf i may hold, none where first is past.
func (d *directory) lostOf(i int, info *Info, bucket uint64, h *Hash) (first, past int64) {
	lo, hi := d.span(i, info)
	if lo.bucket != bucket || bytes.Compare(h[:], lo.hash[:]) < 0 ||
		bytes.Compare(h[:], hi.hash[:]) > 0 {
		return 0, 0
	}
	first, past = info.MinChunk, info.MaxChunk+1
	if *h == lo.hash {
		first = lo.chunk
	}
	if *h == hi.hash {
		past = hi.chunk
	}
	return first, past
}

// lostIn returns the parts of the segment whose keys leaf i may hold.
func (d *directory) lostIn(i int, info *Info) (parts []hole.Mark) {
	lo, hi := d.span(i, info)
	low, high := hole.PrefixOf(lo.hash), hole.PrefixOf(hi.hash)
	add := func(low, high hole.Prefix, first, past int64) {
		if low <= high && first < past {
			parts = append(parts, hole.Mark{
				Bucket: lo.bucket,
				First:  first,
				Past:   past,
				Low:    low,
				High:   high,
			})
		}
	}
	if lo.hash == hi.hash {
		add(low, low, lo.chunk, hi.chunk)
		return parts
	}
	add(low, low, lo.chunk, info.MaxChunk+1)
	if low+1 > low && high > low+1 {
		add(low+1, high-1, info.MinChunk, info.MaxChunk+1)
	}
	add(high, high, info.MinChunk, hi.chunk)
	return parts
}

// SeriesChunks is Chunks for a caller that has to know what it does not get. It calls lost
// for ranges [first, past) of chunk numbers within [from, to) that are damaged: some or all
// of these chunks may have been in the segment. If the directory cannot be read, that is all
// of [from, to). A chunk whose bytes are intact and do not decode is for the caller to find.
func (r *Reader) SeriesChunks(bucket uint64, h Hash, from, to int64,
	fn func(chunk int64, data []byte) error, lost func(first, past int64)) error {
	clip := func(first, past int64) {
		if first, past = max(first, from), min(past, to); first < past {
			lost(first, past)
		}
	}
	err := r.chunks(bucket, h, from, to, fn, clip)
	if IsDamage(err) && r.dir.Load() == nil {
		clip(from, to)
	}
	return err
}

// Scan is Range for a caller that has to know what it does not get. It calls fn without data for a
// chunk whose bytes are damaged. It calls lost for parts of the bucket whose index is damaged,
// because nobody knows which chunks they held. It does so before it calls fn for the chunks behind
// them in the order of the index. If the directory cannot be read, the part is all of the bucket in
// [first, past).
func (r *Reader) Scan(bucket uint64, first, past int64,
	fn func(bucket uint64, h Hash, chunk int64, data []byte) error, lost func([]hole.Mark)) error {
	if !r.footer().info.reaches(first, past) {
		return nil
	}
	w, err := r.walk()
	if err != nil {
		if IsDamage(err) {
			lost([]hole.Mark{hole.WholeChunks(bucket, first, past)})
		}
		return err
	}
	w.tells, w.lostLeaf = true, func(parts []hole.Mark) {
		// The walk begins at the leaf before, which may be the last one of another bucket.
		parts = slices.DeleteFunc(parts, func(m hole.Mark) bool { return m.Bucket != bucket })
		if len(parts) > 0 {
			lost(parts)
		}
	}
	return w.scan(bucket, first, past, fn)
}
