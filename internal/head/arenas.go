package head

import "sync"

// Arenas are the arenas of a node, one for each height of blocks. The methods may be
// called concurrently; the zero value has none.
type Arenas struct {
	byHeight sync.Map // height → *Arena
}

// Of returns the arena of blocks of a height.
func (s *Arenas) Of(height int) *Arena {
	a, ok := s.byHeight.Load(height)
	if !ok {
		a, _ = s.byHeight.LoadOrStore(height, NewArena(height))
	}
	return a.(*Arena)
}

func (s *Arenas) each(fn func(a *Arena)) {
	s.byHeight.Range(func(_, a any) bool {
		fn(a.(*Arena))
		return true
	})
}

// Bytes returns the memory of the blocks in use, in rows and in tables, and of free ones.
func (s *Arenas) Bytes() (rows, tables, warm int64) {
	s.each(func(a *Arena) {
		n, free := a.Bytes()
		rows, tables, warm = rows+n, tables+a.TableBytes(), warm+free
	})
	return rows, tables, warm
}

// Trim gives the memory of all free blocks back.
func (s *Arenas) Trim() { s.each((*Arena).Trim) }

// GiveBack gives back the memory of blocks that will not be needed soon: it keeps what the
// next rows of senders in step need.
func (s *Arenas) GiveBack() { s.each((*Arena).GiveBack) }

// ReleaseSealed gives the memory back that no encoded chunk needs any more.
func (s *Arenas) ReleaseSealed() { s.each((*Arena).ReleaseSealed) }

// Release gives back what has no block and no sealed block in use.
func (s *Arenas) Release() { s.each((*Arena).Release) }
