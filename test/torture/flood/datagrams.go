package flood

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	gohttp "net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/test/torture/dwire"
)

// datagrams sends to both UDP ports, as fast as goes: points of series that the node
// knows, of new ones, and garbage. Every one of them must be counted in the end, as
// received or as dropped by the kernel.
func datagrams(t Target, release <-chan struct{}) (string, error) {
	var put, lines atomic.Int64
	var wg sync.WaitGroup
	for k, make := range []func(Target, *rand.Rand, int) []byte{known, unknown, garbled} {
		wg.Go(func() { put.Add(spray(t, t.UDP, uint64(k), make, release)) })
	}
	wg.Go(func() { lines.Add(spray(t, t.Graphite, 9, textual, release)) })
	wg.Wait()
	first, err := counted(t, put.Load(), "udp_datagrams_total", "udp_kernel_drop_total")
	second, errLines := counted(t, lines.Load(), "graphite_datagrams_total",
		"graphite_udp_kernel_drop_total")
	return fmt.Sprintf(", of %d datagrams %d dropped by the kernel", put.Load()+lines.Load(),
		first+second), errors.Join(err, errLines)
}

// spray sends until release is closed and returns how many datagrams went out.
func spray(t Target, addr string, seed uint64, make func(Target, *rand.Rand, int) []byte,
	release <-chan struct{}) (sent int64) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := 0; ; i++ {
		select {
		case <-release:
			return sent
		default:
		}
		if _, err := c.Write(make(t, rng, i)); err == nil {
			sent++
		}
	}
}

// perDatagram is how many points a datagram of known or new series has.
const perDatagram = 20

// datagram is a put of one point of each of perDatagram series, from number i on.
func datagram(t Target, name string, i int, slot int64) []byte {
	b := append([]byte{0, byte(len(t.Bucket))}, t.Bucket...)
	for k := range perDatagram {
		key := dwire.Key(name, strconv.Itoa(i+k))
		b = binary.BigEndian.AppendUint64(b, uint64(slot))
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
		b = append(binary.BigEndian.AppendUint32(b, 8), 1, 0, 0, 0, 0, 0, 0, byte(slot))
	}
	return b
}

func known(t Target, _ *rand.Rand, i int) []byte {
	const series, slots = 400, 3600
	return datagram(t, "datagram", i*perDatagram%series,
		t.First+slots+int64(i*perDatagram/series%slots))
}

func unknown(t Target, _ *rand.Rand, i int) []byte {
	return datagram(t, "new-in-a-datagram", i*perDatagram, t.First+3600)
}

func garbled(t Target, rng *rand.Rand, i int) []byte {
	b := make([]byte, 1+rng.IntN(1400))
	for k := range b {
		b[k] = byte(rng.Uint32())
	}
	switch i % 3 {
	case 0: // behind a right beginning
		b = append(append([]byte{0, byte(len(t.Bucket))}, t.Bucket...), b...)
	case 1: // a bucket that there is not
		b = append([]byte{0, 4, 'n', 'o', 'n', 'e'}, b[:0]...)
	}
	return b
}

// textual is lines of known and of new series, and of nothing.
func textual(_ Target, rng *rand.Rand, i int) []byte {
	now := time.Now().Unix()
	return fmt.Appendf(nil, "known.%d %d %d\nnew.%d 1 %d\n%x\n", i%400, i, now, i, now, rng.Uint64())
}

// countedWithin is how long the node may take to read what lies in its sockets.
const countedWithin = 30 * time.Second

// counted waits until two figures of the node make the sum, and returns the second one.
func counted(t Target, sent int64, received, dropped string) (int64, error) {
	var r, d int64
	for end := time.Now().Add(countedWithin); time.Now().Before(end); time.Sleep(
		50 * time.Millisecond) {
		text, err := figures(t)
		if err != nil {
			continue // it is asked again
		}
		if r, d = figure(text, received), figure(text, dropped); r+d == sent {
			return d, nil
		}
	}
	return d, fmt.Errorf("%d datagrams were sent: %s is %d, %s is %d", sent, received, r, dropped, d)
}

func figures(t Target) (string, error) {
	client := gohttp.Client{Timeout: countedWithin}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + t.HTTP + "/metrics")
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// figure returns the value of a figure, -1 where there is none.
func figure(text, name string) int64 {
	_, rest, ok := strings.Cut(text, "\ndalmatiner_"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	if !ok || err != nil {
		return -1
	}
	return int64(v)
}
