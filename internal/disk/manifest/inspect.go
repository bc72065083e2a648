package manifest

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/origin"
)

// inspectAttempts is how often Inspect reads the copies anew when they changed
// while it read them: beside an open Manifest that takes edits.
const inspectAttempts = 100

// Inspect reads both copies in dir, which has the id of, and changes nothing, whether or not they
// are open elsewhere. The state, which is the caller's, and the report are those that Open would
// give; beside an open Manifest what is torn is a commit under way. The errors are failed I/O, the
// absence of both among it, and ErrFormat.
func Inspect(fs vfs.FS, dir string, of origin.Directory) (*State, Report, error) {
	m := Manifest{fs: fs, dir: dir}
	var before [2][]byte
	for attempt := 0; ; attempt++ {
		l := loader{of: of}
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

// Directories returns of which directory each copy in dir says it is: none for a copy that does
// not say.
func Directories(fs vfs.FS, dir string) (all []origin.Directory) {
	m := Manifest{fs: fs, dir: dir}
	for _, name := range names {
		c := image{name: name}
		var err error
		if c.data, err = m.readFile(name); err != nil || c.parse() != nil {
			continue
		}
		if i := slices.IndexFunc(c.edits, func(n numberedEdit) bool {
			return n.edit.directory.IsKnown()
		}); i >= 0 {
			all = append(all, c.edits[i].edit.directory)
		}
	}
	return all
}
