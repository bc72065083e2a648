package recorder

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/bench/corpus"
)

// lines returns a corpus as text, a line for every series.
func lines(c *corpus.Corpus) string {
	var b strings.Builder
	for i := range c.Series {
		s := &c.Series[i]
		fmt.Fprintf(&b, "%s", s)
		for k, at := range s.Times {
			fmt.Fprintf(&b, " %d:%s", at, s.Values[k])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func check(t *testing.T, c *corpus.Corpus, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(c); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const snapshots = `=== 1700000000004000000
--- stat
cpu  10 0
intr 99 1 2 3
--- loadavg
0.04 1/79 5
--- diskstats
   7 0 loop0 0 0
 254 0 vda 4 5
--- interrupts
           CPU0       CPU1
 24:          1          2  IO-APIC   5-edge      ACPI
LOC:          7          8   Local timer interrupts
--- net/snmp
Tcp: InSegs MaxConn
Tcp: 3 -1
--- net/softnet_stat
0000000a 00000000
0000000b 00000001
--- buddyinfo
Node 0, zone      DMA      6      1
--- zoneinfo
Node 0, zone      DMA
  pages free     11
    cpu: 0
              count: 12
Node 0, zone   Normal
  pages free     13
--- pressure/cpu
some avg10=0.52 total=9
=== 1700000000999000000
--- loadavg
9.99 9/99 9
=== 1700000001001000000
--- loadavg
0.05 2/80 6
=== 1700000002001000000
--- loadavg
0.06 not wh`

func TestProc(t *testing.T) {
	c, err := Proc(bytes.NewReader(zipped(t, snapshots)), "x", "y", 1000)
	check(t, c, err, `proc_buddyinfo{row="zone-DMA",field="0"} 1700000000000:6
proc_buddyinfo{row="zone-DMA",field="1"} 1700000000000:1
proc_diskstats{row="vda",field="0"} 1700000000000:4
proc_diskstats{row="vda",field="1"} 1700000000000:5
proc_interrupts{row="24",field="0"} 1700000000000:1
proc_interrupts{row="24",field="1"} 1700000000000:2
proc_interrupts{row="LOC",field="0"} 1700000000000:7
proc_interrupts{row="LOC",field="1"} 1700000000000:8
proc_loadavg{row="",field="0"} 1700000000000:0.04 1700000001000:0.05
proc_loadavg{row="",field="1"} 1700000000000:1 1700000001000:2
proc_loadavg{row="",field="2"} 1700000000000:79 1700000001000:80
proc_loadavg{row="",field="3"} 1700000000000:5 1700000001000:6
proc_net_snmp{row="Tcp",field="InSegs"} 1700000000000:3
proc_net_snmp{row="Tcp",field="MaxConn"} 1700000000000:-1
proc_net_softnet_stat{row="cpu0",field="0"} 1700000000000:10
proc_net_softnet_stat{row="cpu0",field="1"} 1700000000000:0
proc_net_softnet_stat{row="cpu1",field="0"} 1700000000000:11
proc_net_softnet_stat{row="cpu1",field="1"} 1700000000000:1
proc_pressure_cpu{row="some avg10 total",field="1"} 1700000000000:9
proc_pressure_cpu{row="some avg10",field="0"} 1700000000000:0.52
proc_stat{row="cpu",field="0"} 1700000000000:10
proc_stat{row="cpu",field="1"} 1700000000000:0
proc_stat{row="intr",field="0"} 1700000000000:99
proc_zoneinfo{row="count",field="0",section="Node-0-zone-DMA cpu-0"} 1700000000000:12
proc_zoneinfo{row="pages free",field="0",section="Node-0-zone-DMA"} 1700000000000:11
proc_zoneinfo{row="pages free",field="0",section="Node-0-zone-Normal"} 1700000000000:13
`)
}

// TestProcEndsAnywhere reads captures of hosts that ended.
func TestProcEndsAnywhere(t *testing.T) {
	raw := zipped(t, snapshots)
	for n := range raw {
		_, _ = Proc(bytes.NewReader(raw[:n]), "x", "y", 1000) // it may have nothing, and must not panic
	}
}

// TestCapture reads what was captured back.
func TestCapture(t *testing.T) {
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "uptime"), []byte("12.50 7.25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	done := make(chan error, 1)
	seen := &watch{Buffer: &out, after: 2, then: cancel}
	go func() { done <- Capture(ctx, seen, proc, time.Millisecond) }()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c, err := Proc(&out, "x", "y", 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Series) != 2 || c.Series[0].Values[0] != "12.50" || len(c.Series[0].Times) < 2 {
		t.Errorf("got %s", lines(c))
	}
}

// watch calls then at a number of writes.
type watch struct {
	*bytes.Buffer
	after int
	then  func()
}

func (w *watch) Write(p []byte) (int, error) {
	if w.after--; w.after == 0 {
		w.then()
	}
	return w.Buffer.Write(p)
}

func TestInflux(t *testing.T) {
	c, err := Influx(strings.NewReader(`disk,host=here,path=/ used_percent=33.54234557565646,free=12i,name="a, b",up=true 1700000000000000000
interrupts,device=5-edge\ ACPI,irq=24 total=1u 1700000000000000000
disk,host=here,path=/ used_percent=33.5,free=13i 1700000010000000000
disk,host=here,path=/home/me free=13i 1700000010000000000
disk,host=he`), "x", "y", 10_000)
	check(t, c, err, `disk_free{host="host-1",path="/"} 1700000000000:12 1700000010000:13
disk_used_percent{host="host-1",path="/"} 1700000000000:33.54234557565646 1700000010000:33.5
interrupts_total{device="5-edge ACPI",irq="24"} 1700000000000:1
`)
	if _, err := Influx(strings.NewReader("a b\n"), "x", "y", 1); err == nil {
		t.Error("a line without a time is no error")
	}
}

func TestScraped(t *testing.T) {
	var answer string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query().Get("query"); q != `{job="node"}[5m]` {
			t.Errorf("the query is %s", q)
		}
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	answer = `{"data":{"result":[
{"metric":{"__name__":"load","mode":"a","cpu":"1","nodename":"secret"},"values":[[1700000000.004,"1.5"],[1700000015,"2"],[1700000030.1,"NaN"]]},
{"metric":{"__name__":"free","mountpoint":"/home/me"},"values":[[1700000000,"1"]]}]}}`
	c, err := Scraped(t.Context(), addr, "node", "5m", "x", "y", 15_000)
	check(t, c, err, `load{cpu="1",mode="a",nodename="host-1"} 1700000000004:1.5 1700000015000:2 1700000030100:NaN
`)
	answer = `{"error":"no such thing"}`
	if _, err := Scraped(t.Context(), addr, "node", "5m", "x", "y", 15_000); err == nil ||
		!strings.Contains(err.Error(), "no such thing") {
		t.Errorf("an error of Prometheus is %v", err)
	}
}
