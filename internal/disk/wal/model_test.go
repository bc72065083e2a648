package wal

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// written is a record of the model: where its bytes are and what they are.
type modelRecord struct {
	entry
	past   LSN // behind its bytes
	head   int // bytes of its head, 0 = none
	again  LSN // where it is repeated, 0 = nowhere
	twin   LSN // behind the repetition
	synced bool
}

// modelLog is a log that was killed, and what it holds.
type modelLog struct {
	files map[string][]byte
	recs  []modelRecord

	checks int
}

// record makes a log of records of all kinds. Those before synced were fsynced; with
// rests, and all of them synced, the log had time to repeat what it had not.
func record(t testing.TB, seed uint64, n, synced int, fileSize int64, rests bool) *modelLog {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	fs, clock := vfs.NewMem(), new(manual)
	l := open(t, fs, mode(Off), func(o *Options) {
		o.ID, o.After, o.FileSize, o.BufferSize = [16]byte{9}, clock.newTimer, fileSize, 64<<10
	})
	m := &modelLog{}
	for i := range n {
		m.add(t, l, r, i)
		m.recs[i].synced = i < synced
		if i+1 == synced || i < synced && r.IntN(5) == 0 {
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	awaitWritten(t, l)
	if rests {
		end := l.End()
		waitFor(t, "the log rests and repeats", func() bool {
			clock.rest()
			return l.End() > end
		})
		awaitWritten(t, l)
	}
	m.files = filesAfterKill(t, fs)
	return m
}

func (m *modelLog) add(t testing.TB, l *Log, r *rand.Rand, i int) {
	t.Helper()
	text := fmt.Sprintf("%04d", i) + strings.Repeat(string(rune('a'+i%26)), r.IntN(200))
	if r.IntN(6) == 0 {
		text += string(make([]byte, 100+r.IntN(600))) // zeros are no hole
	}
	rec := modelRecord{entry: entry{rec: text}}
	var err error
	before := len(text)
	switch kind := r.IntN(20); {
	case kind < 13:
		rec.head = 4 + r.IntN(min(len(text)-3, 24))
		rec.lsn, err = l.AppendHeaded([]byte(text[:rec.head]), []byte(text[rec.head:]))
		rec.past = rec.lsn + LSN(frameSize+headFrame+before)
	case kind == 13:
		rec.lsn, err = l.AppendTwice([]byte(text))
		rec.past = rec.lsn + LSN(frameSize+before)
		rec.again = rec.past + copyDistance
		rec.twin = rec.again + LSN(frameSize+3+before)
	default:
		rec.lsn, err = l.Append([]byte(text[:2]), []byte(text[2:]))
		rec.past = rec.lsn + LSN(frameSize+before)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.recs = append(m.recs, rec)
}

// bytesOf returns the bytes between two positions, as the files have them now.
func bytesOf(files map[string][]byte, from, to LSN) (out []byte) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) {
		if first, ok := parseFileName(name); ok && first <= from {
			at := headerSize + int(from-first)
			if end := at + int(to-from); end <= len(files[name]) {
				return files[name][at:end]
			}
			return nil
		}
	}
	return nil
}

// isUnchanged reports whether damage left the bytes between two positions alone.
func (m *modelLog) isUnchanged(files map[string][]byte, from, to LSN) bool {
	a := bytesOf(m.files, from, to)
	return a != nil && bytes.Equal(a, bytesOf(files, from, to))
}

// check opens a damaged copy of the log. durableKnown says that lastFile is whole.
func (m *modelLog) check(t testing.TB, what string, files map[string][]byte, known bool) {
	t.Helper()
	fs := disk(t, files)
	checked, said := inspect(t, fs, 1)
	l, err := Open(Options{FS: fs, Dir: dir, FileSize: 512, MaxRecord: 1 << 10, BufferSize: 2 << 10,
		After: stoppedTimer})
	if err != nil {
		t.Fatal(err)
	}
	got, report := replayAll(t, l, 1)
	if !slices.Equal(got, checked) || fmt.Sprint(report) != fmt.Sprint(said) {
		t.Fatalf("%s: inspect gives %d records and says %+v\nreplay gives %d and says %+v", what,
			len(checked), said, len(got), report)
	}
	m.compare(t, what, files, got, report, known)
	if m.checks++; m.checks%5 != 0 {
		closeLog(t, l)
		return
	}
	later := add(t, l, "later")
	closeLog(t, l)
	l = open(t, fs)
	again, second := replayAll(t, l, 1)
	wantEntries(t, again, slices.Concat(got, later))
	if len(second.Torn) > 0 || fmt.Sprint(second.Lost) != fmt.Sprint(report.Lost) {
		t.Fatalf("%s: the second start says %+v, the first %+v", what, second, report)
	}
	closeLog(t, l)
}

// compare compares what a replay gave with the model.
func (m *modelLog) compare(t testing.TB, what string, files map[string][]byte, got []entry,
	report Report, known bool) {
	t.Helper()
	given := map[LSN]string{}
	for _, e := range got {
		given[e.lsn] = e.rec
	}
	lost := map[LSN]string{}
	for _, k := range report.Lost {
		lost[k.LSN] = string(k.Head)
	}
	torn := false
	for i := range m.recs {
		e := &m.recs[i]
		whole := m.isUnchanged(files, e.lsn, e.past)
		rec, ok := given[e.lsn]
		at := e.lsn
		if e.again != 0 && !ok {
			rec, ok = given[e.again]
			at = e.again
			whole = whole || m.isUnchanged(files, e.again, e.twin)
		}
		delete(given, at)
		if ok && rec != e.rec {
			t.Fatalf("%s: record %d is %q, was %q", what, i, rec, e.rec)
		}
		switch {
		case ok && torn:
			t.Fatalf("%s: record %d was given behind a tear", what, i)
		case ok:
		case e.synced && whole && known:
			t.Fatalf("%s: record %d was synced, is whole, and was not given: %+v", what, i, report)
		case e.synced && known && !isReported(&report, e.lsn):
			t.Fatalf("%s: record %d at %d was synced, and is missing without a word: %+v", what, i, e.lsn,
				report)
		case !e.synced && !isReported(&report, e.lsn):
			torn = true
		}
		if head, ok := lost[e.lsn]; ok && (e.head == 0 || head != e.rec[:e.head]) {
			t.Fatalf("%s: the head of record %d is %q, was %q", what, i, head, e.rec[:e.head])
		} else if !ok && e.head > 0 && isReported(&report, e.lsn) &&
			m.isUnchanged(files, e.lsn, e.lsn+LSN(frameSize+headFrame+e.head)) &&
			!isFileMissing(files, m.files, e.lsn) {
			t.Fatalf("%s: the head of record %d is whole, and was not told: %+v", what, i, report)
		}
		if _, given := given[e.lsn]; given && lost[e.lsn] != "" {
			t.Fatalf("%s: record %d was given and told as lost", what, i)
		}
		delete(lost, e.lsn)
	}
	if len(given)+len(lost) > 0 {
		t.Fatalf("%s: I2: never appended: %v, lost %v", what, given, lost)
	}
}

// isFileMissing reports whether the file of a record is missing.
func isFileMissing(files, all map[string][]byte, lsn LSN) bool {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		if first, ok := parseFileName(name); ok && first <= lsn {
			return files[name] == nil
		}
	}
	return true
}

