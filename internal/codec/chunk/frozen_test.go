package chunk

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/testkit/frozen"
)

// frozenChunk is a chunk of version 1: words, and the bytes that they were
// encoded to. As text it is
//
//	off 17              the slot of the first word
//	pieces 60           of a multi-part chunk: the slots of each
//	dense true          made by AppendDense
//	words 1 2 - 0.5 …   "-" is unset, "stale" a stale marker, one with a point, an x or letters is a float
//	bytes 04ab…
type frozenChunk struct {
	off, height int
	dense       bool
	words       []uint64
	src         []byte
}

func (c *frozenChunk) encode(t *testing.T, e *Encoder) []byte {
	t.Helper()
	if c.dense {
		return e.AppendDense(nil, c.off, c.words)
	}
	if c.height == 0 {
		return e.Append(nil, c.off, c.words)
	}
	src, _, err := AppendMultiPart(nil, cutParts(e, c.words, everyLane(c.height)))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (c *frozenChunk) text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "off %d\npieces %d\ndense %v\n", c.off, c.height, c.dense)
	for part := range slices.Chunk(c.words, 20) {
		b.WriteString("words")
		for _, w := range part {
			b.WriteString(" " + wordText(w))
		}
		b.WriteByte('\n')
	}
	for part := range slices.Chunk(c.src, 40) {
		fmt.Fprintf(&b, "bytes %x\n", part)
	}
	return []byte(b.String())
}

// wordText is a word as a decimal number where one gives it back, else its bits.
func wordText(w uint64) string {
	if w == point.Stale {
		return "stale"
	}
	switch point.KindOf(w) {
	case point.KindUnset:
		return "-"
	case point.KindInt:
		return strconv.FormatInt(point.Int(w), 10)
	}
	for digits := 1; digits < 10; digits++ {
		text := strconv.FormatFloat(point.Float(w), 'f', digits, 64)
		if v, err := strconv.ParseFloat(text, 64); err == nil && len(text) < 16 &&
			strings.Contains(text, ".") && point.FromFloat(v) == w {
			return text
		}
	}
	return fmt.Sprintf("x%016x", w)
}

