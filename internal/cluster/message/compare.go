package message

import "dalmatiner/internal/cluster/replication"

func (w *writer) step(s replication.Step) {
	w.uvarint(s.Boot)
	w.uvarint(s.Pass)
	w.uvarint(s.Number)
	w.int(s.Partition)
	w.int(s.Copies)
	w.version(s.Version)
}

func (r *reader) step() replication.Step {
	return replication.Step{
		Boot:      r.uvarint(),
		Pass:      r.uvarint(),
		Number:    r.uvarint(),
		Partition: r.partition(),
		Copies:    r.copies(),
		Version:   r.version(),
	}
}

func (w *writer) compare(m replication.Compare) {
	w.step(m.Step)
	w.u64(m.Deletions)
	w.uvarint(m.From)
	w.uvarint(m.Through)
	w.int(len(m.Windows))
	for _, of := range m.Windows {
		w.uvarint(of.Number)
		w.u64(of.Digest)
	}
}

func (r *reader) compare() replication.Compare {
	return replication.Compare{Step: r.step(), Deletions: r.u64(), From: r.uvarint(),
		Through: r.uvarint(),
		Windows: list(r, 1+8, func() replication.WindowDigest {
			return replication.WindowDigest{Number: r.uvarint(), Digest: r.u64()}
		})}
}

func (w *writer) compareReply(m replication.CompareReply) {
	w.step(m.Step)
	w.bool(m.Deletions)
	w.uvarint(m.Through)
	w.int(len(m.Windows))
	for _, number := range m.Windows {
		w.uvarint(number)
	}
	w.int(m.Left)
}

func (r *reader) compareReply() replication.CompareReply {
	return replication.CompareReply{
		Step:      r.step(),
		Deletions: r.bool(),
		Through:   r.uvarint(),
		Windows:   list(r, 1, r.uvarint),
		Left:      r.int(),
	}
}

func (w *writer) compareChunks(m replication.CompareChunks) {
	w.step(m.Step)
	w.uvarint(m.Window)
	w.series(m.After)
	w.series(m.Through)
	w.int(len(m.Chunks))
	for _, of := range m.Chunks {
		w.chunk(of.ID)
		w.u64(of.Digest)
	}
}

func (r *reader) compareChunks() replication.CompareChunks {
	return replication.CompareChunks{Step: r.step(), Window: r.uvarint(), After: r.series(),
		Through: r.series(),
		Chunks: list(r, minChunk+8, func() replication.ChunkDigest {
			return replication.ChunkDigest{ID: r.chunk(), Digest: r.u64()}
		})}
}

// minChunk is what the id of a chunk has in bytes at least.
const minChunk = 16 + 1

func (w *writer) chunk(id replication.ChunkID) {
	w.series(id.Series)
	w.uvarint(id.Number)
}

func (r *reader) chunk() replication.ChunkID {
	return replication.ChunkID{Series: r.series(), Number: r.uvarint()}
}

func (w *writer) chunks(ids []replication.ChunkID) {
	w.int(len(ids))
	for _, id := range ids {
		w.chunk(id)
	}
}

func (r *reader) chunks() []replication.ChunkID { return list(r, minChunk, r.chunk) }

func (w *writer) encodedChunks(list []replication.Chunk) {
	w.int(len(list))
	for i := range list {
		c := &list[i]
		number, err := w.table.number(c.ID.Series)
		if err != nil {
			w.fail(err)
			return
		}
		w.uvarint(uint64(number))
		w.uvarint(c.Incarnation)
		w.uvarint(c.ID.Number)
		w.int(c.Points)
		w.putBytes(c.Words)
		w.putBytes(c.Times)
	}
}

func (w *writer) putBytes(b []byte) {
	w.int(len(b))
	w.dst = append(w.dst, b...)
}

// minEncoded is what a chunk has in bytes at least.
const minEncoded = 6

func (r *reader) encodedChunks() []replication.Chunk {
	return list(r, minEncoded, func() (c replication.Chunk) {
		c.ID.Series = r.resolve(uint32(r.upTo(MaxNames - 1)))
		c.Incarnation, c.ID.Number, c.Points = r.uvarint(), r.uvarint(), r.int()
		c.Words, c.Times = r.ownBytes(), r.ownBytes()
		return c
	})
}

// ownBytes returns bytes of its own, nil for none.
func (r *reader) ownBytes() []byte {
	return append([]byte(nil), r.Take(int(r.upTo(replication.MaxChunkBytes)))...)
}
