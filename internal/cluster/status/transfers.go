package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// Transfer is what is on its way from one member to another.
type Transfer struct {
	Hints     bool // what a stand-in kept for an owner; else a share that moves
	Partition int
	From, To  ring.ID
	Started   time.Time
	Last      time.Time // something arrived; zero if nothing has yet
	Points    int64     // that arrived
	Bytes     int64     // that arrived
	Size      int64     // bytes that there are to move; 0 if that is not known
}

// The widths of a transfer's picture.
const (
	sideWidth  = 25 // a name beside the arrow
	arrow      = " =======>  "
	barWidth   = 50 // of the progress, without its ends and the figure
	arrowWidth = 2*sideWidth + len(arrow)
)

// Transfers is the text of transfers: the members that still give partitions to others, the owned
// partitions of members that are down, and the progress of each transfer.
func (s NodeView) Transfers(list []Transfer, now time.Time) string {
	var b strings.Builder
	waiting := make(map[ring.ID]int)
	for _, m := range s.View.Fetches(0) {
		if len(m.From) > 0 {
			waiting[m.From[0]]++
		}
	}
	for _, m := range s.members() {
		if n := waiting[m.ID]; n > 0 {
			fmt.Fprintf(&b, "'%s' waiting to handoff %d partitions\n", m.Name, n)
		}
		if n := s.ownedPartitions(m.ID); n > 0 && m.State != ring.Removed && !s.Up(m.ID) {
			fmt.Fprintf(&b, "'%s' does not have %d primary partitions running\n", m.Name, n)
		}
	}
	if b.Len() == 0 && len(list) == 0 {
		return "No transfers active\n"
	}
	b.WriteString("\nActive Transfers:\n\n")
	list = slices.SortedFunc(slices.Values(list), func(x, y Transfer) int {
		return cmp.Or(cmp.Compare(x.Partition, y.Partition), strings.Compare(s.name(x.To), s.name(y.To)))
	})
	for i := range list {
		s.transfer(&b, &list[i], now)
	}
	return b.String()
}

// ownedPartitions returns of how many partitions a member is an owner now.
func (s NodeView) ownedPartitions(id ring.ID) (n int) {
	for p := range s.View.Partitions() {
		if slices.Contains(s.View.Owners(nil, p, ring.Current, 0), id) {
			n++
		}
	}
	return n
}

func (s NodeView) transfer(b *strings.Builder, t *Transfer, now time.Time) {
	kind, size := "ownership_handoff", "unknown"
	if t.Hints {
		kind = "hinted_handoff"
	}
	if t.Size > 0 {
		size = fmt.Sprintf("%d bytes", t.Size)
	}
	fmt.Fprintf(b, "transfer type: %s\nvnode type: metric_vnode\npartition: %d\nstarted: %s\n", kind,
		t.Partition, moment(t.Started, now))
	points, bytes := "unknown", "unknown"
	if t.Last.IsZero() {
		fmt.Fprintf(b, "last update: no updates seen\ntotal size: %s\nobjects transferred: unknown\n\n",
			size)
	} else {
		fmt.Fprintf(b, "last update: %s\ntotal size: %s\nobjects transferred: %d\n\n",
			moment(t.Last, now), size, t.Points)
		if took := t.Last.Sub(t.Started).Seconds(); took > 0 {
			points, bytes = fmt.Sprintf("%.0f Objs/s", float64(t.Points)/took),
				perSecond(float64(t.Bytes)/took)
		}
	}
	fmt.Fprintf(b, "%s\n%s%s%s\n", middle(points, arrowWidth), centre(s.name(t.From), sideWidth),
		arrow, middle(s.name(t.To), sideWidth))
	if t.Size > 0 {
		part := min(float64(t.Bytes)/float64(t.Size), 1)
		fmt.Fprintf(b, "%s\n", middle(bar(part), arrowWidth))
	}
	fmt.Fprintf(b, "%s\n\n", middle(bytes, arrowWidth))
}

// moment prints a time in UTC, and how long ago it was.
func moment(t, now time.Time) string {
	ago, unit := now.Sub(t).Seconds(), "s"
	switch {
	case ago >= 3600:
		ago, unit = ago/3600, "hr"
	case ago >= 60:
		ago, unit = ago/60, "min"
	}
	return fmt.Sprintf("%s [%.2f %s ago]", t.UTC().Format(time.DateTime), ago, unit)
}

func perSecond(bytes float64) string {
	units := []string{"B", "KB", "MB", "GB"}
	for bytes >= 1024 && len(units) > 1 {
		bytes, units = bytes/1024, units[1:]
	}
	return fmt.Sprintf("%.2f %s/s", bytes, units[0])
}

// bar draws a part of 1.
func bar(part float64) string {
	n := int(part * barWidth)
	return fmt.Sprintf("|%s%s| %3d%%", strings.Repeat("#", n), strings.Repeat(" ", barWidth-n),
		int(part*100))
}

// middle is centre without blanks behind it.
func middle(s string, w int) string { return strings.TrimRight(centre(s, w), " ") }
