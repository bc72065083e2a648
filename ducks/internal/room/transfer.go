package room

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/diskfile"
	"dalmatiner/ducks/internal/pool"
)

// transferImage is one that lives as long as a transfer. Those that a crash has left are removed by
// Tidy.
func transferImage(n uint64) string { return fmt.Sprintf("%s%d", transferring, n) }

const transferring = "t."

// Transfers are images that come into a room, and those that go out of it. Its methods may be
// called concurrently.
type Transfers struct{ *Room }

// Transfers returns those of the room.
func (r *Room) Transfers() Transfers { return Transfers{r} }

// name makes a name for the image of a transfer.
func (r Transfers) name() (name string, err error) {
	err = r.o.State.Update(func(tx *state.Tx) error {
		n, err := tx.Next(volumes)
		name = transferImage(n)
		return err
	})
	return name, err
}

// Import makes a volume, of a name, network and size, of bytes that are read, or gives a volume of
// that size a version more. Afterwards sum returns the SHA-256 that they are to have, in hex: if
// they have another one nothing is made.
func (r Transfers) Import(ctx context.Context, of Volume, from io.Reader, sum func() string, author,
	note string) (Version, error) {
	if err := r.importable(&of); err != nil {
		return Version{}, err
	}
	image, err := r.name()
	if err != nil {
		return Version{}, err
	}
	if err := r.o.Pool.Create(ctx, image, of.Size); err != nil {
		return Version{}, fmt.Errorf("volume %s: %w", of.Name, err)
	}
	v, err := r.importInto(ctx, image, of, from, sum, Version{Author: author, Note: note})
	return v, errors.Join(err, r.o.Pool.Delete(context.WithoutCancel(ctx), image))
}

// importable completes a volume that is there, and refuses one of another size, and one that nobody
// may make.
func (r Transfers) importable(of *Volume) error {
	var v Volume
	switch err := r.get(volumes, of.Name, &v); {
	case errors.Is(err, state.ErrUnknown):
		return errors.Join(r.fresh(volumes, of.Name),
			r.Networks().may(of.Network, Counts{Volumes: 1, Space: of.Size}))
	case err != nil:
		return err
	case v.Size != of.Size:
		return fmt.Errorf("volume %s: %w: it has %d bytes, and the image %d: import it as a volume of "+
			"its own", of.Name, ErrRefused, v.Size, of.Size)
	}
	*of = v
	return nil
}

func (r Transfers) importInto(ctx context.Context, image string, of Volume, from io.Reader,
	sum func() string, v Version) (Version, error) {
	got, err := r.fill(ctx, image, of.Size, from)
	if err != nil {
		return Version{}, fmt.Errorf("volume %s: %w", of.Name, err)
	}
	if want := sum(); want != got {
		return Version{}, fmt.Errorf("volume %s: %w: what came has the SHA-256 %s, and should have %q",
			of.Name, ErrRefused, got, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.importable(&of); err != nil { // somebody may have been faster
		return Version{}, err
	}
	v.From = "import, SHA-256 " + got
	if err := r.freeze(ctx, image, volumeImage(of.Name), &of.Versions, v); err != nil {
		return Version{}, fmt.Errorf("volume %s: %w", of.Name, err)
	}
	return of.Versions[len(of.Versions)-1], r.put(volumes, of.Name, of)
}

// fill writes so many bytes into an image of zeros, and returns their SHA-256. It refuses those of
// a file that is no disk.
func (r Transfers) fill(ctx context.Context, image string, size int64,
	from io.Reader) (sum string, err error) {
	f, err := os.OpenFile(r.o.Pool.Path(image), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(from, hash), diskfile.FirstBytes)
	first, _ := in.Peek(int(min(size, diskfile.FirstBytes))) // an error comes again
	if err = diskfile.Foreign(first, nil); err == nil {
		err = diskfile.Fill(pool.NewMeter(ctx, r.o.Pool, 0).Writer(f), size, in)
	}
	if err == nil {
		last := make([]byte, min(size, diskfile.LastBytes))
		if _, err = f.ReadAt(last, size-int64(len(last))); err == nil {
			err = diskfile.Foreign(nil, last)
		}
	}
	if errors.Is(err, diskfile.ErrLength) || errors.Is(err, diskfile.ErrRefused) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), f.Sync()
}

// Image is a version that is read.
type Image struct {
	Size    int64
	Version Version

	r     *Room
	image string
	file  *os.File
}

// Read reads the bytes of the disk.
func (i *Image) Read(p []byte) (int, error) { return i.file.Read(p) }

// File returns the file that has them, until Close.
func (i *Image) File() *os.File { return i.file }

// Close ends it.
func (i *Image) Close() error {
	return errors.Join(i.file.Close(), i.r.o.Pool.Delete(context.Background(), i.image))
}

// Export returns a version of a volume, 0 is the newest, to be read from its first byte to its
// last.
func (r Transfers) Export(ctx context.Context, name string, number int) (*Image, error) {
	var v Volume
	if err := r.get(volumes, name, &v); err != nil {
		return nil, err
	}
	of, err := version(v.Versions, number)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", name, err)
	}
	return r.open(ctx, of, v.Size)
}

// open clones a version, since another one may take it away while it is read.
func (r Transfers) open(ctx context.Context, of Version, size int64) (*Image, error) {
	image, err := r.name()
	if err != nil {
		return nil, err
	}
	if err := r.o.Pool.Clone(ctx, of.Snapshot, image); err != nil {
		return nil, err
	}
	f, err := os.Open(r.o.Pool.Path(image))
	if err != nil {
		return nil, errors.Join(err, r.o.Pool.Delete(ctx, image))
	}
	return &Image{Size: size, Version: of, r: r.Room, image: image, file: f}, nil
}

// Pair is a version and the one before it.
type Pair struct{ Before, After *Image }

// Close ends both.
func (p *Pair) Close() error { return errors.Join(p.Before.Close(), p.After.Close()) }

// Pair returns a version of a list, 0 is the newest, and the one before it, to be read. The first
// has none before it.
func (r Transfers) Pair(ctx context.Context, list []Version, number int) (p Pair, err error) {
	of, err := version(list, number)
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(list, func(v Version) bool { return v.Number == of.Number })
	if i == 0 {
		return p, fmt.Errorf("version %d: %w: no version is before it; it is of %s", of.Number,
			ErrRefused, of.From)
	}
	if p.Before, err = r.open(ctx, list[i-1], 0); err != nil {
		return p, err
	}
	if p.After, err = r.open(ctx, of, 0); err != nil {
		return p, errors.Join(err, p.Before.Close())
	}
	return p, nil
}

// Tidy removes what transfers have left that a crash has ended. It is called before any other
// begins.
func (r Transfers) Tidy(ctx context.Context) error {
	all, err := r.o.Pool.Images(ctx)
	if err != nil {
		return err
	}
	for _, image := range all {
		if strings.HasPrefix(image, transferring) {
			if err := r.o.Pool.Delete(ctx, image); err != nil && !errors.Is(err, pool.ErrUnknown) {
				return err
			}
			r.o.Logger.Info("an image of a transfer that was cut off is removed", "image", image)
		}
	}
	return nil
}
