package recorder

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dalmatiner/bench/measure"
)

// procFiles are the files of /proc whose numbers are recorded. Hosts that lack
// one are recorded without it.
var procFiles = []string{
	"stat", "vmstat", "meminfo", "diskstats", "loadavg", "interrupts", "softirqs", "uptime",
	"net/dev", "net/snmp", "net/netstat", "net/sockstat", "net/softnet_stat", "buddyinfo", "zoneinfo",
	"pressure/cpu", "pressure/io", "pressure/memory",
	"sys/fs/file-nr", "sys/fs/inode-nr", "sys/kernel/random/entropy_avail",
}

// flushEvery is the number of snapshots after which a capture is complete on
// the disk: what is lost when the host ends.
const flushEvery = 60

// Marks of a capture: the time of a snapshot, and the name of a file.
const (
	timeMark = "=== "
	fileMark = "--- "
)

// Capture writes the text of the files below proc once per interval, at full
// intervals of the clock, until ctx is done. What it writes is gzip: a line
// with the time in nanoseconds before each snapshot, a line with the name
// before each file. The numbers are taken out of it elsewhere, so that the host
// that is recorded has little to do.
func Capture(ctx context.Context, w io.Writer, proc string, interval time.Duration) error {
	z := gzip.NewWriter(w)
	out := bufio.NewWriterSize(z, 1<<16)
	for n := 1; ; n++ {
		if measure.Pause(ctx, time.Until(time.Now().Truncate(interval).Add(interval))) != nil {
			return errors.Join(out.Flush(), z.Close())
		}
		fmt.Fprintf(out, "%s%d\n", timeMark, time.Now().UnixNano())
		for _, name := range procFiles {
			text, err := os.ReadFile(filepath.Join(proc, name))
			if err != nil {
				continue
			}
			fmt.Fprintf(out, "%s%s\n%s", fileMark, name, text)
		}
		if n%flushEvery > 0 {
			continue
		}
		if err := errors.Join(out.Flush(), z.Flush()); err != nil {
			return err
		}
	}
}
