package intlist

import (
	"fmt"

	"dalmatiner/internal/codec/kernel"
)

// Lanes is memory for lanes that are decoded side by side.
type Lanes struct {
	Residuals kernel.Residuals
	Values    kernel.Values
	coded     [2]codedResiduals
	streams   streams
	ends      kernel.CodeEnds
}

// Decode decodes count lanes from lane j on into q.Values, as int64 bits.
func (p *List) Decode(q *Lanes, j, count int) {
	var at ends
	prediction := p.unpack(q, &at, j, count)
	n := p.lay.length
	switch prediction.Order {
	case formOffset:
		kernel.Add(&q.Values, &q.Residuals, prediction.Base, count, n)
	case formDelta:
		kernel.Add1(&q.Values, &q.Residuals, prediction.Base, &at.v, count, n)
	case formDelta2:
		kernel.Add2(&q.Values, &q.Residuals, prediction.Base, &at.v, &at.d, count, n)
	}
}

// IsCoded reports whether residuals follow each other in a code, and so do not have lanes.
func (p *List) IsCoded() bool { return p.riced }

// DecodeCoded returns the first n values of a coded list, as int64 bits. They lie in q. Values
// of a code are added up one after the other, as lanes gain nothing where all before them have
// to be read.
func (p *List) DecodeCoded(q *Lanes, n int) []uint64 {
	v := p.rice.residuals(q, n)
	if p.patched {
		p.patch.apply(v, 1, 0, n)
	}
	base := uint64(p.base) * p.factor
	switch p.form {
	case formOffset:
		kernel.Scale(v, v, p.factor, base+uint64(p.least))
	case formDelta:
		kernel.Chain(v, v, p.factor, base, uint64(p.v))
	case formDelta2:
		kernel.Chain(v, v, p.factor, base, uint64(p.d))
		kernel.Chain(v, v, 1, 0, uint64(p.v))
	}
	return v
}

// Start unpacks count lanes from lane j on into q.Residuals, for values that are taken in
// as they come: it sets what the lanes start from.
func (p *List) Start(f *kernel.Fold, q *Lanes, j, count int) kernel.Prediction {
	var at ends
	prediction := p.unpack(q, &at, j, count)
	f.Value, f.Step = at.v, at.d
	return prediction
}

// ends are the values and the differences before the first ones of lanes.
type ends struct{ v, d [kernel.Lanes]uint64 }

// unpack reads the residuals of count lanes from lane j on. A lane of differences starts
// where the one before it ends, so all lanes up to there are read.
func (p *List) unpack(q *Lanes, at *ends, j, count int) kernel.Prediction {
	prediction := kernel.Prediction{Order: p.form, Base: uint64(p.base) * p.factor}
	if p.form == formOffset {
		prediction.Base += uint64(p.least)
		p.read(q, j, count)
		return prediction
	}
	p.read(q, 0, j+count)
	p.chain(at, &q.Residuals, prediction.Base, j+count)
	if j > 0 {
		copy(q.Residuals[:], q.Residuals[j:])
		copy(at.v[:], at.v[j:])
		copy(at.d[:], at.d[j:])
	}
	return prediction
}

// chain fills in what the first count lanes start from.
func (p *List) chain(at *ends, res *kernel.Residuals, base uint64, count int) {
	n := uint64(p.lay.length)
	v, d := uint64(p.v), uint64(p.d)
	if p.form == formDelta {
		var sums [kernel.Lanes]uint64
		kernel.Sums(&sums, res, count, p.lay.length)
		for l, sum := range sums[:count] {
			at.v[l] = v
			v += n*base + sum
		}
		return
	}
	for l := range count {
		at.v[l], at.d[l] = v, d
		for i := range p.lay.length {
			d += res[kernel.Lanes*i+l] + base
			v += d
		}
	}
}

// read reads residuals, with patches and factor.
func (p *List) read(q *Lanes, j, count int) {
	n := p.lay.length
	if p.riced {
		p.rice.unpack(q, p.m, &p.lay, j, count)
	} else {
		p.lay.unpack(&q.Residuals, p.body, j, count)
	}
	if p.patched {
		for k := range count {
			p.patch.apply(q.Residuals[k:], kernel.Lanes, (j+k)*n, n)
		}
	}
	if p.factor > 1 {
		for i := range n {
			row := q.Residuals[kernel.Lanes*i:][:count]
			for l := range row {
				row[l] *= p.factor
			}
		}
	}
}

const (
	// maxNarrow bounds the factors of which narrow values are multiples, and maxStart
	// where their lanes start: nothing in between overflows.
	maxNarrow = 1 << 40
	maxStart  = 1 << 61
)

// FoldNarrow takes in count whole lanes of integers from lane j on that the kernel folds
// without residuals in memory. It reports whether they are such.
func (p *List) FoldNarrow(f *kernel.Fold, j, count int) bool {
	if p.patched || p.riced || p.lay.width == 0 || p.lay.length != kernel.MaxLane ||
		p.form == formDelta2 || p.factor >= maxNarrow {
		return false
	}
	from := j
	if p.form == formDelta {
		from = 0
	}
	var rows kernel.Rows
	p.lay.rows(&rows, p.body, from, j+count-from)
	g := p.lay.fields()
	f.Value = [kernel.Lanes]uint64{}
	start, prediction := uint64(p.v), kernel.Prediction{Order: p.form, Base: uint64(p.base)}
	if p.form == formOffset {
		start, prediction.Base = uint64(p.least)+uint64(p.base)*p.factor, 0
	}
	if !kernel.FoldNarrow(f, &rows, &g, prediction) {
		return false
	}
	for l := range rows.Lanes {
		if start+maxStart >= 2*maxStart {
			return false
		}
		end := start + p.factor*f.Value[l]
		f.First[l] = start + p.factor*f.First[l]
		f.Least[l] = start + p.factor*f.Least[l]
		f.Most[l] = start + p.factor*f.Most[l]
		f.Sum[l] = kernel.MaxLane*start + p.factor*f.Sum[l]
		f.Value[l] = end
		if p.form == formDelta {
			start = end
		}
	}
	if k := j - from; k > 0 {
		for _, a := range []*[kernel.Lanes]uint64{&f.First, &f.Least, &f.Most, &f.Sum, &f.Value} {
			copy(a[:], a[k:])
		}
	}
	return true
}

// Length returns the number of integers of a lane; the last lane may have fewer.
func (p *List) Length() int { return p.lay.length }

// Lanes returns the number of lanes.
func (p *List) Lanes() int { return p.lay.lanes }

// Release lets go of the bytes that p was read from.
func (p *List) Release() { p.body, p.patch.body, p.rice.low, p.rice.high = nil, nil, nil, nil }

// String names the form of p and how residuals are packed.
func (p *List) String() string {
	text := fmt.Sprintf("form %d", p.form)
	if p.patched {
		text += " patched"
	}
	if p.riced {
		text += fmt.Sprintf("; code, growth %v, sparse %v, zigzag %v", p.rice.growth, p.rice.sparse,
			p.rice.zigzag)
	} else {
		text += fmt.Sprintf("; group %d", p.lay.group)
	}
	if p.factor > 1 {
		text += "; factor"
	}
	return text
}
