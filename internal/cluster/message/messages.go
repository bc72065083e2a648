package message

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// message appends a message, and returns its kind.
func (w *writer) message(m replication.Message) byte {
	switch m := m.(type) {
	case replication.Write:
		w.batchKey(m.Key)
		w.version(m.Version)
		w.uvarint(m.Settled)
		w.change(m.Change)
		return kindWrite
	case replication.WriteReply:
		w.writeReply(m)
		return kindWritten
	case replication.Deliver:
		w.hint(m.ID)
		w.version(m.Version)
		w.change(m.Change)
		return kindDeliver
	case replication.DeliverReply:
		w.hint(m.ID)
		return kindDelivered
	case replication.Keeps:
		w.node(m.Node)
		w.uvarint(m.Boot)
		w.uvarint(m.Number)
		w.int(len(m.Partitions))
		w.dst = append(w.dst, m.Partitions...)
		w.version(m.Version)
		return kindKeeps
	case replication.KeepsReply:
		w.uvarint(m.Boot)
		w.uvarint(m.Number)
		return kindHeardKeeps
	case replication.AskKeeps:
		return kindAskKeeps
	case replication.Learn:
		w.series(m.After)
		return kindLearn
	case replication.LearnReply:
		w.series(m.After)
		w.series(m.Through)
		w.deletions(m.Deletions)
		return kindKnown
	case replication.Fetch:
		w.fetch(m)
		return kindFetch
	case replication.FetchReply:
		w.fetchReply(m)
		return kindFetched
	}
	return w.comparison(m)
}

// comparison is message for those of comparisons.
func (w *writer) comparison(m replication.Message) byte {
	switch m := m.(type) {
	case replication.Compare:
		w.compare(m)
		return kindCompare
	case replication.CompareReply:
		w.compareReply(m)
		return kindCompared
	case replication.ShareDeletions:
		w.step(m.Step)
		w.series(m.After)
		w.series(m.Through)
		w.deletions(m.Deletions)
		return kindShareDeletions
	case replication.ShareDeletionsReply:
		w.step(m.Step)
		w.series(m.Through)
		w.deletions(m.Deletions)
		return kindSharedDeletions
	case replication.CompareChunks:
		w.compareChunks(m)
		return kindCompareChunks
	case replication.Difference:
		w.step(m.Step)
		w.series(m.Through)
		w.int(m.Chunks)
		w.chunks(m.Want)
		w.chunks(m.Have)
		return kindDifference
	case replication.Fill:
		w.step(m.Step)
		w.encodedChunks(m.Chunks)
		w.chunks(m.Want)
		return kindFill
	case replication.FillReply:
		w.step(m.Step)
		w.encodedChunks(m.Chunks)
		w.int(m.Given)
		return kindFilled
	}
	w.fail(fmt.Errorf("there is no encoding of a message %T", m))
	return 0
}

// message reads a message of a kind.
func (r *reader) message(kind byte) replication.Message {
	switch kind {
	case kindWrite:
		return replication.Write{
			Key:     r.batchKey(),
			Version: r.version(),
			Settled: r.uvarint(),
			Change:  r.change(),
		}
	case kindWritten:
		return r.writeReply()
	case kindDeliver:
		return replication.Deliver{ID: r.hint(), Version: r.version(), Change: r.change()}
	case kindDelivered:
		return replication.DeliverReply{ID: r.hint()}
	case kindKeeps:
		return r.keeps()
	case kindHeardKeeps:
		return replication.KeepsReply{Boot: r.uvarint(), Number: r.uvarint()}
	case kindAskKeeps:
		return replication.AskKeeps{}
	case kindLearn:
		return replication.Learn{After: r.series()}
	case kindKnown:
		return replication.LearnReply{After: r.series(), Through: r.series(), Deletions: r.deletions()}
	case kindCompare:
		return r.compare()
	case kindCompared:
		return r.compareReply()
	case kindShareDeletions:
		return replication.ShareDeletions{
			Step:      r.step(),
			After:     r.series(),
			Through:   r.series(),
			Deletions: r.deletions(),
		}
	case kindSharedDeletions:
		return replication.ShareDeletionsReply{Step: r.step(), Through: r.series(),
			Deletions: r.deletions()}
	case kindCompareChunks:
		return r.compareChunks()
	case kindDifference:
		return replication.Difference{
			Step:    r.step(),
			Through: r.series(),
			Chunks:  r.int(),
			Want:    r.chunks(),
			Have:    r.chunks(),
		}
	case kindFill:
		return replication.Fill{Step: r.step(), Chunks: r.encodedChunks(), Want: r.chunks()}
	case kindFilled:
		return replication.FillReply{Step: r.step(), Chunks: r.encodedChunks(), Given: r.int()}
	case kindFetch:
		return r.fetch()
	case kindFetched:
		return r.fetchReply()
	}
	r.Check(false)
	return nil
}

