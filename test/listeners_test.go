package test

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

// listener returns an address that the node's log names.
func (n *node) listener(message string) string {
	n.t.Helper()
	line := regexp.MustCompile(`msg="` + message + `" addr=(\S+)`)
	m := line.FindStringSubmatch(n.log.String())
	if m == nil {
		n.t.Fatalf("the log has no address for %q:\n%s", message, n.log)
	}
	return m[1]
}

// to connects to a listener.
func (n *node) to(network, addr string) net.Conn {
	n.t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		n.t.Fatal(err)
	}
	return c
}

func put(t *testing.T, c net.Conn, text []byte) {
	t.Helper()
	if _, err := c.Write(text); err != nil {
		t.Fatal(err)
	}
}

// refusals returns how many requests were refused for a reason.
func (n *node) refusals(reason string) int {
	n.t.Helper()
	return int(n.figure(`requests_refused_total{reason="` + reason + `"}`))
}

// TestGraphiteLines: ten thousand lines, every seventh bad in one of five
// ways, over TCP and UDP: the account is exact and the connection lives.
func TestGraphiteLines(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "graphite.addr=127.0.0.1:0", "--set",
		"graphite.max_line=200B")
	addr := n.listener("graphite lines")
	tcp, udp := n.to("tcp", addr), n.to("udp", addr)
	slot := past(time.Minute)
	bad := map[string]string{
		"malformed": "series 5\n", "bad_value": "series many 1\n", "bad_timestamp": "series 1 soon\n",
		"bad_tag": "series;x 1 1\n", "line_too_long": strings.Repeat("x", 201) + "\n",
	}
	reasons := []string{"malformed", "bad_value", "bad_timestamp", "bad_tag", "line_too_long"}
	want := map[string]int{}
	const lines = 10_000
	good := 0
	line := func(listener string, i int) []byte {
		if i%7 == 0 {
			reason := reasons[i/7%len(reasons)]
			want[reason]++
			return []byte(bad[reason])
		}
		good++
		return fmt.Appendf(nil, "from.%s.n%d;host=h%d %d.5 %d\n", listener, i%1000, i%3, i,
			slot+int64(i/1000))
	}
	for i := range lines {
		put(t, tcp, line("tcp", i))
		if i%10 != 0 {
			continue
		}
		// UDP is one of ten, and waits for what it sent: nothing may be dropped.
		put(t, udp, line("udp", i))
		sent := float64(i/10 + 1)
		if i%500 == 0 {
			eventually(t, "the datagrams are read", func() bool {
				return n.figure("graphite_datagrams_total") == sent
			})
		}
	}
	eventually(t, "all good lines are stored", func() bool {
		row := n.account("graphite")
		return int(stored(row)) == good
	})
	for reason, w := range want {
		if got := n.refusals("graphite_" + reason); got != w {
			t.Errorf("%d lines are refused as %s, want %d", got, reason, w)
		}
	}
	if row := n.account("graphite"); int(row.Received) != good || int(row.Accepted+row.Late) != good {
		t.Errorf("the account of %d good lines is %+v", good, row)
	}
	put(t, tcp, fmt.Appendf(nil, "alive 1 %d\n", slot))
	eventually(t, "the connection goes on", func() bool {
		row := n.account("graphite")
		return int(stored(row)) == good+1
	})
	words, err := n.dial().Get(t.Context(), "graphite", key(t, "from", "tcp", "n1", "host=h1"), slot,
		1)
	if err != nil || words[0] != point.FromFloat(1.5) {
		t.Errorf("the first good line is stored as %x: %v", words, err)
	}
	if got := n.figure("graphite_udp_kernel_drop_total"); got != 0 {
		t.Errorf("%v datagrams were dropped", got)
	}
	n.stop()
}

// TestPickledGraphite: a list of points, a frame that runs nothing, and points
// again on the same connection.
func TestPickledGraphite(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "graphite.pickle_addr=127.0.0.1:0", "--set",
		"graphite.bucket=carbon")
	c := n.to("tcp", n.listener("graphite pickled lists"))
	slot := past(time.Minute)
	list := func(path string, value float64) []byte {
		p := append([]byte("\x80\x02]q\x00("), 'U', byte(len(path)))
		p = append(append(p, path...), 'J')
		p = append(binary.LittleEndian.AppendUint32(p, uint32(slot)), 'G')
		p = binary.BigEndian.AppendUint64(p, math.Float64bits(value))
		return append(p, "\x86\x86e."...)
	}
	put(t, c, frame(list("a.b", 0.5)))
	put(t, c, frame([]byte("cos\nsystem\n(S'false'\ntR.")))
	put(t, c, frame(list("a.c", 2)))
	eventually(t, "two points are stored", func() bool {
		row := n.account("carbon")
		return stored(row) == 2
	})
	if got := n.refusals("graphite_bad_pickle"); got != 1 {
		t.Errorf("%d frames are refused", got)
	}
	words, err := n.dial().Get(t.Context(), "carbon", key(t, "a", "b"), slot, 1)
	if err != nil || words[0] != point.FromFloat(0.5) {
		t.Errorf("a.b is stored as %x: %v", words, err)
	}
}

// TestUDPPut: datagrams of the original's early protocol, two of them broken.
func TestUDPPut(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "udp.listeners=2", "--set", "udp.addr=127.0.0.1:0")
	c := n.to("udp", n.listener("udp put"))
	slot := past(time.Minute)
	datagram := func(values ...int64) []byte {
		k := key(t, "my", "key")
		d := binary.BigEndian.AppendUint64([]byte("\x00\x03udp"), uint64(slot))
		d = append(binary.BigEndian.AppendUint16(d, uint16(len(k))), k...)
		d = binary.BigEndian.AppendUint32(d, uint32(len(values)*point.Size))
		for _, v := range values {
			d = point.Append(d, point.FromInt(v))
		}
		return d
	}
	whole := datagram(7, 8, 9)
	put(t, c, whole[:len(whole)-1])
	put(t, c, []byte("\x04\x03udp"))
	put(t, c, whole)
	eventually(t, "three points are stored", func() bool {
		row := n.account("udp")
		return stored(row) == 3
	})
	if m, o := n.refusals("udp_malformed"), n.refusals("udp_unknown_opcode"); m != 1 || o != 1 {
		t.Errorf("%d datagrams are malformed, %d of another opcode", m, o)
	}
	words, err := n.dial().Get(t.Context(), "udp", key(t, "my", "key"), slot, 3)
	if err != nil || words[0] != point.FromInt(7) || words[2] != point.FromInt(9) {
		t.Errorf("stored are %x: %v", words, err)
	}
	if got := n.figure("udp_datagrams_total"); got != 3 {
		t.Errorf("%v datagrams are counted", got)
	}
}
