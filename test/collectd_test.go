package test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"dalmatiner/client"
	"dalmatiner/internal/wire"
)

// collectdPart returns a part of a packet of collectd.
func collectdPart(kind uint16, body ...byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, kind)
	out = binary.BigEndian.AppendUint16(out, uint16(4+len(body)))
	return append(out, body...)
}

func collectdText(kind uint16, text string) []byte {
	return collectdPart(kind, append([]byte(text), 0)...)
}

// collectdPacket has a gauge pair of type load at a time in seconds, and a notification.
func collectdPacket(second int64) []byte {
	values := []byte{0, 2, 1, 2}
	values = binary.LittleEndian.AppendUint64(values, math.Float64bits(0.5))
	values = binary.BigEndian.AppendUint64(values, 1<<50)
	return slices.Concat(collectdText(0, "web"),
		collectdPart(1, binary.BigEndian.AppendUint64(nil, uint64(second))...),
		collectdText(2, "interface"), collectdText(3, "eth0"), collectdText(4, "if_octets"),
		collectdPart(6, values...),
		collectdPart(0x101, binary.BigEndian.AppendUint64(nil, 1)...), collectdText(0x100, "down"))
}

func collectdSigned(packet []byte) []byte {
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write([]byte("u"))
	mac.Write(packet)
	return append(collectdPart(0x200, append(mac.Sum(nil), 'u')...), packet...)
}

// TestCollectd: signed packets are stored with the names of their data sources, others are
// counted; JSON is durable when it is answered.
func TestCollectd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte("u: secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	n := startNode(t, data, "--set", "self_monitor=off", "--set", "collectd.addr=127.0.0.1:0",
		"--set", "collectd.auth_file="+users, "--set", "collectd.security_level=sign")
	second := past(0) - 10
	sender := n.to("udp", n.listener("collectd packets"))
	for _, packet := range [][]byte{collectdPacket(second), collectdSigned(collectdPacket(second))} {
		if _, err := sender.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	rx := key(t, "interface", "if_octets", "rx", "host=web", "plugin_instance=eth0")
	tx := key(t, "interface", "if_octets", "tx", "host=web", "plugin_instance=eth0")
	get := func(key []byte) uint64 {
		got, err := n.dial().GetTimestamped(t.Context(), "collectd", key, second, 1)
		if err != nil {
			return 0
		}
		return got[0].Word
	}
	eventually(t, "signed values", func() bool {
		return get(rx) == client.Float(0.5) && get(tx) == client.Int(1<<50)
	})
	eventually(t, "a notification", func() bool { return n.eventsOf("collectd") == 1 })
	if bad := n.refusals("collectd_insecure"); bad != 2 { // values and notification
		t.Errorf("%d parts are not as safe as asked for", bad)
	}
	list := fmt.Sprintf(`{"values":[1.5,null,9007199254740993],"dsnames":["a","b","c"],`+
		`"dstypes":["gauge","gauge","derive"],"time":%d.25,"interval":10,"host":"web",`+
		`"plugin":"p","plugin_instance":"","type":"t","type_instance":"x","meta":{"k":true}}`, second)
	for _, c := range []senderRequest{
		{"JSON", "POST", "/collectd", "[" + list + "]", nil, 200, ""},
		{"zipped", "POST", "/collectd", zipped("[" + list + "]"), coded("gzip"), 200, ""},
		{"no list", "POST", "/collectd", "{}", nil, 400, "not a list"},
		{"no end", "POST", "/collectd", "[" + list + ",", nil, 400, "does not end"},
		{"beyond 2262", "POST", "/collectd", `[{"values":[1],"host":"h","plugin":"p","type":"t",` +
			`"time":9223372036.8546}]`, nil, 400, "beyond 2262"},
		{"bad elements", "POST", "/collectd", `[{},{"values":["x"],"host":"h"},{"host":1},` + list + "]",
			nil, 400, "3 bad value lists, all others are stored"},
	} {
		c.check(t, n)
	}
	n.kill()
	n = startNode(t, data, "--set", "self_monitor=off")
	got, err := n.dial().GetTimestamped(t.Context(), "collectd",
		key(t, "p", "t", "c", "host=web", "type_instance=x"), second, 1)
	want := wire.Timestamped{Word: client.Int(9007199254740993), Time: uint64(second)*1e9 + 25e7}
	if err != nil || got[0] != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
