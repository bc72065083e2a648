package certs

import (
	"fmt"
	"net"
	"net/netip"
)

// CheckListen refuses an address for nodes that other machines can reach, unless
// connections are authenticated by mutual TLS and by the cookie of the cluster.
// A host name other than localhost counts as reachable: what it means can change.
func CheckListen(listen string, mutualTLS, cookie bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("cluster.listen = %s: %w", listen, err)
	}
	addr, err := netip.ParseAddr(host)
	loopback := host == "localhost" || err == nil && addr.Unmap().IsLoopback()
	if loopback || mutualTLS && cookie {
		return nil
	}
	return fmt.Errorf("cluster.listen = %s can be reached from other machines: set cluster.tls_dir "+
		"and distributed_cookie_file "+
		"(ddb tls create makes the certificates), or listen on 127.0.0.1", listen)
}
