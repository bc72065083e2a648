package command

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"dalmatiner/ducks/internal/contents"
	"dalmatiner/ducks/internal/duckstest"
)

func TestMain(m *testing.M) {
	contents.Main()
	os.Exit(m.Run())
}

// testFiles: what a version has in place of another's files is named.
func testFiles(sh *shell, dir string) {
	sh.t.Helper()
	for _, name := range []string{"old", "new"} {
		path := filepath.Join(dir, name)
		err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, name), []byte(name),
			0o600))
		err = errors.Join(err, os.WriteFile(path+".img", nil, 0o600), os.Truncate(path+".img", 16<<20))
		if err != nil {
			sh.t.Fatal(err)
		}
		duckstest.Run(sh.t, "mke2fs", "-q", "-F", "-t", "ext4", "-d", path, path+".img")
		sh.run("image import files --file " + path + ".img")
	}
	sh.says("volume files files", "0 ext4 2", `- 0 "old" 3 to 0`, `+ 0 "new" 0 to 3`,
		"1 added, 1 removed, 0 changed; 2 of them shown")
	sh.says("volume files files --version 1", "no version is before it")
	sh.says("volume files files --version 3", "not known")
	sh.says("volume files none", "volume none")
	sh.says("group files lab", "0 - not compared")
	sh.says("volume delete files")
}
