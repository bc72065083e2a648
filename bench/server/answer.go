package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// StartAnswer starts this program as the server that answers every query with body.
func StartAnswer(body []byte) (*Server, error) {
	return startSelf(AnswerRole, bytes.NewReader(body))
}

// RunAnswer is the server to compare the times of queries with: it has the answer
// before it is asked, so what is left is the client, the kernel and net/http. It
// announces its address in the words of the store, and ends when it is killed.
func RunAnswer(in io.Reader, log io.Writer) error {
	body, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "msg=ready tcp_addr=none http_addr=%s\n", ln.Addr())
	return http.Serve(ln, answer(body))
}

// answer answers every request with the body.
func answer(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // a client that has gone measures nothing
	})
}
