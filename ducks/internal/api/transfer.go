package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/diskfile"
	"dalmatiner/ducks/internal/room"
)

// SumHeader is the header, or trailer, with the SHA-256 of the bytes of an image, in hex.
const SumHeader = "Image-Sha256"

// silence is how long a transfer may stand still.
const silence = time.Minute

// patient reads or writes for as long as something moves.
type patient struct {
	control *http.ResponseController
	from    io.Reader
	to      io.Writer
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.control.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return p.from.Read(b)
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return p.to.Write(b)
}

// upload is a body that may be refused while it comes. A sender that sends on meanwhile would find
// its connection closed, and not the answer.
type upload struct {
	io.ReadCloser
	control *http.ResponseController
	duplex  bool // an answer can go while it comes
	invited bool // its sender does not wait, or was told to send
	ended   bool
}

// receives makes the body of a request one. Its connection is not used again.
func receives(w http.ResponseWriter, q *http.Request) *upload {
	u := &upload{
		ReadCloser: q.Body,
		control:    http.NewResponseController(w),
		invited:    q.Header.Get("Expect") == "",
	}
	u.duplex = u.control.EnableFullDuplex() == nil
	w.Header().Set("Connection", "close")
	q.Body = u
	return u
}

func (u *upload) Read(b []byte) (int, error) {
	u.invited = true
	n, err := u.ReadCloser.Read(b)
	u.ended = u.ended || err != nil
	return n, err
}

// What is read of a refused body, while its sender reads the answer.
const (
	drainBytes = 256 << 20
	drainFor   = 10 * time.Second
)

// drain reads what still comes behind an answer, until its sender has noticed that.
func (u *upload) drain() {
	if u.ended || !u.invited || !u.duplex {
		return
	}
	if u.control.Flush() != nil || u.control.SetReadDeadline(time.Now().Add(drainFor)) != nil {
		return // the sender has gone
	}
	_, _ = io.CopyN(io.Discard, u, drainBytes) // it was refused: nothing of it matters
}

// number returns a number that a request has in its address, 0 if it has none.
func (c *call) number(key string) (int64, error) {
	text := c.URL.Query().Get(key)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s=%q is no number", errRequest, key, text)
	}
	return n, nil
}

// importVolume takes a volume, or a version of one: the body is the bytes of the disk, size of
// them. Their SHA-256 is in a header or in the trailer.
func importVolume(c *call) (any, error) {
	size, err := c.number("size")
	if err != nil {
		return nil, err
	}
	of := room.Volume{Name: c.object, Size: size}
	switch within, e := c.where(room.AVolume, c.object); {
	case errors.Is(e, state.ErrUnknown):
		of.Network, err = c.network(c.URL.Query().Get("network"))
	default:
		err = c.works(within, e)
	}
	if err != nil {
		return nil, err
	}
	control := http.NewResponseController(c.w)
	// the answer comes behind all of the body
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		return nil, err
	}
	sum := func() string {
		if s := c.Trailer.Get(SumHeader); s != "" {
			return s
		}
		return c.Header.Get(SumHeader)
	}
	body, err := unpacked(c.Header.Get("Content-Encoding"), &patient{control: control, from: c.Body})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	v, err := c.Room.Transfers().Import(c.Context(), of, body, sum, c.who.Name,
		c.URL.Query().Get("note"))
	if err != nil {
		return nil, err
	}
	return v, control.SetWriteDeadline(time.Now().Add(silence))
}

// unpacked returns the bytes of a disk of a body with a content coding.
func unpacked(coding string, body io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "", "identity":
		return io.NopCloser(body), nil
	case diskfile.Packed:
		return diskfile.Unpack(body)
	}
	return nil, fmt.Errorf("%w: Content-Encoding: %s: want %s, or none", errRequest, coding,
		diskfile.Packed)
}

// packed returns what writes the bytes of a disk into an answer, packed if who asks takes that, and
// what ends them.
func packed(h http.Header, takes string, w io.Writer) (to io.Writer, done func() error, err error) {
	for coding := range strings.SplitSeq(takes, ",") {
		if strings.TrimSpace(coding) != diskfile.Packed {
			continue
		}
		p, err := diskfile.Pack(w)
		if err != nil {
			return nil, nil, err
		}
		h.Set("Content-Encoding", diskfile.Packed)
		return p, p.Close, nil
	}
	return w, func() error { return nil }, nil
}

// exportVolume gives a version of a volume: the bytes of its disk, with their SHA-256 in the
// trailer.
func exportVolume(c *call) (any, error) {
	number, err := c.number("version")
	if err != nil {
		return nil, err
	}
	image, err := c.Room.Transfers().Export(c.Context(), c.object, int(number))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := image.Close(); err != nil {
			c.Logger.Warn("the image of a transfer stays until ducks starts again", "err", err)
		}
	}()
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Trailer", SumHeader)
	h.Set("Image-Size", strconv.FormatInt(image.Size, 10))
	h.Set("Image-Version", strconv.Itoa(image.Version.Number))
	control := http.NewResponseController(c.w)
	to, done, err := packed(h, c.Header.Get("Accept-Encoding"), &patient{control: control, to: c.w})
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	buf := make([]byte, 1<<20)
	n, err := io.CopyBuffer(io.MultiWriter(to, hash), io.LimitReader(image, image.Size), buf)
	if err = errors.Join(err, done()); err == nil && n == image.Size { // else who reads misses the sum
		h.Set(SumHeader, hex.EncodeToString(hash.Sum(nil)))
	}
	return sent{}, err
}

// sent is the answer of who has written one already.
type sent struct{}
