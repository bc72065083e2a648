package test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"dalmatiner/internal/wire"
	"dalmatiner/test/siege"
)

// eventsOf returns how many events the account of a bucket has as stored.
func (n *node) eventsOf(bucket string) int {
	n.t.Helper()
	a, err := n.admin().Account(n.t.Context(), bucket, 0)
	if err != nil {
		return 0 // before the first event there is no bucket
	}
	total := uint64(0)
	for _, row := range a.Events.Rows {
		if row.Sum() != row.Received {
			n.t.Fatalf("the parts do not make the sum: %+v", row)
		}
		total += row.Accepted + row.Late
	}
	return int(total)
}

// TestHostileSyslog: what is no syslog is counted under its reason and stores nothing; whole
// messages before and behind it are stored.
func TestHostileSyslog(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "syslog.addr=127.0.0.1:0")
	addr := n.listener("syslog messages")
	stored := 0
	for _, c := range []struct {
		name, send, reason string
		stored             int
		closed             bool // by the node
	}{
		{"a length of 2^63", "<13>before\n9223372036854775808 <13>x", "bad_framing", 1, true},
		{"a length beyond 64 bits", strings.Repeat("9", 100_000), "bad_framing", 0, true},
		{"a length that is none", "12x <13>x", "bad_framing", 0, true},
		{"a date, and a length that is none", "2026-11-23 12:00:00 host app: text\n2026x", "bad_framing",
			1, true},
		{"half a message", "<13>whole\n100 <13>half", "cut", 1, false},
		{"half a length", "12", "cut", 0, false},
		{"a long line", strings.Repeat("x", 200_000) + "\n<13>behind\n", "too_long", 1, false},
		{"a long message", "200000 " + strings.Repeat("x", 200_000) + "<13>behind\n", "too_long", 1,
			false},
		{"a long message that is cut", "200000 " + strings.Repeat("x", 100_000), "cut", 0, false},
	} {
		before := n.refusals("syslog_" + c.reason)
		nc := n.to("tcp", addr)
		_, err := io.Copy(nc, strings.NewReader(c.send))
		if err != nil && !c.closed {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !c.closed {
			if err := nc.Close(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := nc.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("%s: the connection is open: %v", c.name, err)
		}
		stored += c.stored
		eventually(t, c.name+" is counted", func() bool {
			return n.refusals("syslog_"+c.reason) == before+1
		})
		eventually(t, "whole messages are stored", func() bool { return n.eventsOf("syslog") == stored })
	}
	n.stop()
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

// TestUnfinishedSyslog: thousands of messages that do not end stay inside the memory of unfinished
// input, and a sender beside them is served.
func TestUnfinishedSyslog(t *testing.T) {
	n, peak := besieged(t, "--set", "syslog.addr=127.0.0.1:0", "--set", "syslog.max_connections=4000",
		"--set", "input.stall_timeout=2s")
	addr := n.listener("syslog messages")
	besiege(t, n, peak, func() *siege.Attack {
		return siege.Start(addr, 3000, siege.Message(60_000))
	}, func(a *siege.Attack) bool {
		return a.Opened.Load() == 3000 &&
			cuts(n)[`{listener="syslog",reason="stalled"}`]+cuts(
				n)[`{listener="syslog",reason="pressure"}`] > 0
	})
	nc := n.to("tcp", addr)
	put(t, nc, []byte("<13>good\n60004 <13>"+strings.Repeat("g", 60_000)))
	eventually(t, "a good sender is served", func() bool { return n.eventsOf("syslog") == 2 })
	n.stop()
}

// TestSlowFollowers: live tails that nobody reads hold a bounded memory, do not hold back who
// writes, have what they miss counted, and are cut off.
func TestSlowFollowers(t *testing.T) {
	n, peak := besieged(t, "--set", "reply.stall_timeout=2s")
	postEvents(t, n, "{}")
	a := siege.Start(n.http, 40, siege.Follow("log"))
	defer a.Close()
	eventually(t, "tails are open", func() bool { return n.figure("event_tails") > 0 })
	line := fmt.Sprintf("{\"text\":%q}\n", strings.Repeat("x", 1000))
	body := strings.Repeat(line, 500)
	const posts = 120 // 60 MB in all
	for range posts {
		postEvents(t, n, body)
	}
	if got := n.eventsOf("log"); got != posts*500+1 {
		t.Errorf("%d events are stored", got)
	}
	if n.figure("event_tail_missed_total") == 0 {
		t.Error("nobody missed anything: the test shows nothing")
	}
	eventually(t, "tails that nobody reads are cut off", func() bool {
		return n.figure("event_tails") == 0
	})
	if most := peak(); most > testMemory/10*11 {
		t.Errorf("the process had %d MiB of its own", most>>20)
	} else {
		t.Logf("at most %d MiB; %v events missed, cut off: %v", most>>20,
			n.figure("event_tail_missed_total"), cuts(n))
	}
	n.stop()
}

// eventBomb is a list of events as opcode 13 has it, what the ERROR must say, and the reason under
// which it is counted.
type eventBomb struct {
	name, want, reason string
	coded              []byte
}

func eventBombs() []eventBomb {
	term := func(body string) []byte {
		return wire.CodeEvents(nil, wire.AppendEvent(nil, wire.Event{Time: 1, Term: []byte(body)}))
	}
	zeros := "\x78\xda\xec\xc1\x01\x01" // begins what zlib makes of very many zeros
	return []eventBomb{
		{"a compressed term of 4 GiB", "when inflated, the limit is", "malformed",
			term("\x83P\xff\xff\xff\xff" + zeros)},
		{"a list that announces 2^32 elements", "malformed term", "malformed",
			term("\x83l\xff\xff\xff\xff")},
		{"100,000 lists in each other", "nests deeper than 64 levels", "malformed",
			term("\x83" + strings.Repeat("l\x00\x00\x00\x01", 100_000))},
		{"an atom of 65,535 bytes", "an atom of 65535 characters", "malformed",
			term("\x83v\xff\xff" + strings.Repeat("a", 65535))},
		{"a binary of 2 MiB", "the limit is 1048576", "malformed",
			term("\x83m\x00\x20\x00\x00" + strings.Repeat("a", 2<<20))},
		{"an atom of 16 MiB less 100 bytes", "the limit of all tcp-unfinished together is 16 MiB",
			"memory", term("\x83d\xff\xff" + strings.Repeat("a", 16<<20-100))},
		{"a frame of snappy that announces 4 GiB", "the limit is", "too_large",
			[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0}},
		{"16 MiB of snappy in 5 bytes", "malformed", "malformed", []byte{0x80, 0x80, 0x80, 0x08, 0}},
	}
}

// TestEventBombs: events over opcode 13 that are small on the wire and large behind it, or deep,
// get an ERROR that says why, are counted and store nothing; the node keeps its memory and lives.
func TestEventBombs(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir(), "--set", "memory.limit=256MB", "--set", "storage.min_free=0",
		"--set", "tcp.max_frame=64MB")
	peak := watchMemory(t, n)
	for _, c := range eventBombs() {
		payload, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpEvents, Bucket: []byte("bombs"),
			Coded: c.coded})
		if err != nil {
			t.Fatal(err)
		}
		before := n.refusals(c.reason)
		nc := n.to("tcp", n.tcp)
		put(t, nc, wire.AppendFrame(nil, payload))
		got, err := wire.ReadFrame(nc, nil, 4000)
		if msg, ok := wire.ParseError(got); err != nil || !ok || !strings.Contains(msg, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
		eventually(t, c.name+" is counted as "+c.reason, func() bool {
			return n.refusals(c.reason) == before+1
		})
	}
	// The same over HTTP: JSON as deep, and a line of 16 MiB.
	for body, want := range map[string]string{
		`{"a":` + strings.Repeat("[", 100_000):       "nests deeper than 64 levels",
		`{"a":"` + strings.Repeat("x", 2<<20) + `"}`: "more than 1048576 bytes",
	} {
		before := n.refusals("event_malformed")
		resp, err := http.Post("http://"+n.http+"/events/bombs", "application/json",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%.20s…: %s %q, %v", body, resp.Status, text, err)
		}
		if got := n.refusals("event_malformed"); got != before+1 {
			t.Errorf("%.20s…: %d are counted, %d before", body, got, before)
		}
	}
	if got := n.eventsOf("bombs"); got != 0 {
		t.Errorf("%d events are stored", got)
	}
	if most := peak(); most > testMemory/10*11 {
		t.Errorf("the process had %d MiB of its own", most>>20)
	}
	n.stop()
}
