package recovery_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/storetest"
)

// sayings collects what a start says of segments and the MANIFEST.
type sayings struct {
	mu       sync.Mutex
	damage   []string
	expected []string
}

func (l *sayings) Enabled(context.Context, slog.Level) bool { return true }
func (l *sayings) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *sayings) WithGroup(string) slog.Handler            { return l }

func (l *sayings) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text, ok := strings.CutPrefix(r.Message, "start: "); ok {
		l.expected = append(l.expected, text)
	}
	if r.Level < slog.LevelError {
		return nil
	}
	what, text := "", ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "what":
			what = a.Value.String()
		case "err":
			text = a.Value.String()
		}
		return true
	})
	if file, ok := strings.CutPrefix(what, "segment "); ok {
		l.damage = append(l.damage, file+" "+text)
	} else if what == "MANIFEST" && !strings.HasPrefix(text, "both copies are missing") {
		l.damage = append(l.damage, text)
	}
	return nil
}

// checkSays is what a check says of the same.
func checkSays(r *fsck.Report) *sayings {
	var l sayings
	for _, d := range r.Damages {
		switch {
		case d.Part == "edit":
			l.damage = append(l.damage, manifest.Place{File: d.File, Offset: d.Offset, Bytes: d.Length,
				Reason: d.Detail}.String())
		case d.Part == "edits":
			l.damage = append(l.damage, d.Detail)
		case d.Part == "file" && strings.HasSuffix(d.File, ".seg"):
			l.damage = append(l.damage, d.File+" "+d.Detail)
		}
	}
	for _, d := range r.Expected {
		if d.Part == "file" {
			l.expected = append(l.expected, d.File+" "+d.Detail)
		}
	}
	return &l
}

// checkThenOpen opens the store, and wants a check before it to say what the start says:
// the same words of the same files, as damage or not, no more and no less.
func checkThenOpen(t *testing.T, what string, o store.Options) (*storetest.Store, fsck.Report) {
	t.Helper()
	report, err := fsck.CheckDir(t.Context(), o.FS, o.Dir, fsck.Options{Now: o.Now})
	if err != nil {
		t.Fatal(err)
	}
	said, says := checkSays(&report), new(sayings)
	o.Logger = slog.New(says)
	s := storetest.Start(t, o)
	for _, l := range []struct{ check, start []string }{{said.damage, says.damage},
		{said.expected, says.expected}} {
		slices.Sort(l.check)
		slices.Sort(l.start)
		if !slices.Equal(l.check, l.start) {
			t.Fatalf("%s: the check says\n%s\nand the start\n%s", what, strings.Join(l.check, "\n"),
				strings.Join(l.start, "\n"))
		}
	}
	return s, report
}

// pairDamages are what is done to both copies at the same place, by name.
var pairDamages = map[string]func(data []byte, at int) []byte{
	"a flipped bit": func(data []byte, at int) []byte { data[at] ^= 0x40; return data },
	"a cut byte":    func(data []byte, at int) []byte { return slices.Delete(data, at, at+1) },
	"cut off":       func(data []byte, at int) []byte { return data[:at] },
	"4 KiB of zeros": func(data []byte, at int) []byte {
		clear(data[at:min(at+4096, len(data))])
		return data
	},
	"512 bytes of garbage": func(data []byte, at int) []byte {
		r := rand.New(rand.NewPCG(uint64(at), 3))
		for i := at; i < min(at+512, len(data)); i++ {
			data[i] = byte(r.Uint32())
		}
		return data
	},
}

// TestEveryByteOfBothCopies damages both copies of the MANIFEST at the same place: the
// windows and overlays that edits behind it named hold their points, none is counted as
// lost, nothing deleted comes back, and a check before the start says what the start does.
func TestEveryByteOfBothCopies(t *testing.T) {
	t.Parallel()
	mem, o := storetest.Merged(t)
	whole, err := durable.ReadFile(mem, o.FS.PathJoin(o.Dir, manifest.FirstName))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range pairDamages {
		t.Run(name, func(t *testing.T) {
			for _, at := range damagedAt(name, whole) {
				o.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
					RNG: rand.New(rand.NewPCG(1, 1))})
				for _, name := range []string{manifest.FirstName, manifest.SecondName} {
					if err := durable.WriteFile(o.FS, o.Dir, name, damage(slices.Clone(whole), at)); err != nil {
						t.Fatal(err)
					}
				}
				testDamagedPair(t, fmt.Sprintf("at byte %d of %d", at, len(whole)), o)
			}
		})
	}
}

