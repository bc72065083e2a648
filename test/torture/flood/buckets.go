package flood

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/test/torture/dwire"
)

// buckets opens streams into buckets that nobody has seen, each with a point, as fast
// as they are made. One that is not made is refused with what is short and what helps.
func buckets(t Target, release <-chan struct{}) (string, error) {
	var wg sync.WaitGroup
	var sent, refused atomic.Int64
	var wrong atomic.Pointer[string]
	for k := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-release:
					return
				default:
				}
				switch text := newBucket(t, fmt.Sprintf("new-of-connection-%d-number-%d", k, i)); {
				case text == "":
				case strings.Contains(text, "memory.limit"):
					refused.Add(1)
				default:
					wrong.Store(&text)
				}
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	if text := wrong.Load(); text != nil {
		return "", fmt.Errorf("a new bucket is refused with: %s", *text)
	}
	return fmt.Sprintf(", %d buckets, %d of them refused", sent.Load(), refused.Load()), nil
}

// newBucket sends a point to a bucket and returns the answer, "" for none.
func newBucket(t Target, bucket string) string {
	c, err := net.DialTimeout("tcp", t.TCP, 5*time.Second)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()                   // nothing is lost with it
	_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // a failure shows in the read
	stream(bucket, c)
	key := dwire.Key("new")
	b := binary.BigEndian.AppendUint64([]byte{5}, uint64(t.First))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
	put(c, append(b, 0, 0, 0, 8, 1, 0, 0, 0, 0, 0, 0, 1))
	_ = c.(*net.TCPConn).CloseWrite() // where the node has closed it, there is an answer
	answer, err := io.ReadAll(io.LimitReader(c, 1024))
	if len(answer) < 6 || err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	return string(answer[6:]) // behind the length of the frame, and its own
}
