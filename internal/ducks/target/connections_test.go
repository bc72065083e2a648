package target

import (
	"net/netip"
	"slices"
	"testing"
)

// Connections are those that stand, at the port that is asked for.
func TestConnections(t *testing.T) {
	const v4 = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 01004D0A:0CBC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 01004D0A:0CBC 82004D0A:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 01004D0A:0CBC 83004D0A:D2F1 06 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 01004D0A:1F9C 84004D0A:D2F2 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
`
	const v6 = `  sl  local_address                         remote_address                        st
   0: 000000FD000000000000000001000000:0CBC 000000FD000000000000000002000000:D2F0 01 0
   1: 0000000000000000FFFF000001004D0A:0CBC 0000000000000000FFFF000085004D0A:D2F3 01 0
`
	list, err := connections(nil, []byte(v4), 3260)
	if err == nil {
		list, err = connections(list, []byte(v6), 3260)
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("10.77.0.130:54000"), netip.MustParseAddrPort("[fd00::2]:54000"), netip.MustParseAddrPort("10.77.0.133:54003")}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, want %v: %v", list, want, err)
	}
	for _, bad := range []string{"title\n0: x:1 00000000:0000 01", "title\n0: 01004D0A:0CBC 01:0000 01", "title\n0: 01004D0A:0CBC 00000000 01"} {
		if list, err := connections(nil, []byte(bad), 3260); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
}
