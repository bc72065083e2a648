package sockets

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Sockets are those in the state and at the port that are asked for.
func TestSockets(t *testing.T) {
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
	dir := t.TempDir()
	at := func(state State, v4, v6 string) (text []string, err error) {
		for name, table := range map[string]string{"tcp": v4, "tcp6": v6} {
			path := filepath.Join(dir, name)
			if table == "" {
				_ = os.Remove(path) // there may be none
			} else if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list, err := At(dir, state, 3260)
		for _, s := range list {
			text = append(text, s.Local.String()+" "+s.Remote.String())
		}
		return text, err
	}
	for _, c := range []struct {
		state State
		v6    string
		want  []string
	}{
		{Established, v6, []string{"10.77.0.1:3260 10.77.0.130:54000", "10.77.0.1:3260 10.77.0.133:54003",
			"[fd00::1]:3260 [fd00::2]:54000"}},
		{Established, "", []string{"10.77.0.1:3260 10.77.0.130:54000"}},
		{Listening, v6, []string{"10.77.0.1:3260 0.0.0.0:0"}},
	} {
		if got, err := at(c.state, v4, c.v6); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q: %v", c.state, got, c.want, err)
		}
	}
	for _, bad := range []string{"", "title\n0: x:1 00000000:0000 01",
		"title\n0: 01004D0A:0CBC 01:0000 01", "title\n0: 01004D0A:0CBC 00000000 01"} {
		if list, err := at(Established, bad, ""); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
}
