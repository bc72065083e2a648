package memory

import "sync/atomic"

// StockOptions are the rules of a stock.
type StockOptions struct {
	Name, Holds string
	Limit       int64 // bytes that new things may fill it to
}

// Stock is a pool of memory that does not come back by waiting, such as the names of
// series. Something new takes its memory from the stock before it is made, and is refused
// when the stock is full or the process is short of memory. Its methods may be called
// concurrently.
type Stock struct {
	b    *Budget
	o    StockOptions
	used atomic.Int64
}

// NewStock adds a stock to the budget.
func (b *Budget) NewStock(o StockOptions) *Stock {
	s := &Stock{b: b, o: o}
	b.Add(Pool{Name: o.Name, Holds: o.Holds, Limit: o.Limit, Use: s.used.Load})
	return s
}

// Take takes n bytes for something new, before it is made. with is what it brings
// along in other pools, which its owner counts there: it is not part of the stock,
// but there has to be room for it, too. What he counts there only behind a look
// counts by the next one. False takes nothing.
//
// What was taken since the last look counts at once: a flood that comes between
// two looks stays below the mark.
func (s *Stock) Take(n, with int64) bool {
	b := s.b
	if b.limit == 0 {
		s.used.Add(n)
		return true
	}
	b.taking.Lock()
	defer b.taking.Unlock()
	if s.used.Load()+n > s.o.Limit || b.Level() >= NoSeries {
		return false
	}
	if b.UsedBytes()+b.taken+n+with >= b.limit/100*rise[NoSeries] {
		b.atMark.Store(true)
		return false
	}
	b.taken += n + with
	s.used.Add(n)
	return true
}

// TakeOrSay is Take for what somebody asked for by itself. The error is a *Refusal.
func (s *Stock) TakeOrSay(n int64) error {
	if s.Take(n, 0) {
		return nil
	}
	if s.used.Load()+n > s.o.Limit {
		return &Refusal{Pool: s.o.Name, Need: n, Used: s.used.Load(), Limit: s.o.Limit, Stays: true}
	}
	return &Refusal{
		Pool:       s.o.Name,
		Need:       n,
		Used:       s.b.UsedBytes(),
		Limit:      s.b.limit,
		OfPressure: true,
		Stays:      true,
	}
}

// Add counts n bytes that could not be refused, or with a negative number gives
// them back.
func (s *Stock) Add(n int64) { s.used.Add(n) }

// Bytes returns what is taken.
func (s *Stock) Bytes() int64 { return s.used.Load() }

// IsFull reports whether nothing new may be taken.
func (s *Stock) IsFull() bool {
	return s.b.limit > 0 && (s.used.Load() >= s.o.Limit || s.b.Level() >= NoSeries)
}
