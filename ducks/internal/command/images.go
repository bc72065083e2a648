package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"dalmatiner/ducks/internal/api"
	"dalmatiner/ducks/internal/diskfile"
	"dalmatiner/ducks/internal/room"
)

type imageCommands struct {
	Import imageImport `cmd:"" help:"Make a volume, or its next version, of a file: raw or qcow2."`
	Export imageExport `cmd:"" help:"Write a version of a volume into a raw file, with holes, and its history beside it."`
}

type imageImport struct {
	Server
	Volume  string `arg:"" help:"A new one, or one with disks of the same size."`
	File    string `required:"" placeholder:"FILE"`
	Note    string `help:"What it is." placeholder:"TEXT"`
	Network string `help:"That owns a new volume; without it, the only one that the token is limited to, or default." placeholder:"NETWORK"`
}

// sector is what the size of a disk is a multiple of.
const sector = 512

func (c *imageImport) Run(ctx context.Context, out io.Writer) (err error) {
	d, err := diskfile.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if d.Size%sector != 0 || d.Size == 0 {
		return fmt.Errorf("%s: %d bytes: the size of a disk is a multiple of %d: truncate -s makes it "+
			"longer", c.File, d.Size, sector)
	}
	path := fmt.Sprintf("volumes/%s/image?size=%d&note=%s&network=%s", url.PathEscape(c.Volume),
		d.Size, url.QueryEscape(c.Note), url.QueryEscape(c.Network))
	body := &progress{
		from: io.NewSectionReader(d, 0, d.Size),
		size: d.Size,
		sum:  sha256.New(),
		what: c.File,
	}
	trailer := http.Header{api.SumHeader: nil}
	body.end = func() { trailer.Set(api.SumHeader, hex.EncodeToString(body.sum.Sum(nil))) }
	sent := pack(body)
	q, err := c.request(ctx, http.MethodPut, path, sent)
	if err != nil {
		return errors.Join(err, sent.Close())
	}
	q.Header.Set("Expect", "100-continue") // a refusal comes before the image goes
	q.Header.Set("Content-Encoding", diskfile.Packed)
	q.Trailer = trailer
	var v room.Version
	done, err := c.upload(out, q, &v)
	if err := sent.Close(); err != nil {
		return err
	}
	if body.failed != nil { // the file is to blame, whatever the server says
		return fmt.Errorf("%s: %w", c.File, body.failed)
	}
	if done || err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "version %d of volume %s, from %s\n", v.Number, c.Volume, c.File)
	return err
}

// upload sends a disk, and reads what the server says, which may come first.
func (c *imageImport) upload(out io.Writer, q *http.Request, into any) (done bool, err error) {
	r, err := c.transfer(q)
	if err != nil {
		return false, unreached(err)
	}
	defer r.Body.Close()
	return c.answer(out, r, into)
}

// packed is a disk as it crosses the network, without its zeros.
type packed struct {
	*io.PipeReader
	ended chan struct{} // closed when nobody reads the disk any more
}

// Close ends it.
func (p *packed) Close() error {
	err := p.PipeReader.Close()
	<-p.ended
	return err
}

func pack(disk io.Reader) *packed {
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p, err := diskfile.Pack(to)
		if err == nil {
			_, err = io.Copy(p, disk)
			err = errors.Join(err, p.Close())
		}
		_ = to.CloseWithError(err) // it never fails
	}()
	return &packed{from, ended}
}

// transfer asks the server, and waits for as long as a transfer takes.
func (s *Server) transfer(q *http.Request) (*http.Response, error) {
	t, err := s.transport()
	if err != nil {
		return nil, err
	}
	t.ExpectContinueTimeout, t.DisableCompression = 10*time.Second, true
	return (&http.Client{Transport: t}).Do(q)
}

// progress says how far a transfer is, on standard error, and sums what goes through it.
type progress struct {
	from io.Reader
	size int64
	sum  hash.Hash
	what string
	end  func()

	done   int64
	said   time.Time
	failed error // of what it reads
}

