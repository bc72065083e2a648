package compare

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cache is the directory of everything that is fetched. What is there is not
// fetched again. All of it has a fixed version, and a checksum here or, for Go
// modules, in the public database of checksums.
type cache struct{ dir string }

// run runs a program in a directory and tells what it printed when it fails.
func run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, text[max(0, len(text)-300):])
	}
	return nil
}

// have makes the directory name of the cache by calling make on a new one,
// which takes its place when it is whole.
func (c *cache) have(name string, make func(dir string) error) (string, error) {
	path := filepath.Join(c.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(c.dir, ".making-")
	if err != nil {
		return "", err
	}
	if err = make(tmp); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(tmp))
	}
	return path, nil
}

// goBuild builds a program of a Go module, with cgo or without as its releases
// are. The module is required by one made for the purpose, so that nothing of
// it is in go.mod of the product.
func (c *cache) goBuild(ctx context.Context, name, module, version, pkg, tags string,
	cgo bool) error {
	_, err := c.have(name, func(dir string) error {
		mod := fmt.Sprintf("module competitor\n\ngo 1.26\n\nrequire %s %s\n", module, version)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
			return err
		}
		env := []string{"GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0"}
		if cgo {
			env[2] = "CGO_ENABLED=1"
		}
		return run(ctx, dir, env, "go", "build", "-trimpath", "-tags", tags, "-o", "program",
			module+"/"+pkg)
	})
	return err
}

// file is a file that is fetched, with its SHA-256.
type file struct{ name, version, sum string }

// check compares the file that matches a pattern in dir with its checksum.
func (f *file) check(dir, pattern string) (path string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s %s: %d files were fetched as %s, want one", f.name, f.version,
			len(found), pattern)
	}
	in, err := os.Open(found[0])
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != f.sum {
		return "", fmt.Errorf("%s %s has the SHA-256 %s, want %s", f.name, f.version, got, f.sum)
	}
	return found[0], nil
}

// debian unpacks Debian packages, without installing them, into one directory.
func (c *cache) debian(ctx context.Context, name string, packages []file) error {
	_, err := c.have(name, func(dir string) error {
		args := []string{"download"}
		for _, f := range packages {
			args = append(args, f.name+"="+f.version)
		}
		if err := run(ctx, dir, nil, "apt-get", args...); err != nil {
			return err
		}
		for _, f := range packages {
			path, err := f.check(dir, f.name+"_*.deb")
			if err != nil {
				return err
			}
			if err := run(ctx, dir, nil, "dpkg-deb", "-x", path, dir); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// wheel unpacks a package of PyPI without what it depends on.
func (c *cache) wheel(ctx context.Context, name string, f file) error {
	_, err := c.have(name, func(dir string) error {
		if err := run(ctx, dir, nil, python, "-m", "pip", "download", "--no-deps", "--only-binary",
			":all:", f.name+"=="+f.version); err != nil {
			return err
		}
		path, err := f.check(dir, "*.whl")
		if err != nil {
			return err
		}
		return errors.Join(unzip(path, dir), os.Remove(path))
	})
	return err
}

func unzip(path, dir string) (err error) {
	r, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return os.CopyFS(dir, r)
}

// maven copies an artifact of Maven Central.
func (c *cache) maven(ctx context.Context, name string, f file) error {
	_, err := c.have(name, func(dir string) error {
		err := run(ctx, dir, nil, "mvn", "-q", "-B",
			"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
			"-Dartifact="+f.name+":"+f.version, "-DoutputDirectory="+dir)
		if err != nil {
			return err
		}
		path, err := f.check(dir, "*.jar")
		if err != nil {
			return err
		}
		return os.Rename(path, filepath.Join(dir, "program.jar"))
	})
	return err
}

// python runs what Debian packages and wheels hold.
const python = "/usr/bin/python3"
