package manifest

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Inspect reads dir/MANIFEST and changes nothing, whether or not it is open
// elsewhere. The state, which is the caller's, and the report are those that
// Open would give; beside an open Manifest a torn end is a commit under way.
// The errors are failed I/O, a missing file among it, and ErrFormat.
func Inspect(fs vfs.FS, dir string) (*State, Report, error) {
	m := Manifest{fs: fs, dir: dir}
	data, err := m.read()
	var l loader
	if err == nil {
		err = l.load(data)
	}
	if err != nil {
		return nil, l.report, fmt.Errorf("manifest: %s: %w", m.path(fileName), err)
	}
	return l.state.clone(), l.report, nil
}