// sayEvery is the time between two lines of a transfer.
const sayEvery = 5 * time.Second

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	_, _ = p.sum.Write(b[:n]) // it never fails
	p.done += int64(n)
	if now := time.Now(); p.said.IsZero() {
		p.said = now
	} else if now.Sub(p.said) > sayEvery {
		p.said = now
		fmt.Fprintf(os.Stderr, "%s: %s of %s\n", p.what, bytesText(p.done), bytesText(p.size))
	}
	switch {
	case errors.Is(err, io.EOF) && p.end != nil:
		p.end()
	case err != nil && !errors.Is(err, io.EOF):
		p.failed = err
	}
	return n, err
}

type imageExport struct {
	Server
	Volume  string `arg:""`
	Version int    `help:"The number of the version; 0: the newest." placeholder:"VERSION"`
	File    string `required:"" help:"It is not there yet. FILE.json gets where it comes from, with its SHA-256." placeholder:"FILE"`
}

// exported is what is written beside a file.
type exported struct {
	Volume   string         `json:"volume"`
	Version  int            `json:"version"`
	Size     int64          `json:"size"`
	Sum      string         `json:"sha256"`
	Versions []room.Version `json:"history"` // up to this one
}

func (c *imageExport) Run(ctx context.Context, out io.Writer) error {
	if _, err := os.Lstat(c.File); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already", c.File)
	}
	of, err := c.volume(ctx)
	if err != nil {
		return err
	}
	q, err := c.request(ctx, http.MethodGet,
		fmt.Sprintf("volumes/%s/image?version=%d", url.PathEscape(c.Volume), c.Version), nil)
	if err != nil {
		return err
	}
	q.Header.Set("Accept-Encoding", diskfile.Packed)
	r, err := c.transfer(q)
	if err != nil {
		return unreached(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		_, err := c.answer(out, r, nil)
		return err
	}
	e := exported{Volume: c.Volume}
	e.Version, _ = strconv.Atoi(r.Header.Get("Image-Version"))
	if e.Size, err = strconv.ParseInt(r.Header.Get("Image-Size"), 10, 64); err != nil {
		return fmt.Errorf("the server does not say how large the image is: %w", err)
	}
	for _, v := range of.Versions {
		if v.Number <= e.Version {
			e.Versions = append(e.Versions, v)
		}
	}
	from := io.NopCloser(r.Body)
	if r.Header.Get("Content-Encoding") == diskfile.Packed {
		if from, err = diskfile.Unpack(r.Body); err != nil {
			return err
		}
	}
	defer from.Close()
	body := &progress{from: from, size: e.Size, sum: sha256.New(), what: c.File}
	if err := diskfile.Write(c.File, e.Size, body, func() error {
		if e.Sum = hex.EncodeToString(body.sum.Sum(nil)); r.Trailer.Get(api.SumHeader) != e.Sum {
			return fmt.Errorf("its SHA-256 is %s, and should be %q", e.Sum, r.Trailer.Get(api.SumHeader))
		}
		return nil
	}); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err == nil {
		err = os.WriteFile(c.File+".json", append(text, '\n'), 0o600)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "version %d of volume %s, %s, SHA-256 %s\n", e.Version, c.Volume,
			bytesText(e.Size), e.Sum)
	}
	return err
}

// volume returns the one whose image is wanted.
func (c *imageExport) volume(ctx context.Context) (v room.Volume, err error) {
	var list []room.Volume
	if err := c.ask(ctx, "volumes", &list); err != nil {
		return v, err
	}
	for _, v := range list {
		if v.Name == c.Volume {
			return v, nil
		}
	}
	return v, fmt.Errorf("volume %s: it is not known: there are %s", c.Volume, names(list))
}

func names(list []room.Volume) string {
	if len(list) == 0 {
		return "none"
	}
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = v.Name
	}
	return strings.Join(all, ", ")
}
