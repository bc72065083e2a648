package cluster

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/durable"
)

// The files of a node in the directory "cluster" of its data directory. Gossip and the log of the
// copies keep theirs there, too.
const (
	idFile      = "id"
	bucketsFile = "buckets"
)

// identity returns the id of a data directory, which it makes at the first start. A damaged one is
// an error: with another id the node would be another member, and its copies would count for
// nobody.
func identity(fsys vfs.FS, dir string) (ring.ID, error) {
	path := fsys.PathJoin(dir, idFile)
	text, err := durable.ReadFile(fsys, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var id ring.ID
		_, _ = rand.Read(id[:]) // it never fails
		return id, durable.WriteFile(fsys, dir, idFile, []byte(idText(id)))
	case err != nil:
		return ring.ID{}, err
	}
	var id ring.ID
	word, _, _ := strings.Cut(string(text), " ")
	if n, err := hex.Decode(id[:], []byte(word[:min(len(word), 2*len(id))])); err != nil ||
		n != len(id) || string(text) != idText(id) {
		return ring.ID{}, fmt.Errorf("%s is damaged: restore it from a backup; without one empty the "+
			"data directory, and let the node join anew "+
			"and replace what it was", path)
	}
	return id, nil
}

// idText is the id in hexadecimal digits, and its checksum.
func idText(id ring.ID) string { return fmt.Sprintf("%s %016x\n", id, xxh3.Hash(id[:])) }

// keep writes a file with a checksum in front.
func keep(fsys vfs.FS, dir, name string, plain []byte) error {
	return durable.WriteFile(fsys, dir, name,
		append(binary.LittleEndian.AppendUint64(nil, xxh3.Hash(plain)), plain...))
}

// readKept reads what keep has written; nil if it never did.
func readKept(fsys vfs.FS, dir, name string) ([]byte, error) {
	b, err := durable.ReadFile(fsys, fsys.PathJoin(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (len(b) < 8 || xxh3.Hash(b[8:]) != binary.LittleEndian.Uint64(b)) {
		err = fmt.Errorf("%s in %s is damaged", name, dir)
	}
	if err != nil {
		return nil, err
	}
	return b[8:], nil
}
