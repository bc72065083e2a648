package admin

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/snapshot"
)

// size prints bytes with the largest unit that leaves a number above 1.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i+1 < len(units); i++ {
		v /= 1024
	}
	if i == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func seconds(s float64) string { return (time.Duration(s) * time.Second).String() }

// bitsPerPoint prints the cost of a point on disk.
func bitsPerPoint(bytes, points int64) string {
	if points == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(bytes)*8/float64(points))
}

// writeStatus prints the state of the node at addr on one screen.
func writeStatus(w io.Writer, s Status, addr string) error {
	ready, disk, damage := "yes", "", "none"
	if !s.Ready {
		ready = "NO: starting or stopping"
	}
	if s.Cluster != nil && s.Cluster.Joining != "" {
		ready = "NO: " + s.Cluster.Joining
	}
	if s.DiskFull {
		disk = ", NEARLY FULL: points are refused"
	}
	if s.Damage > 0 {
		damage = fmt.Sprintf("%d PLACES FOUND: the log of the node and %s name them", s.Damage,
			command("ddb admin check", addr))
	}
	t := newTable(0, 1)
	t.add("node", fmt.Sprintf("%s, ddb %s, up %s", s.Node, s.Version, seconds(s.UptimeS)))
	t.add("ready", ready)
	t.add("addresses", fmt.Sprintf("tcp %s, http %s", s.TCPAddr, s.HTTPAddr))
	if s.Cluster != nil {
		t.add("cluster", clusterLine(s.Cluster))
	}
	t.add("data", s.DataDir)
	t.add("buckets", strconv.FormatInt(s.Buckets, 10))
	t.add("series", strconv.FormatInt(s.Series, 10))
	t.add("points/s in", fmt.Sprintf("%.0f", s.PointsIn))
	t.add("points/s out", fmt.Sprintf("%.0f", s.PointsOut))
	t.add("memory", fmt.Sprintf("%s resident, %s Go heap, %s head", size(s.RSSBytes),
		size(s.HeapBytes), size(s.HeadBytes)))
	t.add("memory limit", memoryLimit(&s))
	t.add("segments", fmt.Sprintf("%d, %s, %d points, %s bits per point",
		s.Segments, size(s.SegmentBytes), s.SegmentPoints, bitsPerPoint(s.SegmentBytes, s.SegmentPoints)))
	t.add("log", fmt.Sprintf("%s, sync %s, %s not yet synced", size(s.WALBytes), s.WALSync,
		size(s.WALUnsynced)))
	t.add("flushes", fmt.Sprintf("%d, the last one %s ago", s.Flushes, seconds(s.SinceFlushS)))
	t.add("disk free", size(s.FreeDisk)+disk)
	t.add("damage", damage)
	return t.write(w)
}

// memoryLimit tells how near the node is to its limit, and what follows.
func memoryLimit(s *Status) string {
	if s.MemoryLimit == 0 {
		return fmt.Sprintf("none, %s counted", size(s.MemoryUsed))
	}
	text := fmt.Sprintf("%s, %.0f%% in use", size(s.MemoryLimit),
		100*float64(s.MemoryUsed)/float64(s.MemoryLimit))
	switch s.MemoryLevel {
	case memory.Urgent.String():
		text += ", SHORT: blocks are flushed early, merging is slow"
	case memory.NoQueries.String():
		text += ", SHORT: large queries are refused"
	case memory.NoSeries.String():
		text += ", SHORT: new series are refused"
	case memory.Hold.String():
		text += fmt.Sprintf(", FULL: senders are held back, %d now", s.SendersHeld)
	}
	return text
}

