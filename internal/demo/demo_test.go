package demo

import "testing"

// Points go to the host that the node was found at, unless the node names another one.
func TestPointsAddr(t *testing.T) {
	for _, c := range []struct{ tcp, addr, want string }{
		{"127.0.0.1:5555", "127.0.0.1:8080", "127.0.0.1:5555"},
		{"0.0.0.0:5555", "ddb1:8080", "ddb1:5555"},
		{"[::]:5555", "10.0.0.1:8080", "10.0.0.1:5555"},
		{"127.0.0.1:5555", "ddb1:8080", "ddb1:5555"},
		{"10.0.0.2:5555", "ddb1:8080", "10.0.0.2:5555"},
	} {
		if got := pointsAddr(c.tcp, c.addr); got != c.want {
			t.Errorf("tcp %s at %s: %s, want %s", c.tcp, c.addr, got, c.want)
		}
	}
}