// damagedAt returns the places of a MANIFEST at which a damage is tried: the start of each edit and
// around it, and others at distances that differ from damage to damage. So together they meet most
// bytes.
func damagedAt(name string, whole []byte) (places []int) {
	const header = 16
	step := 31
	if testing.Short() {
		step = 211
	}
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[0])))
	for at := header + r.IntN(step); at < len(whole); at += 1 + r.IntN(2*step-1) {
		places = append(places, at)
	}
	marker := whole[header : header+4]
	for at, n := header, 0; ; n++ {
		if next := bytes.Index(whole[at:], marker); next < 0 {
			break
		} else if at += next; !testing.Short() || n%5 == 0 {
			// of the edit before, the marker, length, checksum or number
			places = append(places, at-1, at, at+4+n%12)
		}
		at += len(marker)
	}
	return places
}

func testDamagedPair(t *testing.T, what string, o store.Options) {
	t.Helper()
	s, said := checkThenOpen(t, what, o)
	defer s.Crash()
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Fatalf("%s: %d points are missing; the check says %v, %v", what, n, said.Damages, said.Expected)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch+12*3600, epoch+12*3600+31); n != 0 {
		t.Fatalf("%s: %d newer points are missing; the check says %v, %v", what, n, said.Damages,
			said.Expected)
	}
	if lost := s.Account().Losses(); len(lost) > 0 {
		t.Fatalf("%s: counted as lost: %+v", what, lost)
	}
	if n := drivetest.MissingNoise(t, s, "deleted", epoch, epoch+30); n != 30 {
		t.Fatalf("%s: %d points of 30 deleted ones are gone", what, n)
	}
	if _, err := s.BucketByName("gone"); err == nil {
		t.Fatalf("%s: a deleted bucket is back", what)
	}
}

// TestAnOldManifestNamesWhatExpired puts both copies back as they were before a window
// expired and was removed, or its bucket was deleted: that is no loss.
func TestAnOldManifestNamesWhatExpired(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"expired", "deleted"} {
		t.Run(how, func(t *testing.T) {
			clock, mem := drivetest.NewClock(), vfs.NewCrashableMem()
			o := storetest.OptionsAt(mem, clock)
			storetest.ByHand(&o)
			s := storetest.Start(t, o)
			drivetest.FlushToMerge(t, s, s.Passing(t, clock))
			if err := s.SetTTL("a", 24*3600); err != nil {
				t.Fatal(err)
			}
			drivetest.Flush(t, s)
			if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			old := make(map[string][]byte)
			for _, name := range []string{manifest.FirstName, manifest.SecondName} {
				data, err := durable.ReadFile(mem, "/data/"+name)
				if err != nil {
					t.Fatal(err)
				}
				old[name] = data
			}
			if how == "expired" {
				s.Pass(t, clock, 60*24*time.Hour)
			} else {
				if err := s.DeleteBucket("a"); err != nil {
					t.Fatal(err)
				}
				drivetest.SendNoise(t, s, "b", epoch+12*3600, epoch+12*3600+1)
				drivetest.Flush(t, s)
			}
			if r, err := s.Merge(t.Context()); err != nil || r.Removed == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			s.Crash()
			for name, data := range old {
				if err := durable.WriteFile(mem, "/data", name, data); err != nil {
					t.Fatal(err)
				}
			}
			s, said := checkThenOpen(t, how, o)
			defer func() { s.Crash() }()
			if lost := s.Account().Losses(); len(lost) > 0 {
				t.Fatalf("counted as lost: %+v; the check says %v", lost, said.Damages)
			}
			if how == "deleted" {
				if _, err := s.BucketByName("a"); err == nil {
					t.Fatal("the deleted bucket is back")
				}
			}
		})
	}
}