// batchKey appends the key of a batch.
func (w *writer) batchKey(k replication.Key) {
	w.node(k.Batch.Coordinator)
	w.uvarint(k.Batch.Boot)
	w.uvarint(k.Batch.Number)
	w.int(k.Partition)
	w.int(k.Further)
	w.int(k.Attempt)
	w.node(k.For)
}

func (r *reader) batchKey() (k replication.Key) {
	k.Batch = replication.BatchID{Coordinator: r.node(), Boot: r.uvarint(), Number: r.uvarint()}
	k.Partition, k.Further, k.Attempt, k.For = r.partition(), r.partition(), r.int(), r.node()
	return k
}

func (w *writer) writeReply(m replication.WriteReply) {
	w.batchKey(m.Key)
	w.u8(byte(m.Refusal))
	w.int(m.Counts.Accepted)
	w.int(m.Counts.Duplicate)
	w.int(m.Counts.Conflicting)
	w.int(m.Counts.Unconfirmed)
	w.deletions(m.Later)
}

func (r *reader) writeReply() (m replication.WriteReply) {
	m.Key, m.Refusal = r.batchKey(), replication.Refusal(r.U8())
	r.Check(m.Refusal <= replication.StaleBucket)
	m.Counts = replication.Counts{
		Accepted:    r.int(),
		Duplicate:   r.int(),
		Conflicting: r.int(),
		Unconfirmed: r.int(),
	}
	m.Later = r.deletions()
	return m
}

func (w *writer) hint(id replication.HintID) {
	w.node(id.Node)
	w.uvarint(id.Boot)
	w.uvarint(id.Number)
}

func (r *reader) hint() replication.HintID {
	return replication.HintID{Node: r.node(), Boot: r.uvarint(), Number: r.uvarint()}
}

func (r *reader) keeps() replication.Keeps {
	m := replication.Keeps{Node: r.node(), Boot: r.uvarint(), Number: r.uvarint()}
	if n := r.upTo(ring.MaxPartitions / 8); n > 0 {
		m.Partitions = bytes.Clone(r.Take(int(n)))
	}
	m.Version = r.version()
	return m
}

func (w *writer) fetch(m replication.Fetch) {
	w.uvarint(m.Request)
	w.version(m.Version)
	w.int(m.Partition)
	w.series(m.Series)
	w.uvarint(m.From)
	w.uvarint(m.Past)
}

func (r *reader) fetch() replication.Fetch {
	return replication.Fetch{Request: r.uvarint(), Version: r.version(), Partition: r.partition(),
		Series: r.series(),
		From:   r.uvarint(), Past: r.uvarint()}
}

// What follows the words of slots.
const (
	slotTimes   = 1 << iota // timestamps
	slotUnknown             // a bit for every slot, the lowest first: it is not known
)

func (w *writer) fetchReply(m replication.FetchReply) {
	w.uvarint(m.Request)
	w.bool(m.Ready)
	w.uvarint(m.Incarnation)
	head := byte(0)
	for _, s := range m.Slots {
		if s.Value.Time != 0 {
			head |= slotTimes
		}
		if s.Unknown {
			head |= slotUnknown
		}
	}
	w.u8(head)
	w.int(len(m.Slots))
	for _, s := range m.Slots {
		w.u64(s.Value.Word)
	}
	if head&slotTimes != 0 {
		for _, s := range m.Slots {
			w.u64(s.Value.Time)
		}
	}
	if head&slotUnknown != 0 {
		at := len(w.dst)
		w.dst = append(w.dst, make([]byte, (len(m.Slots)+7)/8)...)
		for i, s := range m.Slots {
			if s.Unknown {
				w.dst[at+i/8] |= 1 << (i % 8)
			}
		}
	}
}

func (r *reader) fetchReply() (m replication.FetchReply) {
	m.Request, m.Ready, m.Incarnation = r.uvarint(), r.bool(), r.uvarint()
	head := r.U8()
	r.Check(head <= slotTimes|slotUnknown)
	n := r.count(8)
	words := r.Take(8 * n)
	var times, unknown []byte
	if head&slotTimes != 0 {
		times = r.Take(8 * n)
	}
	if head&slotUnknown != 0 {
		unknown = r.Take((n + 7) / 8)
	}
	if r.Bad || n == 0 {
		r.Check(head == 0)
		return m
	}
	m.Slots = make([]replication.Slot, n)
	seen := byte(0)
	for i := range m.Slots {
		s := &m.Slots[i]
		s.Value.Word = binary.BigEndian.Uint64(words[8*i:])
		if times != nil {
			s.Value.Time = binary.BigEndian.Uint64(times[8*i:])
		}
		s.Unknown = unknown != nil && unknown[i/8]>>(i%8)&1 != 0
		if s.Value.Time != 0 {
			seen |= slotTimes
		}
		if s.Unknown {
			seen |= slotUnknown
		}
	}
	r.Check(seen == head && (unknown == nil || n%8 == 0 || unknown[n/8]>>(n%8) == 0))
	return m
}
