package target

import (
	"slices"
	"testing"
)

func TestParseTraffic(t *testing.T) {
	const shown = `tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) wr_subm(bytes,cmds) wr_done(bytes,cmds) errs
  1   0   1            0      0            0      0            0      0            0      0    0
  1   1   1     31043616   7580     31039520   7579          512      1            0      0    1
  1   2   1            0      0          512      1            0      0         1024      2    0
  2   1   4            0      0            1      1            0      0            0      0    0
  9   1   5            0      0            7      7            0      0            0      0    0

`
	names := map[int]string{1: "a", 2: "b"}
	want := []Traffic{{Login{"a", 1}, 31040032, 7580, 1024, 2, 1}, {Login{"b", 4}, 1, 1, 0, 0, 0}}
	if got, err := parseTraffic([]byte(shown), names); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"title\n1 2 3\n", "title\n1 1 1 x 0 0 0 0 0 0 0 0\n"} {
		if got, err := parseTraffic([]byte(bad), names); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}