// isReported reports whether a position is in a place that is said to be damaged or missing.
func isReported(r *Report, lsn LSN) bool {
	for _, p := range r.Damaged {
		if p.Offset >= headerSize && !strings.HasSuffix(p.File, lastFile) && p.LSN <= lsn &&
			lsn < p.LSN+LSN(p.Bytes) {
			return true
		}
	}
	for _, g := range r.Missing {
		if g.From <= lsn && lsn < g.To {
			return true
		}
	}
	return false
}

// withFile returns the files with one changed.
func (m *modelLog) withFile(name string, change func(data []byte) []byte) map[string][]byte {
	files := maps.Clone(m.files)
	if files[name] = change(slices.Clone(files[name])); files[name] == nil {
		delete(files, name)
	}
	return files
}

func (m *modelLog) names() []string { return slices.Sorted(maps.Keys(m.files)) }

// logs are a small one that was synced in part, and one that was not at all.
func smallLogs(t testing.TB) []*modelLog {
	return []*modelLog{
		record(t, 1, 24, 24, 1500, false), record(t, 2, 16, 9, 1200, false),
		record(t, 3, 24, 0, 1500, false),
		record(t, 4, 12, 6, 1<<20, false),
	}
}

// stride is 1 for one of the logs, and leaves most of the others to that.
func stride(log int) int { return []int{7, 1, 11, 13}[log] }

