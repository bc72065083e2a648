package manifest

import (
	"bytes"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// inspectAttempts is how often Inspect reads the copies anew when they changed
// while it read them: beside an open Manifest that takes edits.
const inspectAttempts = 100

// Inspect reads both copies in dir and changes nothing, whether or not they are
// open elsewhere. The state, which is the caller's, and the report are those that
// Open would give; beside an open Manifest what is torn is a commit under way.
// The errors are failed I/O, the absence of both among it, and ErrFormat.
func Inspect(fs vfs.FS, dir string) (*State, Report, error) {
	m := Manifest{fs: fs, dir: dir}
	var before [2][]byte
	for attempt := 0; ; attempt++ {
		var l loader
		first, second, err := m.read()
		if err == nil && first.missing && second.missing {
			err = os.ErrNotExist
		}
		if err == nil {
			err = l.load(first, second)
		}
		if err != nil {
			return nil, l.report, fmt.Errorf("manifest: %s: %w", m.path(FirstName), err)
		}
		same := attempt > 0 && bytes.Equal(before[0], first.data) && bytes.Equal(before[1], second.data)
		if !l.report.differ || same || attempt == inspectAttempts {
			return l.state.clone(), l.report, nil
		}
		before = [2][]byte{first.data, second.data}
	}
}
