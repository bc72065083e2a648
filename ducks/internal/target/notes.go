package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// notesName is the file of what tgtd was told, or was about to be: with it the next process takes
// tgtd over. It has the secrets of CHAP, as tgtd has; nobody else may enter its directory.
const notesName = "targets.json"

func (o *Options) load() (map[string]*made, error) {
	targets := make(map[string]*made)
	path := filepath.Join(o.Dir, notesName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return targets, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &targets)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it if it is damaged: devices that are on get their "+
			"targets again", path, err)
	}
	return targets, nil
}

// save replaces the file. It outlives this process, not the machine: with that tgtd is gone, too.
func (o *Options) save(targets map[string]*made) error {
	b, err := json.Marshal(targets)
	if err != nil {
		return err
	}
	path := filepath.Join(o.Dir, notesName)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
