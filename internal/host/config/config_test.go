package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/testkit/golden"
)

// TestGoldenFiles compares what each file gives, values that differ from the
// default, warnings and errors, with the golden text beside it.
func TestGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Same(t, strings.TrimSuffix(file, ".conf")+".golden", describe(filepath.Base(file), text))
		})
	}
}

func describe(name string, text []byte) string {
	var b strings.Builder
	settings, err := ParseFile(name, text)
	if err != nil {
		fmt.Fprintf(&b, "syntax:\n%v\n", err)
	}
	c, warnings, err := Build(settings...)
	for _, e := range c.Entries() {
		if e.Origin != "default" {
			fmt.Fprintf(&b, "%s = %s (%s)\n", e.Key, e.Value, e.Origin)
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	if err != nil {
		fmt.Fprintf(&b, "errors:\n%v\n", err)
	}
	return b.String()
}

func TestDefaultsAreValid(t *testing.T) {
	for _, e := range Default().Entries() {
		_, warnings, err := Build(Setting{"test", e.Key, e.Value})
		if err != nil || len(warnings) != 0 {
			t.Errorf("%s = %s: %v %v", e.Key, e.Value, err, warnings)
		}
		if e.Value != e.Default {
			t.Errorf("%s: the default is printed as %s and written as %s", e.Key, e.Value, e.Default)
		}
		if e.Help == "" {
			t.Errorf("%s has no help", e.Key)
		}
	}
}

func TestLaterSettingsWin(t *testing.T) {
	c, _, err := Build(
		Setting{"ddb.conf:1", "tcp.addr", "0.0.0.0:1"},
		Setting{"--set", "tcp_port", "2"},
		Setting{"ddb.conf:2", "cache_points", "100"},
		Setting{"--set", "cache_points", "200"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if c.TCPAddr != "0.0.0.0:2" || c.CachePoints != 200 {
		t.Errorf("got %s and %d", c.TCPAddr, c.CachePoints)
	}
}

func TestNoNameIsBothKnownAndReplaced(t *testing.T) {
	for i := range keys {
		for _, name := range []string{keys[i].name, keys[i].old} {
			for j := range keys {
				if name != "" && j != i && (keys[j].name == name || keys[j].old == name) {
					t.Errorf("%s stands in the registry twice", name)
				}
			}
		}
	}
	for _, r := range replaced {
		if k, _ := lookup(r.name); k != nil {
			t.Errorf("%s is known and replaced", r.name)
		}
	}
}

func TestFileLimit(t *testing.T) {
	if _, err := ParseFile("x", make([]byte, maxFile+1)); err == nil ||
		!strings.Contains(err.Error(), "1048576") {
		t.Errorf("got %v", err)
	}
}

func TestParseSet(t *testing.T) {
	s, err := ParseSet("wal.sync=always")
	if err != nil || s != (Setting{"--set", "wal.sync", "always"}) {
		t.Errorf("got %v, %v", s, err)
	}
	if _, err := ParseSet("wal.sync"); err == nil {
		t.Error("no error without =")
	}
}

func TestDurationsRoundTrip(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0ns": 0, "1ms": time.Millisecond, "90s": 90 * time.Second, "1h": time.Hour,
		"1w": 7 * 24 * time.Hour, "8d": 8 * 24 * time.Hour, "15250w": 15250 * 7 * 24 * time.Hour,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
		if text != "0" && FormatDuration(want) != text && text != "90s" {
			t.Errorf("%v prints as %s, not %s", want, FormatDuration(want), text)
		}
	}
	if got, err := ParseDuration("1H30M"); err != nil || got != 90*time.Minute {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "s", "1", "1 ", "-1s", "1.5s", "15251w", "9223372036854775807s",
		"1y"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q gave %v and no error", text, got)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.conf")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("\xef\xbb\xbfn=1\r\n#\n a # b = c"))
	f.Fuzz(func(t *testing.T, text []byte) {
		settings, _ := ParseFile("f", text)
		c, _, err := Build(settings...)
		if err != nil {
			return
		}
		// What a listing prints must give the same configuration again.
		var again []Setting
		for _, e := range c.Entries() {
			again = append(again, Setting{e.Origin, e.Key, e.Value})
		}
		d, _, err := Build(again...)
		if err != nil {
			t.Fatalf("the printed configuration is refused: %v", err)
		}
		c.origins, d.origins = nil, nil
		if fmt.Sprint(c) != fmt.Sprint(d) {
			t.Fatalf("%v became %v", c, d)
		}
	})
}
