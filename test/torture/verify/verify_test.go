package verify

import (
	"encoding/binary"
	"io"
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/klauspost/compress/snappy"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

const (
	first = 1000
	slots = 50
)

// fake is a node that answers what a test tells it to.
type fake struct {
	buckets []string
	points  map[string][]byte // by bucket and key
	alone   map[string][]byte // what a GET without timestamps gives of these instead
	listed  map[string][]string
}

func (f *fake) put(s *oracle.Series, slot int64, point []byte) {
	k := s.Bucket.Name + string(s.Key)
	width := len(point)
	if f.points[k] == nil {
		f.points[k] = make([]byte, slots*width)
	}
	copy(f.points[k][int(slot-first)*width:], point)
}

func (f *fake) serve(t *testing.T) *subject.Node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.talk(c)
		}
	}()
	return &subject.Node{TCP: l.Addr().String()}
}

func (f *fake) talk(c net.Conn) {
	defer func() { _ = c.Close() }() // the test is over
	for {
		var head [4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		for _, frame := range f.answer(b) {
			// the client notices
			_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		}
	}
}

func (f *fake) answer(b []byte) [][]byte {
	names := func(list []string) [][]byte {
		var body []byte
		for _, n := range list {
			body = append(binary.BigEndian.AppendUint16(body, uint16(len(n))), n...)
		}
		return [][]byte{append(binary.BigEndian.AppendUint64(nil, uint64(len(body))), body...)}
	}
	if b[0] == 3 {
		return names(f.buckets)
	}
	bucket := string(b[2 : 2+b[1]])
	if b[0] == 1 {
		return names(f.listed[bucket])
	}
	b = b[2+b[1]:]
	key := string(b[2 : 2+binary.BigEndian.Uint16(b)])
	points := f.points[bucket+key]
	if bucket == "stamps" && b[2+len(key)+8+4]&1 == 0 { // without the option
		points = f.values(key, points)
	}
	if points == nil {
		return [][]byte{{0xff}, {3, 0, 0, 0, slots}, {0}}
	}
	return [][]byte{{0xff}, append([]byte{1}, snappy.Encode(nil, points)...), {0}}
}

// values returns what was planted for a series, or what its pairs hold.
func (f *fake) values(key string, pairs []byte) []byte {
	values := f.alone[key]
	for i := 0; len(f.alone[key]) == 0 && i < len(pairs); i += 16 {
		values = append(values, pairs[i:i+8]...)
	}
	return values
}

// history is a book with everything in it, and a node that answers rightly.
type history struct {
	book                                oracle.Book
	plain, timestamps                   *oracle.Bucket
	rewritten, deleted, late, timestamp *oracle.Series
	old, of                             []byte // overwritten, from before a deletion
	node                                *fake
}

func write(h *history, s *oracle.Series, slot int64) []byte {
	p := s.AppendWrite(nil, slot)
	h.node.put(s, slot, p)
	return p
}

func newHistory() *history {
	h := &history{node: &fake{points: map[string][]byte{}, alone: map[string][]byte{},
		listed: map[string][]string{}}}
	h.plain = h.book.Add(oracle.Bucket{Name: "plain", Resolution: 1000, First: first, Slots: slots})
	h.timestamps = h.book.Add(oracle.Bucket{Name: "stamps", Resolution: 1000, HPTS: true, First: first,
		Slots: slots})
	h.plain.SetState(oracle.Present)
	h.timestamps.SetState(oracle.Present)
	// Kinds of values go by the number of the series; Counted is every fifth.
	var all []*oracle.Series
	for i := range 10 {
		all = append(all, h.plain.NewSeries(dwire.Key("m", string(rune('a'+i)))))
	}
	for _, s := range all {
		s.Kind = oracle.Counted
	}
	h.rewritten, h.deleted, h.late = all[0], all[1], all[2]
	h.timestamp = h.timestamps.NewSeries(dwire.Key("s"))
	for _, s := range all[:3] {
		for slot := int64(first); slot < first+40; slot++ {
			h.old = write(h, s, slot)
		}
	}
	h.old = write(h, h.rewritten, first+7)
	write(h, h.rewritten, first+7)
	h.of = write(h, h.deleted, first+3)
	for slot := int64(first); slot < first+40; slot++ {
		write(h, h.timestamp, slot)
	}
	for _, b := range h.book.Buckets {
		b.Lane.Ack(b.Lane.Sent(), 0)
	}
	h.deleted.Deleted()
	delete(h.node.points, "plain"+string(h.deleted.Key))
	h.node.buckets = []string{"dalmatinerdb", "plain", "stamps"}
	h.node.listed["plain"] = []string{string(h.rewritten.Key), string(h.late.Key)}
	h.node.listed["stamps"] = []string{string(h.timestamp.Key)}
	return h
}

// part takes a point of the series with timestamps out of the pairs and leaves its value.
func (h *history) part(slot int) {
	pairs := h.node.points["stamps"+string(h.timestamp.Key)]
	h.node.alone[string(h.timestamp.Key)] = h.node.values(string(h.timestamp.Key), pairs)
	clear(pairs[16*slot : 16*slot+16])
}

func (h *history) judge(t *testing.T, opt Options) *Report {
	t.Helper()
	r, err := All(h.node.serve(t), &h.book, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantClasses(t *testing.T, r *Report, want map[oracle.Class]int64) {
	t.Helper()
	if !maps.Equal(r.Classes, want) {
		t.Errorf("found %v, want %v: %v", r.Classes, want, r.Findings)
	}
}

func TestARightNodeIsRight(t *testing.T) {
	r := newHistory().judge(t, Options{})
	wantClasses(t, r, nil)
	if r.Points != 120 || r.Set != 120 {
		t.Errorf("%d points expected, %d found right, want 120", r.Points, r.Set)
	}
}

// TestPlantedFaults: one changed answer is one finding, of the right class.
func TestPlantedFaults(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(h *history)
		want  map[oracle.Class]int64
	}{
		"an overwritten value": {func(h *history) {
			h.node.put(h.rewritten, first+7, h.old)
		}, map[oracle.Class]int64{oracle.Stale: 1}},
		"a flipped bit": {func(h *history) {
			h.node.points["plain"+string(h.late.Key)][8*5+7] ^= 1
		}, map[oracle.Class]int64{oracle.Foreign: 1}},
		"the value of another slot": {func(h *history) {
			p := h.node.points["plain"+string(h.late.Key)]
			copy(p[8*5:8*6], p[8*6:8*7])
		}, map[oracle.Class]int64{oracle.Foreign: 1}},
		"a point behind the last": {func(h *history) {
			h.node.put(h.late, first+49, h.old)
		}, map[oracle.Class]int64{oracle.Foreign: 1}},
		"a missing point": {func(h *history) {
			h.node.put(h.late, first+9, make([]byte, 8))
		}, map[oracle.Class]int64{oracle.Missing: 1}},
		"a missing series": {func(h *history) {
			delete(h.node.points, "plain"+string(h.late.Key))
		}, map[oracle.Class]int64{oracle.Missing: 40}},
		"a deleted value": {func(h *history) {
			h.node.put(h.deleted, first+3, h.of)
		}, map[oracle.Class]int64{oracle.Risen: 1}},
		"an invented timestamp": {func(h *history) {
			binary.BigEndian.PutUint64(h.node.points["stamps"+string(h.timestamp.Key)][16*4+8:],
				(first+4)*1e9)
		}, map[oracle.Class]int64{oracle.Timestamp: 1}},
		"a value without its timestamp": {func(h *history) {
			h.part(5)
		}, map[oracle.Class]int64{oracle.Missing: 1, oracle.Alone: 1}},
		"another value without timestamps": {func(h *history) {
			values := h.node.values(string(h.timestamp.Key), h.node.points["stamps"+string(h.timestamp.Key)])
			copy(values[8*5:8*6], values[8*6:8*7])
			h.node.alone[string(h.timestamp.Key)] = values
		}, map[oracle.Class]int64{oracle.Answer: 1}},
		"a value alone that nobody sent": {func(h *history) {
			h.part(5)
			h.node.alone[string(h.timestamp.Key)][8*5+7] ^= 1
		}, map[oracle.Class]int64{oracle.Missing: 1, oracle.Alone: 1, oracle.Foreign: 1}},
		"a deleted name": {func(h *history) {
			h.node.listed["plain"] = append(h.node.listed["plain"], string(h.deleted.Key))
		}, map[oracle.Class]int64{oracle.Name: 1}},
		"a missing name": {func(h *history) {
			h.node.listed["plain"] = h.node.listed["plain"][1:]
		}, map[oracle.Class]int64{oracle.Name: 1}},
		"a name twice": {func(h *history) {
			h.node.listed["stamps"] = slices.Repeat(h.node.listed["stamps"], 2)
		}, map[oracle.Class]int64{oracle.Name: 1}},
		"a foreign name": {func(h *history) {
			h.node.listed["stamps"] = append(h.node.listed["stamps"], "\x01z")
		}, map[oracle.Class]int64{oracle.Name: 1}},
		"a lost bucket": {func(h *history) {
			h.node.buckets = h.node.buckets[:2]
		}, map[oracle.Class]int64{oracle.Name: 1}},
		"a bucket's back": {func(h *history) {
			h.timestamps.SetState(oracle.Gone)
		}, map[oracle.Class]int64{oracle.Name: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			c.plant(h)
			wantClasses(t, h.judge(t, Options{}), c.want)
		})
	}
}

// TestDamageExcusesGapsOnly: where damage was, points may be missing, and nothing
// else may be wrong.
func TestDamageExcusesGapsOnly(t *testing.T) {
	h := newHistory()
	h.node.put(h.late, first+9, make([]byte, 8))
	h.node.put(h.late, first+20, make([]byte, 8))
	h.node.put(h.rewritten, first+7, h.old)
	r := h.judge(t, Options{Region: &Region{
		Slot: func(_ *oracle.Series, slot int64) bool { return slot < first+20 },
		Name: func(*oracle.Series) bool { return false },
	}})
	if r.Lost != 1 {
		t.Errorf("%d lost, want 1", r.Lost)
	}
	wantClasses(t, r, map[oracle.Class]int64{oracle.Missing: 1, oracle.Stale: 1})
}

// TestDamageOfTimestampsLeavesValues: where damage was, a value may be there for those
// who ask for no timestamps, if it is the right one.
func TestDamageOfTimestampsLeavesValues(t *testing.T) {
	for slot, want := range map[int]map[oracle.Class]int64{
		9: nil, 20: {oracle.Missing: 1, oracle.Alone: 1}} {
		h := newHistory()
		h.part(slot)
		r := h.judge(t, Options{Region: &Region{
			Slot: func(_ *oracle.Series, slot int64) bool { return slot < first+20 },
			Name: func(*oracle.Series) bool { return false },
		}})
		wantClasses(t, r, want)
		if want == nil && r.Lost != 1 {
			t.Errorf("%d lost, want 1", r.Lost)
		}
	}
	h := newHistory()
	h.part(9)
	h.node.alone[string(h.timestamp.Key)][8*9+7] ^= 1
	r := h.judge(t, Options{Region: &Region{
		Slot: func(*oracle.Series, int64) bool { return true },
		Name: func(*oracle.Series) bool { return false },
	}})
	wantClasses(t, r, map[oracle.Class]int64{oracle.Foreign: 1})
}

// TestDoubtEndsAtAStart: of unacknowledged writes any may be there, and the one
// that a start shows stays.
func TestDoubtEndsAtAStart(t *testing.T) {
	h := newHistory()
	wantClasses(t, h.judge(t, Options{}), nil)
	h.late.AppendWrite(nil, first+1)
	second := h.late.AppendWrite(nil, first+1)
	third := h.late.AppendWrite(nil, first+1)
	wantClasses(t, h.judge(t, Options{}), nil) // the acknowledged one
	h.node.put(h.late, first+1, second)
	wantClasses(t, h.judge(t, Options{Settle: true}), nil)
	wantClasses(t, h.judge(t, Options{}), nil)
	h.node.put(h.late, first+1, third)
	wantClasses(t, h.judge(t, Options{}), map[oracle.Class]int64{oracle.Stale: 1})
}

// TestRefusedIsInDoubt: of a lot with refusals nobody knows which points are
// stored.
func TestRefusedIsInDoubt(t *testing.T) {
	h := newHistory()
	p := h.late.AppendWrite(nil, first+45)
	h.plain.Lane.Ack(h.plain.Lane.Sent(), 1)
	wantClasses(t, h.judge(t, Options{}), nil)
	h.node.put(h.late, first+45, p)
	wantClasses(t, h.judge(t, Options{}), nil)
}

// TestNothingTellsOfADeletionInDoubt: of a series that has no point that must be there,
// a power cut may have left the name alone, whether it was to be deleted or not.
func TestNothingTellsOfADeletionInDoubt(t *testing.T) {
	for _, listed := range []bool{false, true} {
		h := newHistory()
		h.deleted.AppendWrite(nil, first+2) // begins anew, not acknowledged
		h.deleted.SetDeleting()
		if listed {
			h.node.listed["plain"] = append(h.node.listed["plain"], string(h.deleted.Key))
		}
		wantClasses(t, h.judge(t, Options{Settle: true}), nil)
	}
}

// TestAcknowledged: a series of which all was refused need not be there.
func TestAcknowledged(t *testing.T) {
	h := newHistory()
	h.deleted.AppendWrite(nil, first+2)
	if h.deleted.Acknowledged() {
		t.Error("a point that was not acknowledged has to be there")
	}
	if !h.rewritten.Acknowledged() {
		t.Error("no point of a series with acknowledged points has to be there")
	}
}
