package cluster

import (
	"errors"
	"log/slog"
	"sync"

	"dalmatiner/internal/cluster/message"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/loglimit"
)

// The channels of a connection between nodes: the first byte of a frame.
const (
	channelMessage = 1 // of the protocol
	channelCall    = 2
	channelRenew   = 3 // names of series are missing
)

// wires encode what goes to other nodes, and decode what comes from them.
type wires struct {
	// put queues a frame for a peer, and reports whether it did.
	put        func(to ring.ID, frame []byte) bool
	newEncoder func() *message.Encoder
	newDecoder func() *message.Decoder
	learn      func(news []replication.Bucket) error
	receive    func(from ring.ID, m replication.Message)
	call       func(from ring.ID, frame []byte)
	log        *loglimit.Logger

	mu      sync.Mutex
	of      map[ring.ID]*line
	running sync.WaitGroup // of inboxes
}

// line is what is known of one peer's names, and what it knows of ours. The two halves have a
// lock each: handlers of frames must not wait for a sender.
type line struct {
	out     sync.Mutex
	encoder *message.Encoder
	frame   []byte

	in      sync.Mutex
	decoder *message.Decoder
	news    []replication.Bucket // that are not known here yet

	inbox inbox
}

// keptFrame is what a buffer for frames keeps.
const keptFrame = 64 << 10

func (w *wires) lineTo(id ring.ID) *line {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of[id]
	if p == nil {
		p = &line{encoder: w.newEncoder(), decoder: w.newDecoder()}
		w.of[id] = p
	}
	return p
}

// forget lets what is known of a peer go.
func (w *wires) forget(id ring.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, id)
}

// resetLine says that there is a new connection to a peer: what went over another one may be lost.
func (w *wires) resetLine(id ring.ID) {
	p := w.lineTo(id)
	p.out.Lock()
	defer p.out.Unlock()
	p.encoder.Renew()
}

// send sends a message, or loses it: the protocol sends again what is not answered.
func (w *wires) send(to ring.ID, m replication.Message) {
	p := w.lineTo(to)
	p.out.Lock()
	defer p.out.Unlock()
	frame, err := p.encoder.Append(append(p.frame[:0], channelMessage), m)
	if err != nil {
		w.log.Log(slog.LevelWarn, "encode", "a message to another node is not sent", "peer", to.String(),
			"err", err)
		return
	}
	p.encoder.ConfirmSent(w.put(to, frame))
	if p.frame = frame; cap(frame) > keptFrame {
		p.frame = nil
	}
}

// frame takes a frame of a peer.
func (w *wires) handle(from ring.ID, frame []byte) {
	if len(frame) == 0 {
		return
	}
	body := frame[1:]
	switch frame[0] {
	case channelMessage:
		w.message(from, body)
	case channelCall:
		w.call(from, body)
	case channelRenew:
		p := w.lineTo(from)
		p.out.Lock()
		err := p.encoder.HandleRequest(body)
		p.out.Unlock()
		if err != nil {
			w.malformed(from, err)
		}
	default:
		w.malformed(from, errors.New("the channel is not known"))
	}
}

func (w *wires) malformed(from ring.ID, err error) {
	w.log.Log(slog.LevelWarn, "decode", "a message of another node is passed over", "peer",
		from.String(), "err", err)
}

// message takes a message. Its buckets are here before its rows are. The protocol gets it later.
func (w *wires) message(from ring.ID, body []byte) {
	p := w.lineTo(from)
	p.in.Lock()
	m, news, err := p.decoder.Decode(body)
	var request []byte
	if errors.Is(err, message.ErrRenew) {
		request = p.decoder.AppendRequest([]byte{channelRenew})
	}
	if p.news = append(p.news, news...); len(p.news) > message.MaxBuckets {
		p.news = nil // they were not taken again and again; what they are comes by gossip, too
	}
	if err == nil && len(p.news) > 0 {
		if err = w.learn(p.news); err == nil {
			p.news = nil
		}
	}
	p.in.Unlock()
	switch {
	case request != nil:
		w.put(from, request) // if it is lost, the next frame asks again
	case err != nil:
		w.malformed(from, err)
	case p.inbox.put(arrival{m, len(body)}):
		w.running.Go(func() { p.inbox.run(func(m replication.Message) { w.receive(from, m) }) })
	}
}

// close waits until nothing is received any more. No frames may come meanwhile.
func (w *wires) close() { w.running.Wait() }
