package segment

import (
	"bytes"
	"errors"
	"fmt"

	"dalmatiner/internal/codec/chunk"
)

// Verify reads the whole file and checks every block: its CRC, its form, the order of the
// index, and the counts of the footer. It does not decode chunks. It returns all damage
// joined.
func (r *Reader) Verify() error {
	d, err := r.directory()
	if err != nil {
		return err
	}
	var found damages
	lengths, err := r.verifyData(d, &found)
	if err == nil {
		err = r.verifyIndex(d, lengths, &found)
	}
	for _, step := range []func(*directory, *damages) error{r.verifyRollups, r.verifyRecords,
		r.verifyState} {
		if err == nil {
			err = step(d, &found)
		}
	}
	if err != nil {
		return err
	}
	return found.err()
}

// verifyData reads all data blocks, as many at a time as one read takes, and returns the
// lengths of what is in them: all there may be for those that are damaged.
func (r *Reader) verifyData(d *directory, found *damages) ([]int32, error) {
	w := d.walk()
	defer w.release()
	past := r.footer().first(kindLeaf)
	lengths := make([]int32, past)
	for i := 0; i < past; {
		end := i + 1
		for end < past && end-i < maxRun && d.offset(end+1)-d.offset(i) <= readSize {
			end++
		}
		if err := w.load(i, end); err != nil {
			return nil, err
		}
		for ; i < end; i++ {
			lengths[i] = maxBlock
			if data := w.payload(i); data != nil {
				lengths[i] = int32(len(data))
			}
		}
	}
	found.join(&w.found)
	return lengths, nil
}

// verifyIndex checks that the entries ascend without a repetition, start each
// leaf at its fence, lie inside their data blocks, and are as many as the
// footer says.
func (r *Reader) verifyIndex(d *directory, lengths []int32, found *damages) error {
	var chunks, series int64
	var last, key [fenceSize]byte
	var s scratch
	timestamps, err := r.Timestamps()
	if err != nil && len(Damages(err)) == 0 {
		return err
	}
	damaged := err != nil // what it is says verifyRecords
	for i := range d.leaves {
		l, err := d.leaf(i, &s)
		if err != nil {
			damaged = true
			if err := found.add(err); err != nil {
				return err
			}
			continue
		}
		bad := func(format string, args ...any) error {
			return found.add(d.malformed(r.footer().first(kindLeaf)+i, kindLeaf,
				fmt.Sprintf(format, args...)))
		}
		for row := range l.rows() {
			h := Hash(l.rowHash(row))
			other := !bytes.Equal(last[:fenceSize-8], appendFence(key[:0], l.bucket(), &h, 0)[:fenceSize-8])
			if (chunks == 0 || other) && !timestamps.Is(l.bucket(), h) {
				series++
			}
			for n := l.rowFirst(row); n < l.rowPast(row); n++ {
				e := l.entry(n)
				appendFence(key[:0], l.bucket(), &h, e.chunk)
				switch {
				case chunks > 0 && bytes.Compare(last[:], key[:]) >= 0:
					err = bad("entry %d is out of order", n)
				case n == 0 && !bytes.Equal(key[:], d.fence(i)):
					err = bad("the first entry is not the one of the directory")
				case int(e.block) >= len(lengths) || int(e.off)+int(e.length) > int(lengths[e.block]):
					err = bad("entry %d points outside the data", n)
				}
				if err != nil {
					return err
				}
				last = key
				chunks++
			}
		}
	}
	if info := &r.footer().info; !damaged && (chunks != info.Chunks || series != info.Series) {
		return found.add(r.miscountError("chunks and series", [2]int64{info.Chunks, info.Series},
			[2]int64{chunks, series}))
	}
	return nil
}

// verifyRollups checks that the rows of every rollup ascend, start each block at
// its fence, and hold what they say.
func (r *Reader) verifyRollups(d *directory, found *damages) error {
	var dst [MaxSpans]chunk.Header
	var s scratch
	for l := range rollups {
		var last, key [fenceSize]byte
		first, past := d.rollupRange(l)
		for i := first; i < past; i++ {
			b, _, err := d.rollupBlock(i, &s)
			if err != nil {
				if err := found.add(err); err != nil {
					return err
				}
				continue
			}
			for row := range b.rows() {
				hash, spans, _ := b.row(row)
				h := Hash(hash)
				appendFence(key[:0], b.bucket(), &h, 0)
				detail := ""
				switch _, err := b.decode(row, &dst); {
				case err != nil:
					detail = err.Error()
				case (i > first || row > 0) && bytes.Compare(last[:], key[:]) >= 0:
					detail = fmt.Sprintf("row %d is out of order", row)
				case row == 0 && !bytes.Equal(key[:], d.fence(len(d.leaves)+i)):
					detail = "the first row is not the one of the directory"
				case int64(spans)>>(int64(r.footer().info.WindowChunks)/l.Chunks()) != 0:
					detail = fmt.Sprintf("row %d has spans %#x of a window of %d chunks", row, spans,
						r.footer().info.WindowChunks)
				}
				if detail != "" {
					if err := found.add(d.malformedRollups(i, errors.New(detail))); err != nil {
						return err
					}
				}
				last = key
			}
		}
	}
	return nil
}

// verifyRecords reads all identities and buckets and counts them.
func (r *Reader) verifyRecords(_ *directory, found *damages) error {
	var series int64
	err := r.Series(func(Series) error { series++; return nil })
	buckets, err2 := r.Buckets()
	for _, err := range []error{err, err2} {
		for _, e := range Damages(err) {
			found.note(e)
		}
		if err != nil && len(Damages(err)) == 0 {
			return err
		}
	}
	got, want := [2]int64{series, int64(len(buckets))},
		[2]int64{r.footer().info.Identities, r.footer().info.Buckets}
	if err == nil && err2 == nil && got != want {
		return found.add(r.miscountError("identities and buckets", want, got))
	}
	return nil
}

func (r *Reader) miscountError(what string, want, got [2]int64) error {
	return r.file.damage(r.footer().info.Size-footerSize, footerSize, partFooter,
		fmt.Sprintf("it says %d %s, the file holds %d", want, what, got))
}

// Blocks returns the number of blocks of every kind in the file.
func (r *Reader) Blocks() int { return r.footer().first(kinds) }