func parseWord(t *testing.T, text string) uint64 {
	t.Helper()
	var w uint64
	var err error
	switch bits, isBits := strings.CutPrefix(text, "x"); {
	case text == "-":
	case text == "stale":
		w = point.Stale
	case isBits:
		w, err = strconv.ParseUint(bits, 16, 64)
	case strings.Contains(text, "."):
		var v float64
		v, err = strconv.ParseFloat(text, 64)
		w = point.FromFloat(v)
	default:
		var v int64
		v, err = strconv.ParseInt(text, 10, 64)
		w = point.FromInt(v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func parseFrozen(t *testing.T, text string) (c frozenChunk) {
	t.Helper()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		var err error
		switch fields[0] {
		case "off":
			c.off, err = strconv.Atoi(fields[1])
		case "pieces":
			c.height, err = strconv.Atoi(fields[1])
		case "dense":
			c.dense, err = strconv.ParseBool(fields[1])
		case "words":
			for _, f := range fields[1:] {
				c.words = append(c.words, parseWord(t, f))
			}
		case "bytes":
			var part []byte
			part, err = hex.DecodeString(fields[1])
			c.src = append(c.src, part...)
		default:
			err = fmt.Errorf("line %q", line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Version 1 is frozen: the words of every file are still encoded to its bytes,
// and the bytes are still decoded to its words, from any slot on.
func TestFrozenChunks(t *testing.T) {
	for name, c := range frozenInputs() {
		if frozen.Missing("chunks/" + name + ".txt") {
			c.src = c.encode(t, new(Encoder))
			frozen.Same(t, "chunks/"+name+".txt", c.text())
		}
	}
	names, err := filepath.Glob(filepath.Join(frozen.Dir, "chunks", "*.txt"))
	if err != nil || len(names) < len(frozenInputs()) {
		t.Fatalf("%d files: %v", len(names), err)
	}
	var e Encoder
	seen := map[string]bool{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c := parseFrozen(t, string(text))
			c.check(t, &e)
			noteForms(t, seen, c.src)
		})
	}
	for _, form := range frozenForms() {
		if !seen[form] {
			t.Errorf("no file has %s", form)
		}
	}
}

func (c *frozenChunk) check(t *testing.T, e *Encoder) {
	t.Helper()
	if got := c.encode(t, e); !slices.Equal(got, c.src) {
		t.Errorf("version 1 is frozen: the words are now encoded to %x", got)
	}
	checkHeader(t, c.src, c.off, c.words)
	var whole [Slots]uint64
	copy(whole[c.off:], c.words)
	for from := range Slots {
		for _, n := range []int{Slots - from, min(Lane, Slots-from), 1} {
			got := make([]uint64, n)
			if err := DecodeRange(got, c.src, from); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, whole[from:from+n]) {
				t.Fatalf("slots [%d, %d) are decoded to %x, were %x", from, from+n, got, whole[from:from+n])
			}
		}
	}
}

// frozenForms are what version 1 consists of.
func frozenForms() (all []string) {
	for _, class := range []string{"ints", "decimals"} {
		all = append(all, class+", rising", class+", not rising")
	}
	for _, class := range []string{"ints", "decimals", "bits"} {
		for _, part := range []string{"", ", full", ", run", ", mask", ", constant", ", changes"} {
			all = append(all, class+part)
		}
	}
	all = append(all, "split", "split, run", "split, mask", "split, changes", "composite",
		"stale markers", "only stale markers", "of one lane", "of 12 lanes")
	for mode := range 4 {
		all = append(all, fmt.Sprint("mask mode ", mode))
	}
	all = append(all, "mask without bits", "list integer", "list decimal", "list even decimal",
		"list near decimal 2", "list near decimal 4", "list bits", "list constant",
		"form 0", "form 1", "form 2", "form 0 patched", "form 1 patched", "factor")
	for i := range 8 {
		all = append(all, fmt.Sprintf("code, growth %v, sparse %v, zigzag %v", i&1 != 0, i&2 != 0,
			i&4 != 0))
	}
	for group := range 6 {
		all = append(all, fmt.Sprint("group ", group+1))
	}
	for flag := range 8 {
		all = append(all, fmt.Sprint("flag ", flag))
	}
	for from := range 4 {
		all = append(all, fmt.Sprint("least from ", from), fmt.Sprint("greatest from ", from))
	}
	return all
}

// noteForms notes what a chunk is made of.
func noteForms(t *testing.T, seen map[string]bool, src []byte) {
	t.Helper()
	if IsMultiPart(src) {
		seen["composite"] = true
		p, err := parseParts(src)
		if err != nil {
			t.Fatal(err)
		}
		for range p.n {
			noteForms(t, seen, p.next())
		}
		return
	}
	if HasStale(src) {
		_, values, err := cutStale(src)
		if err != nil {
			t.Fatal(err)
		}
		if seen["stale markers"] = true; len(values) == 0 {
			seen["only stale markers"] = true
			return
		}
		src = values
	}
	var f frame
	r := newReader(src)
	if err := f.parse(&r); err != nil {
		t.Fatal(err)
	}
	class := []string{"ints", "decimals", "bits", "split"}[f.class]
	seen[class] = true
	seen[class+", "+[]string{"full", "run", "mask"}[f.shape]] = true
	if f.class < classBits && f.rising {
		seen[class+", rising"] = true
	} else {
		seen[class+", not rising"] = true
	}
	seen[class+", constant"] = seen[class+", constant"] || f.constant
	seen[class+", changes"] = seen[class+", changes"] || f.changes
	if f.class >= classBits {
		noteFlags(seen, src[1+[]int{0, 3, 4}[f.shape]])
	}
	if f.shape == shapeMask {
		noteMask(seen, &r, f.slots()-2)
	}
	if !f.constant {
		noteValues(t, seen, &r, &f)
	}
}

func noteFlags(seen map[string]bool, flags byte) {
	for bit := range 8 {
		if flags>>bit&1 != 0 {
			seen[fmt.Sprint("flag ", bit)] = true
		}
	}
	seen[fmt.Sprint("least from ", flags>>flagMin&3)] = true
	seen[fmt.Sprint("greatest from ", flags>>flagMax&3)] = true
}

func noteMask(seen map[string]bool, r *reader, n int) intlist.Mask {
	head := r.Src[0]
	seen[fmt.Sprint("mask mode ", head&3)] = true
	seen["mask without bits"] = seen["mask without bits"] || head>>2 == 15
	m, _ := r.Mask(n)
	return m
}

func noteValues(t *testing.T, seen map[string]bool, r *reader, f *frame) {
	t.Helper()
	peek := *r
	n := f.Count
	if f.changes {
		m := noteMask(seen, &peek, n-1)
		n = m.Rank(n-1) + 1
	}
	if f.class == classSplit {
		noteMask(seen, &peek, n)
	}
	var v values
	if err := v.parse(r, f); err != nil {
		t.Fatal(err)
	}
	for i := range v.lists[:1+f.class/classSplit] {
		l := &v.lists[i]
		if l.constant != 0 {
			seen["list constant"] = true
			continue
		}
		seen["list "+listKind(l.kind)] = true
		for part := range strings.SplitSeq(l.ints.String(), "; ") {
			seen[part] = true
		}
		seen["of one lane"] = seen["of one lane"] || l.ints.Lanes() == 1
		seen["of 12 lanes"] = seen["of 12 lanes"] || l.ints.Lanes() == intlist.MaxLanes
	}
}

func listKind(k transform) string {
	switch {
	case k == asInt:
		return "integer"
	case k.isNear():
		return fmt.Sprint("near decimal ", k.nearBits())
	case k >= asEven:
		return "even decimal"
	case k.decimal():
		return "decimal"
	}
	return "bits"
}

// Version 1 is frozen: rollups are read and written as they were.
func TestFrozenRollups(t *testing.T) {
	if frozen.Missing("levels.txt") {
		frozen.Same(t, "levels.txt", makeRollups(t))
	}
	flags := byte(0)
	n := 0
	for line := range strings.Lines(string(frozen.Read(t, "levels.txt"))) {
		text, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		src, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		h, rest, err := ParseRollup(src)
		if err != nil || len(rest) != 0 || headerText(&h) != want {
			t.Errorf("%s is read as %s, was %s (%d bytes left, %v)", text, headerText(&h), want, len(rest),
				err)
		}
		if got := AppendRollup(nil, &h); !slices.Equal(got, src) {
			t.Errorf("version 1 is frozen: %s is now written as %x", text, got)
		}
		flags |= src[0]
		n++
	}
	if n < 10 || flags != 0xff {
		t.Errorf("%d rollups with flags %#x, want all", n, flags)
	}
}

// makeRollups lays the chunks behind each other, several at a time.
func makeRollups(t *testing.T) []byte {
	t.Helper()
	var b strings.Builder
	for _, names := range [][]string{{"counter", "counter"}, {"constant", "constant-part", "constant"},
		{"two-decimals", "two-decimals"},
		{"floats"}, {"special"}, {"only-NaN", "only-NaN"}, {"ints-and-floats", "random"},
		{"outage", "random-gaps", "decimal-gaps"},
		{"extremes", "extremes", "extremes"}, {"line"}, {"one-slot", "float-gaps"},
		{"slow-mixture", "mixture-gaps"}} {
		var all Node
		for i, name := range names {
			c := parseFrozen(t, string(frozen.Read(t, "chunks/"+name+".txt")))
			next, err := ParseHeader(c.src)
			if err != nil {
				t.Fatal(err)
			}
			all.Append(&next, i*Slots)
		}
		h := all.Header()
		fmt.Fprintf(&b, "%x %s\n", AppendRollup(nil, &h), headerText(&h))
	}
	return []byte(b.String())
}

func headerText(h *Header) string {
	sum := func(s Sum) string {
		return fmt.Sprintf("%d:%d:x%016x", s.Hi, s.Lo, math.Float64bits(s.Float))
	}
	return fmt.Sprintf(
		"count %d, %d to %d, first %s, last %s, least %s, greatest %s, sum %s, rises %v", h.Count,
		h.FirstOff, h.LastOff,
		wordText(h.First), wordText(h.Last), wordText(h.Min), wordText(h.Max), sum(h.Sum), h.Rises)
}