// TestEveryByteFlipped: a bit of every byte of every file.
func TestEveryByteFlipped(t *testing.T) {
	for n, m := range smallLogs(t) {
		for _, name := range m.names() {
			for at := n; at < len(m.files[name]); at += stride(n) {
				if name == lastFile && at >= lastSize && at < copyDistance {
					continue // nobody reads them
				}
				files := m.withFile(name, func(data []byte) []byte { data[at] ^= 1 << (at % 8); return data })
				m.check(t, fmt.Sprintf("log %d, byte %d of %s", n, at, name), files, true)
			}
		}
	}
}

// TestCutAtEveryLength: every file, with and without zeros where the rest was.
func TestCutAtEveryLength(t *testing.T) {
	for n, m := range smallLogs(t) {
		for _, name := range m.names() {
			for at := n; at < len(m.files[name]); at += stride(n) {
				if name == lastFile && at >= lastSize && at < copyDistance {
					continue
				}
				known := name != lastFile || at >= lastSize
				what := fmt.Sprintf("log %d, %s cut at %d", n, name, at)
				m.check(t, what, m.withFile(name, func(data []byte) []byte { return data[:at:at] }), known)
				m.check(t, what+", with zeros", m.withFile(name, func(data []byte) []byte {
					clear(data[at:])
					return data
				}), known)
			}
		}
	}
}

// TestZeroedBlocks: every 512 and 4096 bytes, wherever they begin.
func TestZeroedBlocks(t *testing.T) {
	logs := append(smallLogs(t)[1:], record(t, 5, 200, 200, 16<<10, false),
		record(t, 6, 200, 150, 16<<10, false), record(t, 7, 150, 150, 1<<20, true))
	for n, m := range logs {
		for _, name := range m.names() {
			for _, size := range []int{512, 4096} {
				for at := 0; at < len(m.files[name]); at += 256 {
					files := m.withFile(name, func(data []byte) []byte {
						clear(data[at:min(len(data), at+size)])
						return data
					})
					m.check(t, fmt.Sprintf("log %d, %d bytes at %d of %s", n, size, at, name), files, true)
				}
			}
		}
	}
}

// TestHeadsAreKnownTwice: of a log that has come to rest, damage of one block leaves
// the head of every record, and every record that was appended twice.
func TestHeadsAreKnownTwice(t *testing.T) {
	for _, fileSize := range []int64{16 << 10, 1 << 20} {
		m := record(t, 8, 150, 150, fileSize, true)
		for _, name := range m.names() {
			for at := 0; at < len(m.files[name]) && name != lastFile; at += 128 {
				files := m.withFile(name, func(data []byte) []byte {
					clear(data[at:min(len(data), at+copyDistance)])
					return data
				})
				l := open(t, disk(t, files))
				got, report := replayAll(t, l, 0)
				closeLog(t, l)
				for i := range m.recs {
					e := &m.recs[i]
					is := func(g entry) bool { return g.rec == e.rec }
					switch lost := !slices.ContainsFunc(got, is); {
					case lost && e.again != 0:
						t.Fatalf("%d of %s: record %d was appended twice and is lost", at, name, i)
					case lost && e.head > 0 && !slices.ContainsFunc(report.Lost, func(k LostRecord) bool {
						return k.LSN == e.lsn
					}):
						t.Fatalf("%d of %s: the head of record %d is not known", at, name, i)
					}
				}
			}
		}
	}
}

// TestEveryFileRemoved: one file, and lastFile with it or alone.
func TestEveryFileRemoved(t *testing.T) {
	for n, m := range append(smallLogs(t), record(t, 5, 200, 200, 16<<10, false)) {
		for _, name := range m.names() {
			none := func([]byte) []byte { return nil }
			m.check(t, fmt.Sprintf("log %d without %s", n, name), m.withFile(name, none), name != lastFile)
			fs := disk(t, m.withFile(name, none))
			_, report := replayAll(t, open(t, fs), 1)
			if len(report.Missing)+len(report.Damaged) == 0 {
				t.Errorf("log %d without %s: nothing is said", n, name)
			}
		}
	}
}
