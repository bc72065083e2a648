package peer

// queue holds the frames for one connection, encoded: what waits, and what is being written. It is
// empty while there is no connection, so no frame is ever continued on another one.
type queue struct {
	limit   int
	fill    []byte // waits
	flight  []byte // is being written; only the writer changes it
	waiting int    // frames in fill
}

// put appends a frame, or reports that there is no room for it.
func (q *queue) put(kind byte, body []byte) bool {
	need := len(q.fill) + headerSize + len(body)
	if need+len(q.flight) > q.limit {
		return false
	}
	if need > cap(q.fill) {
		// append would round up beyond the limit
		q.fill = append(make([]byte, 0, min(q.limit, max(need, 2*cap(q.fill), 4<<10))), q.fill...)
	}
	q.fill = append(appendHeader(q.fill, kind, body), body...)
	q.waiting++
	return true
}

// take returns all frames that wait, as one batch. The batch before must be done.
func (q *queue) take() (batch []byte, count int) {
	q.fill, q.flight = q.flight[:0], q.fill
	count, q.waiting = q.waiting, 0
	return q.flight, count
}

// finishBatch says that the batch is written.
func (q *queue) finishBatch() { q.flight = q.flight[:0] }

// trim gives large buffers back while nothing waits.
func (q *queue) trim() {
	if len(q.fill)+len(q.flight) > 0 {
		return
	}
	if cap(q.fill) > keptBuffer {
		q.fill = nil
	}
	if cap(q.flight) > keptBuffer {
		q.flight = nil
	}
}

// clear drops everything and returns how many frames waited.
func (q *queue) clear() (waited int) {
	waited = q.waiting
	*q = queue{limit: q.limit}
	return waited
}

func (q *queue) bytes() int { return len(q.fill) + len(q.flight) }

func (q *queue) heldBytes() int { return cap(q.fill) + cap(q.flight) }
