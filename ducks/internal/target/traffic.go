package target

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Login is a session of a target. A later one of the same tgtd has another number.
type Login struct {
	IQN     string
	Session int
}

// Traffic is what went through a session so far, over all its disks.
type Traffic struct {
	Login
	ReadBytes  int64
	Reads      int64
	WriteBytes int64
	Writes     int64
	Errors     int64
}

// Traffic returns that of all sessions there are.
func (t *Targets) Traffic(ctx context.Context) ([]Traffic, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tgtd == nil {
		return nil, nil
	}
	out, err := t.options.tgtadm(ctx, "--mode", "sys", "--op", "stat")
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(t.targets))
	for iqn, m := range t.targets {
		names[m.TID] = iqn
	}
	list, err := parseTraffic(out, names)
	if err == nil {
		t.traffic, t.trafficAt = list, time.Now()
	}
	return list, err
}

// Recent returns what Traffic has returned last, and when that was, where it is not older than age;
// else it asks tgtd. Many look each second; the disks wait while tgtd answers. The slice is shared:
// it is not to be changed.
func (t *Targets) Recent(ctx context.Context,
	age time.Duration) (list []Traffic, at time.Time, err error) {
	t.mu.Lock()
	list, at = t.traffic, t.trafficAt
	runs := t.tgtd != nil
	t.mu.Unlock()
	if runs && time.Since(at) <= age {
		return list, at, nil
	}
	list, err = t.Traffic(ctx)
	return list, time.Now(), err
}

// The columns of what tgtadm shows of traffic: target, disk, session, then bytes and commands of
// reads that were asked for and done, the same of writes, and errors.
const (
	columnTarget, columnSession    = 0, 2
	columnReadBytes, columnReads   = 5, 6
	columnWriteBytes, columnWrites = 9, 10
	columnErrors, columns          = 11, 12
)

// parseTraffic reads what tgtadm shows. Sessions of targets without a name are left out.
func parseTraffic(out []byte, names map[int]string) (list []Traffic, err error) {
	at := make(map[Login]int) // in list
	first := true
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if first || len(f) == 0 {
			first = false // the title
			continue
		}
		var n [columns]int64
		if len(f) != columns {
			return nil, fmt.Errorf("tgtadm shows traffic as %q", line)
		}
		for i := range n {
			if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
				return nil, fmt.Errorf("tgtadm shows traffic as %q", line)
			}
		}
		name, known := names[int(n[columnTarget])]
		if !known {
			continue
		}
		key := Login{name, int(n[columnSession])}
		i, is := at[key]
		if !is {
			i = len(list)
			at[key] = i
			list = append(list, Traffic{Login: key})
		}
		s := &list[i]
		s.ReadBytes, s.Reads = s.ReadBytes+n[columnReadBytes], s.Reads+n[columnReads]
		s.WriteBytes, s.Writes = s.WriteBytes+n[columnWriteBytes], s.Writes+n[columnWrites]
		s.Errors += n[columnErrors]
	}
	return list, nil
}
