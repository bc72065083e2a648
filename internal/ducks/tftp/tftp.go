// Package tftp gives machines the boot loader that they ask for by TFTP, and nothing else. It is the one package that
// imports pin/tftp. Sources: RFC 1350, 2347 to 2349.
package tftp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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

// meant returns the name of the file that firmware asks for. Some begins names with slashes, also those of Windows, or with
// the directory in which it is. Some reads past the end of the name in DHCP's answer, and adds the bytes that it finds there:
// no name has bytes that are not those of printable ASCII.
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

// alike returns the name of a file that differs from another one in its case only: os.ErrNotExist if there is none.
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

// Options say who is served.
type Options struct {
	Files  Files
	Seen   func(who netip.Addr) // is told that a machine gets the end of a file, before it has that
	Logger *slog.Logger
}

// Server answers at one address until it is closed.
type Server struct {
	s    *tftp.Server
	done sync.WaitGroup
}

// Port is that of TFTP.
const Port = 69

// mostAtOnce is how many transfers there are at a time. Of more the machines ask again.
const mostAtOnce = 256

// Start answers machines at an address.
func Start(at netip.AddrPort, o Options) (*Server, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("TFTP: %w", err)
	}
	room := make(chan struct{}, mostAtOnce)
	s := &Server{s: tftp.NewServer(func(name string, to io.ReaderFrom) error {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		default:
			return errors.New("too many machines load at once: ask again")
		}
		return o.give(name, to)
	}, nil)}
	s.s.SetTimeout(time.Second)
	s.s.SetRetries(4) // Close waits for who is silent as well
	s.s.SetBackoff(func(int) time.Duration { return 0 })
	s.done.Go(func() {
		if err := s.s.Serve(conn); err != nil && !errors.Is(err, net.ErrClosed) {
			o.Logger.Error("no machine loads by TFTP any more", "err", err)
		}
	})
	return s, nil
}

// give sends a file.
func (o *Options) give(name string, to io.ReaderFrom) error {
	file, size, err := o.Files.Open(name)
	if err != nil {
		o.Logger.Warn("a machine asks for a file that it does not get", "name", fmt.Sprintf("%.100q", name), "err", err)
		return ErrNone
	}
	defer file.Close()
	out, is := to.(tftp.OutgoingTransfer)
	if is {
		out.SetSize(size)
	}
	from := &ending{Reader: file, left: size}
	if is {
		if a, ok := netip.AddrFromSlice(out.RemoteAddr().IP.To4()); ok {
			from.end = func() { o.Seen(a) }
		}
	}
	if _, err := to.ReadFrom(from); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// ending reads so many bytes, and says once that the last of them was read. A machine that has the end goes on at once: what
// it does next is not to be seen before that.
type ending struct {
	io.Reader
	left int64
	end  func() // may be nil
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if e.left -= int64(n); (e.left <= 0 || errors.Is(err, io.EOF)) && e.end != nil {
		e.end()
		e.end = nil
	}
	return n, err
}

// Close ends it, when the transfers under way have ended.
func (s *Server) Close() {
	s.s.Shutdown()
	s.done.Wait()
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
