// Package flood is clients that take memory and give nothing: endless input, idle connections,
// unread answers, endless names.
package flood

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/test/torture/dwire"
)

// Target is the node.
type Target struct {
	TCP, HTTP, Graphite, Pickle, UDP string // that of graphite takes datagrams, too
	Bucket                           string // has 400 series good.*
	First                            int64  // their first slot, of 3,600
}

// Case is one such flood. Run holds what it has until release is closed, and says
// how many of its clients the node refused. Its error says what the node did wrong.
type Case struct {
	Name    string
	Refused bool // must be
	Run     func(t Target, release <-chan struct{}) (string, error)
}

// Cases are all floods.
func Cases() []Case {
	return []Case{
		{"100 frames of 16 MiB less a byte", false, held(100, tcp, frame)},
		{"900 stream entries less a byte", false, held(900, tcp, entry)},
		{"900 stream batches without an end", false, held(900, tcp, batch)},
		{"900 HTTP bodies less a byte", false, held(900, http, body)},
		{"900 HTTP headers without an end", false, held(900, http, header)},
		{"900 graphite lines without an end", false, held(900, graphite, line)},
		{"900 pickle frames less a byte", false, held(900, pickle, pickled)},
		{"1100 idle TCP connections", false, held(1100, tcp, nothing)},
		{"1100 idle HTTP connections", false, held(1100, http, nothing)},
		{"1100 idle graphite connections", false, held(1100, graphite, nothing)},
		{"200 queries that nobody reads", false, held(200, http, query)},
		{"200 GETs that nobody reads", false, held(200, tcp, gets)},
		{"garbage on every listener", false, garbage},
		{"new series without end", false, names},
		{"new buckets without end", false, buckets},
		{"EVENTS frames and bodies as fast as goes", false, events},
		{"datagrams as fast as goes", false, datagrams},
		{"GET of 2^32-1 slots", true, largeGet},
	}
}

func tcp(t Target) string      { return t.TCP }
func http(t Target) string     { return t.HTTP }
func graphite(t Target) string { return t.Graphite }
func pickle(t Target) string   { return t.Pickle }

// held opens connections, writes to each what a client writes, and holds them
// until release is closed. One that the node closes is not opened again.
func held(n int, addr func(Target) string, client func(t Target, c net.Conn)) func(Target,
	<-chan struct{}) (string, error) {
	return func(t Target, release <-chan struct{}) (string, error) {
		var wg sync.WaitGroup
		var closed atomic.Int64
		for range n {
			wg.Go(func() {
				c, err := net.DialTimeout("tcp", addr(t), 5*time.Second)
				if err != nil {
					closed.Add(1)
					return
				}
				defer func() { _ = c.Close() }() // nothing is lost with it
				if tc, ok := c.(*net.TCPConn); ok {
					_ = tc.SetReadBuffer(4096) // what is not read shall lie with the node
				}
				written := make(chan struct{})
				go func() {
					defer close(written)
					client(t, c)
				}()
				<-release
				_ = c.SetWriteDeadline(time.Now()) // a write that waits for the node ends
				<-written
				_ = c.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := c.Write([]byte{0}); err != nil {
					closed.Add(1)
				}
			})
		}
		wg.Wait()
		if k := closed.Load(); k > 0 {
			return fmt.Sprintf(", %d cut off", k), nil
		}
		return "", nil
	}
}

// put writes; the node may close at any time, which is its right.
func put(c net.Conn, b []byte) { _, _ = c.Write(b) }

// most writes n bytes in pieces.
func most(c net.Conn, n int) {
	piece := make([]byte, 64<<10)
	for i := range piece {
		piece[i] = 'a'
	}
	for n > 0 {
		k, err := c.Write(piece[:min(n, len(piece))])
		if err != nil {
			return
		}
		n -= k
	}
}

func frame(_ Target, c net.Conn) {
	put(c, binary.BigEndian.AppendUint32(nil, 16<<20))
	most(c, 16<<20-1)
}

func open(t Target, c net.Conn) { stream(t.Bucket, c) }

