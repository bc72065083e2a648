package compaction

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/golden"
)

// TestPlans goes through the states in testdata/plan and compares what is done with them. A line
// that begins with two spaces is a result; -update rewrites them.
//
//	clock 1000                       the time, in chunks of a bucket of 1 s
//	bucket 1 [resolution=1000] [ttl=0]
//	flush 5 [bytes=1] 1:0-10 2:3-4   a segment with its number; buckets and chunks
//	window 6 gen=5 1:0-10
//	overlay 7 gen=5 1:0-10
//	late 7 1:0-10 500                bytes that a segment holds of a window
//	purge 6                          holds so much of deleted series that it is rewritten
//	disk free=100 min=50
//	plan                             prints the plan
//	round                            does what it says as well
func TestPlans(t *testing.T) {
	golden.Scripts(t, "testdata/plan/*.txt", func(common *golden.Script) func(string, []string) {
		s := &script{Script: common, late: map[lateKey]int64{}}
		s.state.purge = map[uint64]bool{}
		s.state.late = func(seq uint64, r window.Range) int64 { return s.late[lateKey{seq, r}] }
		return s.run
	})
}

type lateKey struct {
	seq uint64
	r   window.Range
}

// script is a file of states under way.
type script struct {
	*golden.Script
	state state
	late  map[lateKey]int64
	next  uint64 // number of a file
}

// values are what name=value arguments say.
func (s *script) values(args []string) map[string]int64 {
	out := make(map[string]int64)
	for _, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok {
			out[name] = s.Number(value)
		}
	}
	return out
}

// ranges are the arguments of the form bucket:first-past.
func (s *script) ranges(args []string) (list []window.Range) {
	for _, arg := range args {
		if bucket, chunks, ok := strings.Cut(arg, ":"); ok {
			first, past, _ := strings.Cut(chunks, "-")
			list = append(list, window.Range{Bucket: uint64(s.Number(bucket)), First: s.Number(first),
				Past: s.Number(past)})
		}
	}
	return list
}

func (s *script) run(command string, args []string) {
	s.T.Helper()
	v := s.values(args)
	switch command {
	case "clock":
		s.state.now = s.Number(args[0]) * chunk.Slots * 1000
	case "bucket":
		s.state.buckets = append(s.state.buckets,
			buckets.Info{ID: uint64(s.Number(args[0])),
				Resolution: max(v["resolution"], 1000*b2i(v["resolution"] == 0)), TTL: v["ttl"]})
	case "flush", "window", "overlay":
		seg := manifest.Segment{Seq: uint64(s.Number(args[0])), Bytes: max(v["bytes"], 1),
			Ranges: s.ranges(args[1:]),
			Kind: map[string]manifest.Kind{"flush": manifest.Flush, "window": manifest.Window,
				"overlay": manifest.Overlay}[command]}
		seg.Generation = uint64(v["gen"])
		if command == "flush" {
			seg.Generation = seg.Seq
		}
		s.add(seg)
	case "late":
		s.late[lateKey{uint64(s.Number(args[0])), s.ranges(args)[0]}] = s.Number(args[2])
	case "purge":
		s.state.purge[uint64(s.Number(args[0]))] = true
	case "disk":
		s.state.free, s.state.minFree, s.state.known = v["free"], v["min"], true
	case "plan":
		s.plan()
	case "round":
		s.apply(s.plan())
	default:
		s.T.Fatalf("command %q", command)
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *script) add(seg manifest.Segment) {
	s.next = max(s.next, seg.Seq+1)
	s.state.segments = append(s.state.segments, seg)
	slices.SortFunc(s.state.segments, window.Order)
}

func show(r window.Range) string { return fmt.Sprintf("%d:%d-%d", r.Bucket, r.First, r.Past) }

// plan prints what is to be done.
func (s *script) plan() window.Plan {
	p, _, err := s.state.plan()
	for _, w := range p.Windows {
		s.Printf("  window %s gen=%d\n", show(w), p.Generation)
	}
	for _, part := range p.Overlay {
		s.Printf("  overlay %s gen=%d from %v\n", show(part.Range), p.OverlayGeneration, part.From)
	}
	if len(p.Remove) > 0 {
		s.Printf("  remove %v\n", p.Remove)
	}
	if p.Empty() {
		s.Printf("  nothing\n")
	}
	if err != nil {
		s.Printf("  error: %v\n", err)
	}
	return p
}

// apply makes the state that the plan leads to, and prints its segments.
func (s *script) apply(p window.Plan) {
	var out []manifest.Segment
	for _, w := range p.Windows {
		out = append(out, manifest.Segment{Kind: manifest.Window, Generation: p.Generation,
			Ranges: []window.Range{w}, Bytes: 1})
	}
	if len(p.Overlay) > 0 {
		o := manifest.Segment{Kind: manifest.Overlay, Generation: p.OverlayGeneration, Bytes: 1}
		for _, part := range p.Overlay {
			o.Ranges = append(o.Ranges, part.Range)
		}
		out = append(out, o)
	}
	s.state.segments = slices.DeleteFunc(s.state.segments, func(seg manifest.Segment) bool {
		return slices.Contains(p.Remove, seg.Seq)
	})
	for _, seg := range out {
		seg.Seq = s.next
		s.add(seg)
	}
	for _, seg := range s.state.segments {
		s.Printf("  = %s %d gen=%d", [...]string{"flush", "window", "overlay"}[seg.Kind], seg.Seq,
			seg.Generation)
		for _, r := range seg.Ranges {
			s.Printf(" %s", show(r))
		}
		s.Printf("\n")
	}
}
