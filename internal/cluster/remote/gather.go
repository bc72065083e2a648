package remote

import (
	"context"
	"errors"
	"slices"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/source"
)

// readers are who answers for a partition.
type readers struct {
	// that are up: first those who keep hints and are no owners, then the owners, the best first
	ids     []ring.ID
	holders int // of ids: they answer before an owner is asked
	copies  int // owners that have to answer: r, or more
	need    int // answers: copies, and one for each who may keep hints, be it up or not
}

// target is a series on its way through a gather.
type target struct {
	readers
	key       []byte
	partition int
	asked     int // of the ids
	waiting   int // questions that are open
	answers   []*answer
	done      bool
}

// gather asks the copies of some series the same question until enough of each have answered.
type gather struct {
	r       *Remote
	view    *ring.View
	info    buckets.Info
	q       request // without keys
	targets []target

	open   int // targets that are not done
	events chan event
	asks   []*nodeRequest
	failed map[ring.ID]error
	behind bool // a node has another ring, or does not serve yet
}

// nodeRequest is a request to a node.
type nodeRequest struct {
	node   ring.ID
	which  []int // targets, in the order of its keys
	done   int   // of these
	since  time.Time
	heard  bool
	ended  bool
	hedged bool // others were asked beside it
}

// event is an answer to a question, or the end of all of them.
type event struct {
	of     *nodeRequest
	answer *answer
	err    error // of an end
}

// newGather returns a gather of series whose keys are given.
func (r *Remote) newGather(info buckets.Info, q request, keys [][]byte) *gather {
	g := &gather{r: r, view: r.o.View(), info: info, q: q, targets: make([]target, len(keys)),
		open: len(keys), events: make(chan event), failed: map[ring.ID]error{}}
	g.q.version, g.q.bucket, g.q.name = g.view.Version(), info.ID, info.Name
	known := make(map[int]readers)
	for i, key := range keys {
		t := &g.targets[i]
		t.key, t.partition = key, g.view.Partition(metric.Series(info.ID, key))
		of, ok := known[t.partition]
		if !ok {
			of = r.readers(g.view, info.ID, t.partition)
			known[t.partition] = of
		}
		t.readers = of
		g.q.digest = g.q.digest || q.kind == askAggregates && of.copies > 1
	}
	return g
}

// readers returns who answers for a partition of a bucket: this node is the first of the owners.
// Every acknowledged point is on w nodes, each an owner or one that keeps it as a hint. The needed
// answers leave out fewer than w of all these nodes. At a member that leaves, one of the answers is
// from a member that stays.
func (r *Remote) readers(v *ring.View, bucket uint64, partition int) (of readers) {
	owners := v.Owners(nil, partition, ring.Current, r.o.Copies(bucket))
	for _, id := range r.o.Holders(partition) {
		if slices.Contains(owners, id) {
			continue
		}
		of.need++
		if r.o.Reaches(id) {
			of.ids = append(of.ids, id)
		}
	}
	least, besides := ring.LeavingReadQuorum(v, r.o.Self, owners)
	of.copies = max(r.o.R(v, bucket), least)
	of.need += of.copies
	if len(besides) > 0 && !slices.ContainsFunc(besides, func(id ring.ID) bool {
		return slices.Contains(of.ids, id)
	}) {
		of.need++
		if i := slices.IndexFunc(besides, r.o.Reaches); i >= 0 {
			of.ids = append(of.ids, besides[i])
		}
	}
	of.holders = len(of.ids)
	if slices.Contains(owners, r.o.Self) && r.o.Up(r.o.Self) {
		of.ids = append(of.ids, r.o.Self)
	}
	for _, id := range owners {
		if m, ok := v.Member(id); ok && id != r.o.Self && m.State != ring.Removed && r.o.Up(id) {
			of.ids = append(of.ids, id)
		}
	}
	return of
}

// owners are those of them that are up.
func (r *readers) owners() []ring.ID { return r.ids[r.holders:] }

// errBehind ends a gather that another ring may answer.
var errBehind = errors.New("the nodes do not agree on the ring yet")

// errUnheard ends a read for which this node does not know yet whom to ask.
var errUnheard = errors.New("this node has not heard yet what the others keep: ask another node, " +
	"or again in some seconds")

// isRetryable reports whether a read may go well if it is begun again.
func isRetryable(err error) bool { return errors.Is(err, errBehind) || errors.Is(err, errUnheard) }

// The waits until the nodes agree on the ring, and know of each other.
const (
	firstAgree = 10 * time.Millisecond
	mostAgree  = 200 * time.Millisecond
	agreeFor   = 5 * time.Second
)