func stream(bucket string, c net.Conn) {
	b := append([]byte{4, 5, byte(len(bucket))}, bucket...)
	put(c, append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
}

func entry(t Target, c net.Conn) {
	open(t, c)
	key := dwire.Key("good", "0000")
	points := 1<<20 - 64 - len(key)
	points -= points % 8
	b := binary.BigEndian.AppendUint64([]byte{5}, uint64(t.First))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
	put(c, binary.BigEndian.AppendUint32(b, uint32(points)))
	most(c, points-1)
}

func batch(t Target, c net.Conn) {
	open(t, c)
	put(c, binary.BigEndian.AppendUint64([]byte{10}, uint64(t.First)))
	put(c, []byte{0xff, 0xff})
	most(c, 65535)
}

func body(_ Target, c net.Conn) {
	put(c, []byte("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"text/plain\r\nContent-Length: 1048576\r\n\r\n"))
	most(c, 1<<20-1)
}

func header(_ Target, c net.Conn) {
	put(c, []byte("GET / HTTP/1.1\r\nHost: localhost\r\nX-Much: "))
	most(c, 900<<10)
}

func line(_ Target, c net.Conn) { most(c, 16<<10-1) }

func pickled(_ Target, c net.Conn) {
	put(c, binary.BigEndian.AppendUint32(nil, 1<<20))
	most(c, 1<<20-1)
}

func nothing(Target, net.Conn) {}

func query(t Target, c net.Conn) {
	q := fmt.Sprintf("SELECT 'good'.* BUCKET '%s' AFTER %d FOR 3600s", t.Bucket, t.First*1000)
	q = strings.NewReplacer(" ", "%20", "'", "%27").Replace(q)
	put(c, []byte("GET /?q="+q+" HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

func gets(t Target, c net.Conn) {
	key := dwire.Key("good", "0000")
	b := append([]byte{2, byte(len(t.Bucket))}, t.Bucket...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.First))
	b = binary.BigEndian.AppendUint32(b, 3600)
	one := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	for range 2000 {
		if _, err := c.Write(one); err != nil {
			return
		}
	}
}

// garbage connects to every listener again and again, and sends what no protocol
// knows, behind a right beginning or not.
func garbage(t Target, release <-chan struct{}) (string, error) {
	var wg sync.WaitGroup
	var sent atomic.Int64
	for k, addr := range []string{t.TCP, t.HTTP, t.Graphite, t.Pickle, t.TCP, t.HTTP, t.Graphite,
		t.Pickle} {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k), 1))
			for {
				select {
				case <-release:
					return
				default:
				}
				c, err := net.DialTimeout("tcp", addr, 5*time.Second)
				if err != nil {
					continue
				}
				_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // a failure shows in the write
				if rng.IntN(2) == 0 {
					open(t, c)
				}
				b := make([]byte, 1+rng.IntN(4096))
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
				if rng.IntN(2) == 0 {
					b[0] = byte(rng.IntN(0x22))
				}
				put(c, b)
				_ = c.Close() // nothing is lost with it
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf(", %d connections", sent.Load()), nil
}

// names sends points of series that nobody has seen, as fast as they are taken.
func names(t Target, release <-chan struct{}) (string, error) {
	var wg sync.WaitGroup
	var sent atomic.Int64
	for k := range 4 {
		wg.Go(func() {
			c, err := net.DialTimeout("tcp", t.TCP, 5*time.Second)
			if err != nil {
				return
			}
			go func() {
				<-release
				_ = c.Close() // ends the write under way
			}()
			open(t, c)
			for i := 0; ; {
				b := binary.BigEndian.AppendUint64([]byte{10}, uint64(t.First+3600))
				for range 1000 {
					key := dwire.Key("new", fmt.Sprintf("of-connection-%d-number-%d", k, i))
					b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
					b = append(b, 1, 0, 0, 0, 0, 0, 0, 1)
					i++
				}
				if _, err := c.Write(append(b, 0, 0)); err != nil {
					return
				}
				sent.Add(1000)
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf(", %d names sent", sent.Load()), nil
}

// largeGet asks for more slots than any request may, of a series that exists and
// of one that does not, and returns the refusal.
func largeGet(t Target, _ <-chan struct{}) (string, error) {
	out := ""
	for _, name := range []string{"0000", "none"} {
		c, err := dwire.Dial(t.TCP, 20*time.Second)
		if err != nil {
			return "", nil
		}
		refusal, err := c.Refusal(t.Bucket, dwire.Key("good", name), 0, 1<<32-1)
		c.Close()
		if err != nil || refusal == "" {
			return "", nil
		}
		out = ", refused: " + refusal
	}
	return out, nil
}
