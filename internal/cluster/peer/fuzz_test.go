package peer

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// FuzzFrames reads any bytes as frames. What was read, encoded again, is what stood there.
func FuzzFrames(f *testing.F) {
	two := append(appendHeader(nil, kindData, []byte("body")), "body"...)
	two = appendHeader(two, kindAlive, nil)
	f.Add(two)
	f.Add(two[:len(two)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, kindData, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, src []byte) {
		const most = 1000
		var held atomic.Int64
		in := newFrames(bytes.NewReader(src), most, aliveBuffer, &held)
		var again []byte
		for {
			kind, body, err := in.next()
			if held.Load() > aliveBuffer+most {
				t.Fatalf("%d bytes are held", held.Load())
			}
			if err != nil {
				if err == io.EOF && len(again) != len(src) {
					t.Fatalf("the end at %d of %d bytes", len(again), len(src))
				}
				break
			}
			again = append(appendHeader(again, kind, body), body...)
		}
		if !bytes.HasPrefix(src, again) {
			t.Fatalf("read %x from %x", again, src)
		}
	})
}

// FuzzHello reads any bytes as what a node says of itself.
func FuzzHello(f *testing.F) {
	h := (&Peers{options: settings(1)}).hello(nodeID(2))
	f.Add(h.append(nil))
	f.Add(append(h.append(nil), "of a later version"...))
	longest := h
	longest.cluster, longest.name = strings.Repeat("c", 255), strings.Repeat("n", 255)
	f.Add(longest.append(nil))
	f.Fuzz(func(t *testing.T, src []byte) {
		h, err := parseHello(src)
		if err != nil {
			if !errors.Is(err, Foreign) {
				t.Fatal(err)
			}
			return
		}
		if again := h.append(nil); !bytes.HasPrefix(src, again) {
			t.Fatalf("read %x from %x", again, src)
		}
	})
}

// script is a connection whose other side says what it always does.
type script struct {
	net.Conn
	io.Reader
	read int
}

func (s *script) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.read += n
	return n, err
}
func (*script) Write(b []byte) (int, error) { return len(b), nil }
func (*script) SetDeadline(time.Time) error { return nil }

// FuzzHandshake lets whoever does not know the cookie try both roles. It gets in with neither, and
// no more of it is read than the bound.
func FuzzHandshake(f *testing.F) {
	h := (&Peers{options: settings(1)}).hello(nodeID(2))
	first := appendMessage([]byte(magic), sayHello, h.append(nil))
	f.Add(appendMessage(bytes.Clone(first), sayProof, make([]byte, proofSize)))
	f.Add(appendMessage(bytes.Clone(first), sayRefuse, []byte{200}))
	f.Add(append(append([]byte(magic), sayHello, 0xff, 0xff), make([]byte, 0xffff)...))
	node := start(f, settings(2))
	f.Cleanup(node.Close)
	f.Fuzz(func(t *testing.T, src []byte) {
		for role, try := range map[string]func(*script) error{
			acceptor: func(s *script) error {
				_, err := node.welcome(t.Context(), s, func(remoteNode) error {
					t.Fatal("admitted without the cookie")
					return nil
				})
				return err
			},
			dialler: func(s *script) error {
				_, _, err := node.greet(t.Context(), s, nodeID(1))
				return err
			},
		} {
			s := &script{Reader: bytes.NewReader(src)}
			if err := try(s); err == nil {
				t.Fatalf("%s lets %x in", role, src)
			}
			if s.read > len(magic)+2*(3+maxMessage) {
				t.Fatalf("%s read %d bytes", role, s.read)
			}
		}
	})
}

// TestQueueEqualsTheModel fills and empties queues: bounded, in order, counted.
func TestQueueEqualsTheModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		q := queue{limit: 200 + rng.IntN(100_000)}
		var waits, flies []byte
		count := 0
		for range 100 {
			switch rng.IntN(4) {
			case 0:
				q.finishBatch()
				batch, n := q.take()
				if !bytes.Equal(batch, waits) || n != count {
					t.Fatalf("took %d frames, not %d", n, count)
				}
				if whole, end := wholeFrames(batch, len(batch)); whole != n || end != len(batch) {
					t.Fatalf("%d whole frames of %d", whole, n)
				}
				waits, flies, count = nil, bytes.Clone(batch), 0
			case 1:
				q.trim()
			default:
				body := make([]byte, rng.IntN(2000))
				fits := len(waits)+len(flies)+headerSize+len(body) <= q.limit
				if q.put(kindData, body) != fits {
					t.Fatalf("put: not %v", fits)
				}
				if fits {
					waits = append(appendHeader(waits, kindData, body), body...)
					count++
				}
			}
			if q.bytes() != len(waits)+len(flies) || q.heldBytes() > 2*q.limit {
				t.Fatalf("%d bytes in %d of %d", q.bytes(), q.heldBytes(), q.limit)
			}
		}
		if q.clear() != count || q.bytes() != 0 || q.heldBytes() != 0 {
			t.Fatal("clear leaves something")
		}
	}
}

// TestWholeFrames cuts a batch at every byte.
func TestWholeFrames(t *testing.T) {
	var batch []byte
	var ends []int
	for _, size := range []int{0, 5, 300, 0} {
		body := make([]byte, size)
		batch = append(appendHeader(batch, kindData, body), body...)
		ends = append(ends, len(batch))
	}
	for n := range len(batch) + 1 {
		want, at := 0, 0
		for want < len(ends) && ends[want] <= n {
			want, at = want+1, ends[want]
		}
		if count, end := wholeFrames(batch, n); count != want || end != at {
			t.Fatalf("%d frames up to %d in %d bytes", count, end, n)
		}
	}
}