// writeSegments prints one line per segment, with slots if all are of one
// bucket.
func writeSegments(w io.Writer, list []inventory.Segment, slots bool) error {
	t := newTable(0, 7, 8, 9)
	head := []string{"Segment", "Bytes", "Points", "Series", "Chunks", "Chunk bytes", "Bits/point",
		"From (UTC)", "To (UTC)"}
	if slots {
		head = append(head, "Slots")
	}
	t.add(head...)
	var bytes, points int64
	for _, s := range list {
		bytes, points = bytes+s.Bytes, points+s.Points
		row := []string{s.File, strconv.FormatInt(s.Bytes, 10), strconv.FormatInt(s.Points, 10),
			strconv.FormatInt(s.Series, 10),
			strconv.FormatInt(s.Chunks, 10), strconv.FormatInt(s.ChunkBytes, 10),
			bitsPerPoint(s.Bytes, s.Points), instant(s.From), instant(s.To)}
		if slots && s.PastSlot > 0 {
			row = append(row, fmt.Sprintf("%d to %d", s.FirstSlot, s.PastSlot-1))
		}
		if s.Damage != "" {
			row[0] += " (DAMAGED)"
		}
		t.add(row...)
	}
	if err := t.write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d segments, %d bytes, %d points, %s bits per point\n", len(list), bytes,
		points, bitsPerPoint(bytes, points))
	return err
}

func instant(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05")
}

// writeCaches prints one line per cache.
func writeCaches(w io.Writer, list []store.Cache) error {
	t := newTable(0, 3)
	t.add("Pool", "Bytes", "Limit", "Holds")
	for _, c := range list {
		limit := "-"
		if c.Limit > 0 {
			limit = strconv.FormatInt(c.Limit, 10)
		}
		use := strconv.FormatInt(c.Bytes, 10)
		if c.Unit != "" {
			use += " " + c.Unit
		}
		t.add(c.Name, use, limit, c.Holds)
	}
	return t.write(w)
}

// writeSnapshots prints one line per snapshot of the node at addr.
func writeSnapshots(w io.Writer, list []snapshot.Info, addr string) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "There are no snapshots: %s makes one.\n",
			command("ddb admin snapshot NAME", addr))
		return err
	}
	t := newTable(0, 1, 4)
	t.add("Snapshot", "Created (UTC)", "Files", "Bytes", "Directory")
	for _, s := range list {
		t.add(s.Name, s.Created.UTC().Format("2006-01-02 15:04:05"), strconv.FormatInt(s.Files, 10),
			strconv.FormatInt(s.Bytes, 10), s.Dir)
	}
	return t.write(w)
}

// writeCheck prints what was looked at and what was found.
func writeCheck(w io.Writer, r *fsck.Report) error {
	took := time.Duration(r.TookUS) * time.Microsecond
	_, err := fmt.Fprintf(w,
		"Checked %s: %d files, %s read, %d blocks, %d chunks, %d points, %d series, %d log records in "+
			"%s ms.\n",
		r.Dir, r.Files, size(r.Bytes), r.Blocks, r.Chunks, r.Points, r.Series, r.Records,
		milliseconds(took))
	if err != nil {
		return err
	}
	if r.Deletions+r.Remembered+r.Again > 0 {
		_, err := fmt.Fprintf(w,
			"Deleted series: segments may still hold %d, and %d others are remembered; %d series were "+
				"sent again after a deletion.\n", r.Deletions, r.Remembered, r.Again)
		if err != nil {
			return err
		}
	}
	for _, d := range r.Expected {
		if _, err := fmt.Fprintf(w, "left by a crash, put right by a start: %s\n",
			oneLine(d)); err != nil {
			return err
		}
	}
	if r.Damaged == 0 {
		_, err := fmt.Fprintln(w, "No damage.")
		return err
	}
	if err := writeDamages(w, r.Damages, r.Damaged); err != nil {
		return err
	}
	for _, path := range r.Rewritten {
		if _, err := fmt.Fprintf(w, "written again: %s; what there was is in lost+found\n",
			path); err != nil {
			return err
		}
	}
	if r.NotRewritten != "" {
		_, err := fmt.Fprintf(w, "not written again: %s\n",
			strings.ReplaceAll(r.NotRewritten, "\n", "; "))
		return err
	}
	return nil
}

func writeDamages(w io.Writer, list []fsck.Damage, count int64) error {
	for _, d := range list {
		if _, err := fmt.Fprintf(w, "DAMAGED %s\n", oneLine(d)); err != nil {
			return err
		}
	}
	if more := count - int64(len(list)); more > 0 {
		_, err := fmt.Fprintf(w, "and %d more\n", more)
		return err
	}
	return nil
}

// oneLine keeps a damage on its line, whatever the error inside it says.
func oneLine(d fsck.Damage) string { return strings.ReplaceAll(d.String(), "\n", "; ") }
