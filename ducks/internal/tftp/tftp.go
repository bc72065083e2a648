// Package tftp gives machines the boot loader that they ask for by TFTP, and nothing else. It is
// the one package that imports pin/tftp: for the side of a machine. Sources: RFC 1350, 2347 to
// 2349.
package tftp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/pin/tftp/v3"
)

// Files are the files of a directory that machines may load.
type Files struct{ Dir string }

// MaxFile is the size of the largest file that is given.
const MaxFile = 64 << 20

// loaderForm is that of the name of a boot loader: no path leads out of the directory.
var loaderForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// ErrNone is the error of a file that is not given.
var ErrNone = errors.New("there is no such file for machines")

// Open opens a file by its name, as firmware writes names.
func (f Files) Open(asked string) (*os.File, int64, error) {
	name := meant(asked)
	if !loaderForm.MatchString(name) {
		return nil, 0, fmt.Errorf("%q: %w", asked, ErrNone)
	}
	file, err := os.Open(filepath.Join(f.Dir, name))
	if errors.Is(err, os.ErrNotExist) {
		if name, err = f.alike(name); err == nil {
			file, err = os.Open(filepath.Join(f.Dir, name))
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("%q: %w", asked, ErrNone)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > MaxFile) {
		err = fmt.Errorf("%q: %w", name, ErrNone)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// meant returns the name of the file that firmware asks for. Some begins names with slashes, also
// those of Windows, or with the directory in which it is. Some reads past the end of the name in
// DHCP's answer, and adds the bytes that it finds there: no name has bytes that are not those of
// printable ASCII.
func meant(asked string) string {
	foreign := func(r rune) bool { return r < ' ' || r > '~' }
	if end := strings.IndexFunc(asked, foreign); end >= 0 {
		asked = asked[:end]
	}
	name := strings.ReplaceAll(asked, `\`, "/")
	for {
		rest := strings.TrimPrefix(strings.TrimPrefix(name, "/"), "./")
		if rest == name {
			return name
		}
		name = rest
	}
}

// alike returns the name of a file that differs from another one in its case only: os.ErrNotExist
// if there is none.
func (f Files) alike(name string) (string, error) {
	list, err := os.ReadDir(f.Dir)
	for _, e := range list {
		if strings.EqualFold(e.Name(), name) {
			return e.Name(), nil
		}
	}
	return "", errors.Join(err, os.ErrNotExist)
}

// Check returns an error unless all of some files are there.
func (f Files) Check(names ...string) error {
	for _, name := range names {
		file, _, err := f.Open(name)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Load loads a file as a machine does. It uses the network namespace of the thread that calls.
func Load(at netip.AddrPort, name string) ([]byte, error) {
	c, err := tftp.NewClient(at.String())
	if err != nil {
		return nil, err
	}
	c.SetTimeout(2 * time.Second)
	c.SetBlockSize(1456) // as iPXE
	c.RequestTSize(true)
	from, err := c.Receive(name, "octet")
	if err != nil {
		return nil, fmt.Errorf("%s from %s: %w", name, at, err)
	}
	var b bounded
	if _, err := from.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("%s from %s: %w", name, at, err)
	}
	return b.bytes, nil
}

// bounded keeps no more than MaxFile.
type bounded struct{ bytes []byte }

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.bytes)+len(p) > MaxFile {
		return 0, fmt.Errorf("it is longer than %d bytes", MaxFile)
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}
