package head

import "sync"

// Arenas has the arenas of a node, one for each height of blocks. Its methods may be called
// concurrently. The zero value is ready. What they do they do for each arena.
type Arenas struct {
	byHeight sync.Map // height → *Arena
}

// ArenaFor returns the arena for blocks of a height, and makes it if there is none.
func (s *Arenas) ArenaFor(height int) *Arena {
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

// Bytes returns the memory of blocks that are rows, of those that are tables, and of what is
// free and kept for others.
func (s *Arenas) Bytes() (rows, tables, warm int64) {
	s.each(func(a *Arena) {
		n, free := a.Bytes()
		rows, tables, warm = rows+n, tables+a.TableBytes(), warm+free
	})
	return rows, tables, warm
}

// InUse returns the memory of blocks in use, which encoding frees.
func (s *Arenas) InUse() int64 {
	rows, tables, _ := s.Bytes()
	return rows + tables
}

// Trim gives all memory that is free back to the system.
func (s *Arenas) Trim() { s.each((*Arena).Trim) }

// GiveBack gives memory back to the system that will not be needed soon. It keeps what the next
// rows of senders in step need. It is called ten times a second.
func (s *Arenas) GiveBack() { s.each((*Arena).GiveBack) }

// ReleaseSealed gives memory of sealed blocks back to the system in which none is left.
func (s *Arenas) ReleaseSealed() { s.each((*Arena).ReleaseSealed) }

// Release gives slabs back to the system in which nothing is in use.
func (s *Arenas) Release() { s.each((*Arena).Release) }
