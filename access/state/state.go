// Package state keeps what a program knows in one file, in transactions: all of one is on disk, or
// nothing of it. It is the one package that imports bbolt.
package state

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// ErrUnknown is the error of what is not there.
var ErrUnknown = errors.New("it is not known")

// Table is the name of a kind of things.
type Table string

// Migration changes a file of the layout before. It gets the transaction in which the number of the
// layout changes.
type Migration func(tx *Tx) error

// File is the file. Its methods may be called concurrently: one transaction at a time writes.
type File struct{ db *bbolt.DB }

// about has what the file says of itself.
const about = "about"

var layoutKey = []byte("layout")

// Open opens the file, or makes it, and brings it to the newest layout: that is how many migrations
// there are. One that a newer program has written is refused.
func Open(path string, migrations []Migration) (*File, error) {
	db, err := bbolt.Open(path, 0o600,
		&bbolt.Options{Timeout: 5 * time.Second, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		err = errors.New("another process has it open")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &File{db}
	if err := f.Update(func(tx *Tx) error { return migrate(tx, migrations) }); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return f, nil
}

func migrate(tx *Tx, migrations []Migration) error {
	b, err := tx.tx.CreateBucketIfNotExists([]byte(about))
	if err != nil {
		return err
	}
	layout := uint64(0)
	if v := b.Get(layoutKey); len(v) == 8 {
		layout = binary.BigEndian.Uint64(v)
	}
	if layout > uint64(len(migrations)) {
		return fmt.Errorf("it has layout %d, and this program knows up to %d: it was written by a "+
			"newer one", layout, len(migrations))
	}
	for n := layout; n < uint64(len(migrations)); n++ {
		if err := migrations[n](tx); err != nil {
			return fmt.Errorf("layout %d: %w", n+1, err)
		}
	}
	return b.Put(layoutKey, binary.BigEndian.AppendUint64(nil, uint64(len(migrations))))
}

// Close closes the file. It waits for transactions.
func (f *File) Close() error { return f.db.Close() }

// View reads. What it reads is of one moment.
func (f *File) View(do func(tx *Tx) error) error {
	return f.db.View(func(tx *bbolt.Tx) error { return do(&Tx{tx}) })
}

// Update reads and writes. Where do returns an error nothing is changed.
func (f *File) Update(do func(tx *Tx) error) error {
	return f.db.Update(func(tx *bbolt.Tx) error { return do(&Tx{tx}) })
}

// Changes returns a number that is another one after each Update.
func (f *File) Changes() (n uint64, err error) {
	return n, f.db.View(func(tx *bbolt.Tx) error {
		n = uint64(tx.ID())
		return nil
	})
}

// Backup writes a file as this one is at one moment, while others go on.
func (f *File) Backup(w io.Writer) error {
	return f.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Tx is a transaction. It ends with the function that gets it.
type Tx struct{ tx *bbolt.Tx }

// MakeTable makes a table, for a migration.
func (tx *Tx) MakeTable(t Table) error {
	_, err := tx.tx.CreateBucket([]byte(t))
	return err
}

// Get reads a thing into v. ErrUnknown if it is not there.
func (tx *Tx) Get(t Table, key string, v any) error {
	b := tx.tx.Bucket([]byte(t)).Get([]byte(key))
	if b == nil {
		return fmt.Errorf("%s %s: %w", t, key, ErrUnknown)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s %s: %w", t, key, err)
	}
	return nil
}

// Has reports whether a thing is there.
func (tx *Tx) Has(t Table, key string) bool {
	return tx.tx.Bucket([]byte(t)).Get([]byte(key)) != nil
}

// Put writes a thing.
func (tx *Tx) Put(t Table, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s %s: %w", t, key, err)
	}
	return tx.tx.Bucket([]byte(t)).Put([]byte(key), b)
}

// Delete removes a thing, if it is there.
func (tx *Tx) Delete(t Table, key string) error {
	return tx.tx.Bucket([]byte(t)).Delete([]byte(key))
}

// Next returns a number that no transaction of a table was given before, from 1 on.
func (tx *Tx) Next(t Table) (uint64, error) { return tx.tx.Bucket([]byte(t)).NextSequence() }

// Each calls do with every thing of a table, by its key, ascending.
func Each[V any](tx *Tx, t Table, do func(key string, v V) error) error {
	return tx.tx.Bucket([]byte(t)).ForEach(func(k, b []byte) error {
		var v V
		if err := json.Unmarshal(b, &v); err != nil {
			return fmt.Errorf("%s %s: %w", t, k, err)
		}
		return do(string(k), v)
	})
}

// Backward calls do with the things of a table before a key, descending, until it wants no more. ""
// is behind all keys.
func Backward[V any](tx *Tx, t Table, before string,
	do func(key string, v V) (more bool, err error)) error {
	c := tx.tx.Bucket([]byte(t)).Cursor()
	var k, b []byte
	if behind, _ := c.Seek([]byte(before)); before == "" || behind == nil {
		k, b = c.Last()
	} else {
		k, b = c.Prev()
	}
	for ; k != nil; k, b = c.Prev() {
		var v V
		if err := json.Unmarshal(b, &v); err != nil {
			return fmt.Errorf("%s %s: %w", t, k, err)
		}
		if more, err := do(string(k), v); err != nil || !more {
			return err
		}
	}
	return nil
}
