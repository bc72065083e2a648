package main

import (
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/load"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
	"dalmatiner/test/torture/verify"
)

// expire lets every series of a node grow older than the lifetime, sees the names
// go, and starts the node again by stops and kills: they stay gone.
func expire(r *round) {
	r.oddly()
	r.flags = append(r.flags, "--set", "merge.background=off")
	const slots = 4 * 7200
	book := &oracle.Book{}
	b := book.Add(oracle.Bucket{
		Name:       "brief",
		Resolution: 1000,
		First:      time.Now().Unix() - 24*3600,
		Slots:      slots,
	})
	r.load = load.Of(book)
	if !r.start() {
		return
	}
	if err := sendBrief(r.node, b, 64); err != nil {
		r.violate("sending: %v", err)
		return
	}
	if !r.merged() {
		return
	}
	r.compare(verify.Options{Settle: true})
	const lifetime = 3600
	if _, err := r.node.Post("/admin/buckets/ttl",
		map[string]any{"name": b.Name, "ttl": lifetime}); err != nil {
		r.violate("setting the lifetime: %v", err)
		return
	}
	b.TTL = lifetime
	left := func() bool {
		c, err := dwire.Dial(r.node.TCP, subject.Patience)
		if err != nil {
			return false
		}
		defer c.Close()
		names, err := c.List(b.Name)
		return err == nil && len(names) == 0
	}
	for begin := time.Now(); !left(); {
		if time.Since(begin) > 20*time.Second {
			r.violate("the names of expired series stay for 20 s of merges")
			return
		}
		time.Sleep(200 * time.Millisecond)
		if !r.merged() {
			return
		}
	}
	r.note("all names have gone")
	for range 3 {
		r.compare(verify.Options{Settle: true})
		if r.rng.IntN(2) == 0 {
			r.stopClean()
		} else {
			r.note("kill -9")
			r.node.Kill()
		}
		r.out.events++
		if r.bad || !r.start() {
			return
		}
		if err := r.node.Replayed(); err != nil {
			r.violate("%v", err)
		}
	}
	r.compare(verify.Options{Settle: true})
}

func (r *round) merged() bool {
	err := r.node.Flush(true)
	if err != nil {
		r.violate("flush and merge: %v", err)
	}
	return err == nil
}

// sendBrief makes the bucket and sends all of it at once.
func sendBrief(n *subject.Node, b *oracle.Bucket, series int) error {
	c, err := dwire.Dial(n.TCP, subject.Patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Add(b.Name, uint64(b.Resolution), uint64(b.TTL), false); err != nil {
		return err
	}
	b.SetState(oracle.Present)
	s, err := dwire.OpenStream(n.TCP, b.Name, false, subject.Patience)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range series {
		m := b.NewSeries(dwire.Key("brief", string(rune('A'+i/26)), string(rune('a'+i%26))))
		b.Lane.Lock()
		for slot := b.First; slot < b.First+int64(b.Slots); slot += 60 {
			s.Entry(m.Key, slot, m.AppendWrite(nil, slot))
		}
		b.Lane.Unlock()
	}
	if err := s.Ask(1); err != nil {
		return err
	}
	ack, err := s.ReadAck()
	if err == nil {
		b.Lane.Ack(b.Lane.Sent(), ack.Refused)
	}
	return err
}
