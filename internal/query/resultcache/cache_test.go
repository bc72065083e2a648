package resultcache

import "testing"

type sized int64

func (s sized) Bytes() int64 { return int64(s) }

// Of more than fit, those stay that were asked for last; what is too large is not taken, and
// the bytes are those of what is there.
func TestRoom(t *testing.T) {
	c := New(16 * (1000 + entryCost + 1))
	key := func(i int) string { return string(rune('a' + i)) }
	for i := range 16 {
		c.Put(key(i), sized(1000))
	}
	if c.Bytes() != c.Limit() || c.Counted(Evicted) != 0 {
		t.Fatalf("%d of %d bytes are held, %d values left", c.Bytes(), c.Limit(), c.Counted(Evicted))
	}
	c.Get("a")
	c.Put("new", sized(900))
	if c.Get("a") == nil || c.Get("b") != nil || c.Get("new") != sized(900) ||
		c.Counted(Evicted) != 1 {
		t.Errorf("after one more there is a: %v, b: %v, the new one: %v; %d left", c.Get("a"), c.Get("b"),
			c.Get("new"), c.Counted(Evicted))
	}
	if c.Put("large", sized(c.Limit()/4)); c.Get("large") != nil || c.Get("a") == nil {
		t.Error("a value beyond its part of the memory was kept, or made others leave")
	}
	if c.Changed("a", sized(1)); c.Get("a") == nil {
		t.Error("the value of a left in place of another one that it had before")
	}
	if c.Changed("a", sized(1000)); c.Get("a") != nil || c.Counted(Changed) != 1 {
		t.Error("a changed value is still there")
	}
	sum := int64(0)
	for i := range 16 {
		if v := c.Get(key(i)); v != nil {
			sum += v.Bytes() + entryCost + 1
		}
	}
	if sum += 900 + entryCost + 3; c.Bytes() != sum {
		t.Errorf("%d bytes are held, want %d", c.Bytes(), sum)
	}
	if c.Drop(); c.Bytes() != 0 || c.Get("new") != nil || c.Counted(Dropped) == 0 {
		t.Errorf("%d bytes are held after everything was dropped", c.Bytes())
	}
	var none *Cache
	none.Drop()
	if New(0) != nil || none.Bytes() != 0 || none.Limit() != 0 || none.Counted(Evicted) != 0 {
		t.Error("a cache without memory is one")
	}
}
