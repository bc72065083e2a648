package sim

import "testing"

func TestRule2NothingDeletedComesBack(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	awaitReply(t, c, c.Write(0, point(s, 1, 99)), true)
	c.Run(200)
	c.Crash(2)
	c.Run(100)
	awaitReply(t, c, c.Write(0, nil, s), true)
	awaitReply(t, c, c.Write(1, point(s, 1, 7)), true)
	awaitSettled(t, c)
	for i := range c.nodes {
		if got := c.word(i, s, 1); got != 7 {
			t.Errorf("n%d holds %d, want 7", i, got)
		}
	}
}

func TestRule2AReturningNodeLearnsFirst(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	awaitReply(t, c, c.Write(0, point(s, 1, 99)), true)
	c.Run(200)
	c.Crash(2)
	c.Run(100)
	awaitReply(t, c, c.Write(0, nil, s), true)
	c.Start(2)
	c.Run(0)
	request := c.Read(2, s, 1, 2)
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; !got.Done || got.Slots[0].Value.Word != 0 {
		t.Errorf("a deleted point is served: %+v", got)
	}
}

func TestRule2ALiveRowIsSentAgain(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	awaitReply(t, c, c.Write(2, point(s, 1, 99)), true)
	c.Run(200)
	c.Split(2)
	c.Run(100)
	awaitReply(t, c, c.Write(0, nil, s), true)
	c.Crash(1)
	c.Heal()
	c.nodes[2].core.Peer(c.time(c.nodes[2]), c.nodes[0].id, true) // before any comparison
	e := c.Write(2, point(s, 1, 5))
	awaitReply(t, c, e, true)
	copies := 0
	for i := range c.nodes {
		if c.nodes[i].disk.Incarnation(s) > 0 && c.word(i, s, 1) == 5 {
			copies++
		}
	}
	if copies < 2 {
		t.Errorf("%d copies of an acknowledged point behind the deletion", copies)
	}
	awaitSettled(t, c)
	if got := c.word(1, s, 1); got != 5 {
		t.Errorf("in the end n1 holds %d", got)
	}
}

func TestRule2ClocksJumpBack(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	c.nodes[0].skew, c.nodes[1].skew = 10e9, -10e9
	awaitReply(t, c, c.Write(0, nil, s), true)
	awaitReply(t, c, c.Write(2, point(s, 1, 9)), true)
	awaitReply(t, c, c.Write(1, nil, s), true)
	awaitSettled(t, c)
	for i := range c.nodes {
		if got := c.word(i, s, 1); got != 0 {
			t.Errorf("n%d holds %d", i, got)
		}
	}
}

func TestADeletionTakesAnAcknowledgedPoint(t *testing.T) {
	c, s := calm(5, 3, 2), Series(1)
	own, _ := owners(c, s)
	c.Split(own[0], own[1])
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], nil, s), true)
	awaitReply(t, c, c.Write(own[2], point(s, 1, 7)), true)
	awaitSettled(t, c)
	if got := c.word(own[2], s, 1); got != 0 {
		t.Errorf("the point is there, %d: the page promises too little", got)
	}
}

func TestAPointBehindALaterClockComesBack(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	c.nodes[1].skew = 5e9
	c.Split(1)
	c.Run(100)
	awaitReply(t, c, c.Write(1, nil, s), false)
	awaitReply(t, c, c.Write(1, point(s, 1, 7)), false)
	c.Crash(1)
	c.Heal()
	awaitReply(t, c, c.Write(2, nil, s), true)
	awaitSettled(t, c)
	if got := c.word(0, s, 1); got != 7 {
		t.Errorf("the point is gone, %d: the page promises too little", got)
	}
}