// gather asks until each series has enough answers.
func (r *Remote) gather(ctx context.Context, info buckets.Info, q request,
	keys [][]byte) ([]target, error) {
	var targets []target
	err := r.agreed(ctx, func() error {
		g := r.newGather(info, q, keys)
		targets = g.targets
		return g.run(ctx)
	})
	return targets, err
}

// agreed reads once this node knows whom to ask, and again for a while where the nodes do not agree
// on the ring.
func (r *Remote) agreed(ctx context.Context, read func() error) error {
	began := time.Now()
	for wait := firstAgree; ; wait = min(2*wait, mostAgree) {
		err := errUnheard
		if r.o.Ready() {
			err = read()
		}
		if err == nil || !isRetryable(err) || time.Since(began) > agreeFor {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (g *gather) run(outer context.Context) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	if err := g.askNext(ctx, func(*target) bool { return true }); err != nil {
		return err
	}
	delay := g.r.latency.p95()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for g.open > 0 {
		var err error
		select {
		case e := <-g.events:
			err = g.take(ctx, e)
		case <-timer.C:
			err = g.hedge(ctx, delay)
			timer.Reset(delay)
		case <-outer.Done():
			return outer.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// askNext asks further readers of the targets that want some.
func (g *gather) askNext(ctx context.Context, wants func(t *target) bool) error {
	var order []ring.ID
	byNode := make(map[ring.ID][]int)
	for i := range g.targets {
		t := &g.targets[i]
		if t.done {
			continue
		}
		more := 0
		if wants(t) {
			more = t.nextReaders()
		}
		for ; more > 0 && t.asked < len(t.ids); more-- {
			id := t.ids[t.asked]
			t.asked++
			t.waiting++
			if byNode[id] == nil {
				order = append(order, id)
			}
			byNode[id] = append(byNode[id], i)
		}
		if err := g.settle(t); err != nil {
			return err
		}
	}
	for _, id := range order {
		g.ask(ctx, id, byNode[id])
	}
	return nil
}

// nextReaders returns how many readers are to be asked next. A hint that is delivered while a read
// goes on is at the owner before it is gone: owners are asked when those who keep hints have
// answered.
func (t *target) nextReaders() int {
	switch {
	case t.asked < t.holders:
		return t.holders - t.asked
	case t.asked > t.holders:
		return 1
	case t.waiting > 0:
		return 0
	}
	return max(t.need-len(t.answers), 1)
}

// first returns the owner that is asked first, the zero id if none is up.
func (t *target) first() (id ring.ID) {
	if list := t.owners(); len(list) > 0 {
		id = list[0]
	}
	return id
}

// ask sends a request to a node, or answers it here.
func (g *gather) ask(ctx context.Context, id ring.ID, which []int) {
	for len(which) > 0 {
		q, n, bytes := g.q, 0, 0
		for n < len(which) && n < maxKeys &&
			(n == 0 || bytes+len(g.targets[which[n]].key)+4 <= maxKeyBytes) {
			t := &g.targets[which[n]]
			q.keys = append(q.keys, t.key)
			// The first one gives the aggregates, and so does who takes the place of another.
			q.whole = append(q.whole, q.kind == askAggregates && (t.first() == id || t.asked > t.need))
			bytes += len(t.key) + 4
			n++
		}
		a := &nodeRequest{node: id, which: which[:n], since: time.Now()}
		g.asks = append(g.asks, a)
		which = which[n:]
		go g.await(ctx, a, &q)
	}
}

// await gives the answers of a node to the gather.
func (g *gather) await(ctx context.Context, a *nodeRequest, q *request) {
	give := func(e event) error {
		select {
		case g.events <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var err error
	if a.node == g.r.o.Self {
		if err = g.r.serves(q.version); err == nil {
			err = g.r.answerHere(ctx, q, func(_ int, of *answer) error {
				return give(event{of: a, answer: of.clone()})
			})
		}
	} else {
		d := &decoder{q: q, answer: func(_ int, of *answer) error {
			return give(event{of: a, answer: of})
		}}
		if err = g.r.o.Ask(ctx, a.node, q.append(nil), d.part); err == nil {
			err = d.end()
		}
	}
	_ = give(event{of: a, err: err}) // else nobody waits
}

// clone copies what is valid during a call only.
func (a *answer) clone() *answer {
	c := *a
	c.headers, c.words, c.times = slices.Clone(a.headers), slices.Clone(a.words), slices.Clone(a.times)
	return &c
}

// take takes an answer, or the end of a request.
func (g *gather) take(ctx context.Context, e event) error {
	a := e.of
	if !a.heard {
		a.heard = true
		if e.err == nil {
			g.r.latency.note(time.Since(a.since))
		}
	}
	if e.answer != nil {
		a.since = time.Now()
		t := &g.targets[a.which[a.done]]
		a.done++
		t.waiting--
		e.answer.node = a.node
		e.answer.hints = slices.Contains(t.ids[:t.holders], a.node)
		t.answers = append(t.answers, e.answer)
		if !g.hasEnough(t) && t.waiting == 0 {
			return g.askOne(ctx, a.which[a.done-1:a.done])
		}
		return g.settle(t)
	}
	a.ended = true
	return g.end(ctx, a, e.err)
}

// end ends a request. What it did not answer others are asked.
func (g *gather) end(ctx context.Context, a *nodeRequest, err error) error {
	left := a.which[a.done:]
	if len(left) == 0 {
		return nil
	}
	if err == nil {
		err = errReply
	}
	switch {
	case call.CodeOf(err) == call.UnknownBucket && g.knownHere():
		// It has nothing of the bucket yet, or no longer.
		for _, i := range left {
			t := &g.targets[i]
			t.waiting--
			none := g.emptyAnswer(a.node)
			none.hints = slices.Contains(t.ids[:t.holders], a.node)
			t.answers = append(t.answers, none)
		}
		return g.askOne(ctx, left)
	case call.CodeOf(err) == call.UnknownBucket, errors.Is(err, buckets.ErrUnknown):
		return buckets.UnknownError(g.info.Name)
	case call.CodeOf(err) == call.OtherRing:
		g.behind = true
	}
	g.failed[a.node] = err
	for _, i := range left {
		g.targets[i].waiting--
	}
	return g.askOne(ctx, left)
}

func (g *gather) knownHere() bool {
	_, err := g.r.localBucket(g.info.ID, g.info.Name)
	return err == nil
}

// emptyAnswer is the answer of a node that has no such bucket.
func (g *gather) emptyAnswer(id ring.ID) *answer {
	a := &answer{node: id}
	switch g.q.kind {
	case askAggregates:
		a.headers = make([]chunk.Header, g.q.count)
	case askSlots:
		a.words = make([]uint64, g.q.count)
		if g.q.times {
			a.times = make([]uint64, g.q.count)
		}
	}
	return a
}

// askOne asks one more reader of some targets.
func (g *gather) askOne(ctx context.Context, which []int) error {
	of := make(map[*target]bool, len(which))
	for _, i := range which {
		t := &g.targets[i]
		of[t] = true
		if t.asked == len(t.ids) && !t.done { // an owner may be back by now
			t.ids = slices.Clone(t.ids)
			again := g.r.readers(g.view, g.info.ID, t.partition)
			for _, id := range again.owners() {
				if !slices.Contains(t.ids, id) {
					t.ids = append(t.ids, id)
				}
			}
		}
	}
	return g.askNext(ctx, func(t *target) bool { return of[t] && !g.hasEnough(t) })
}

// hedge asks others beside those who have said nothing for too long.
func (g *gather) hedge(ctx context.Context, delay time.Duration) error {
	for _, a := range g.asks {
		if a.ended || a.hedged || time.Since(a.since) < delay {
			continue
		}
		a.hedged = true
		if err := g.askOne(ctx, a.which[a.done:]); err != nil {
			return err
		}
	}
	return nil
}

// hasEnough reports whether a target has as many answers as a read needs. One with a hole counts
// for none, and those that tell whether copies are equal need one of what they are equal to.
func (g *gather) hasEnough(t *target) bool {
	whole, full := 0, g.q.kind != askAggregates
	for _, a := range t.answers {
		if len(a.cost.Unknown) == 0 && a.cost.MoreUnknown == 0 {
			whole++
			full = full || a.headers != nil || a.newer
		}
	}
	return whole >= t.need && full
}

// settle looks whether a target is done, or nobody is left who could be asked.
func (g *gather) settle(t *target) error {
	switch {
	case t.done:
		return nil
	case g.hasEnough(t):
	case t.waiting > 0:
		return nil
	case t.asked < len(t.ids):
		return nil // owners follow those who keep hints
	case len(t.answers) < t.need:
		return g.tooFewError(t)
	}
	t.done = true
	g.open--
	return nil
}

// clipUnknown returns what of unknown ranges lies in the slots [from, past).
func clipUnknown(unknown []source.Unknown, from, past int64) (some []source.Unknown) {
	for _, u := range unknown {
		if u.From, u.Past = max(u.From, from), min(u.Past, past); u.From < u.Past {
			some = append(some, u)
		}
	}
	return some
}
