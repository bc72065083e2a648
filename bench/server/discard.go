package server

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// discardBuffer is as large as what the store reads at once from a busy
// sender.
const discardBuffer = 256 << 10

// RunDiscard is the server to compare with: it receives and does nothing else.
// It announces its address in the words of the store, and ends when it is
// killed.
func RunDiscard(log io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "msg=ready tcp_addr=%s http_addr=none\n", ln.Addr())
	return discard(ln)
}

// discard reads every connection to its end until the listener is closed.
func discard(ln net.Listener) error {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			buf := make([]byte, discardBuffer)
			for {
				if _, err := conn.Read(buf); err != nil {
					return
				}
			}
		}()
	}
}
