package measure

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		mid    float64
		spread [2]float64
	}{
		{[]float64{7}, 7, [2]float64{7, 7}},
		{[]float64{9, 1, 2}, 2, [2]float64{1, 9}},
		{[]float64{4, 1, 2, 9}, 3, [2]float64{1, 9}},
	} {
		if mid, spread := Median(c.values); mid != c.mid || spread != c.spread {
			t.Errorf("Median(%v) = %v %v, want %v %v", c.values, mid, spread, c.mid, c.spread)
		}
	}
}

func TestStat(t *testing.T) {
	got, err := parseStat("12 (a name) R) S 7 12 12 0 -1 4194560 900 0 0 0 250 31 4 2 20 0 8 0 100")
	want := stat{7, CPU{2500 * time.Millisecond, 310 * time.Millisecond},
		CPU{40 * time.Millisecond, 20 * time.Millisecond}}
	if err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"12 (a) S 1", "12 (a) S 7 12 12 0 -1 4194560 900 0 0 0 x 31 4 2 20",
		""} {
		if _, err := parseStat(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// The tree of this process has the child, and the child's memory.
func TestTree(t *testing.T) {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}()
	tree, err := Tree(os.Getpid())
	if err != nil || tree[0] != os.Getpid() || !slices.Contains(tree, child.Process.Pid) {
		t.Fatalf("got %v, %v, want %d among them", tree, err, child.Process.Pid)
	}
	_, own, err := Memory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_, childs, err := Memory(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, peak, err := TreeMemory(os.Getpid()); err != nil || peak < own+childs {
		t.Errorf("the tree's peak is %d, %v; this process had %d, its child %d", peak, err, own, childs)
	}
	if _, err := TreeTime(os.Getpid()); err != nil {
		t.Error(err)
	}
}

func TestTransferred(t *testing.T) {
	if read, written, err := Transferred(os.Getpid()); err != nil || read < 0 || written < 0 {
		t.Errorf("of this process: %d, %d, %v", read, written, err)
	}
	if _, _, err := Transferred(0); err == nil {
		t.Error("of a process that is not there: no error")
	}
}

func TestTheCommitIsThatOfThePrograms(t *testing.T) {
	for text, want := range map[string]string{
		"ddb fc5b938\n":                   "fc5b938",
		"ddb fc5b938-dirty\n":             "fc5b938-dirty",
		"ddb v0.2.1-7-gfc5b938\n":         "fc5b938",
		"ddb v0.2.1-7-gfc5b93812-dirty\n": "fc5b93812-dirty",
		"ddb v0.2.1\n":                    "v0.2.1",
		"ddb devel\n":                     "",
		"":                                "",
	} {
		if got := parseVersion(text); got != want {
			t.Errorf("%q is built from %q, want %q", text, got, want)
		}
	}
	m := Machine{Commit: "a", Source: "a"}
	if text := m.String(); strings.Contains(text, "measured by") {
		t.Errorf("programs of the same source: %s", text)
	}
	m.Source = "b"
	if text := m.String(); !strings.Contains(text, "commit a (measured by the benchmark of b)") {
		t.Errorf("programs of another source: %s", text)
	}
}
