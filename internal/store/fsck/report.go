package fsck

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoStore is wrapped by the error for a directory that holds no store.
var ErrNoStore = errors.New("no Dalmatiner store")

// MaxDamages bounds the list of a report: the count goes on.
const MaxDamages = 1000

// Damage is a place that is not what was written, or that cannot be read.
type Damage struct {
	File     string `json:"file"`   // relative to the data directory
	Offset   int64  `json:"offset"` // bytes; 0 where Part is not a range of bytes
	Length   int64  `json:"length,omitempty"`
	Part     string `json:"part"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// String is one line: file, place, and what is wrong there.
func (d Damage) String() string {
	text := fmt.Sprintf("%s: offset %d", d.File, d.Offset)
	if d.Length > 0 {
		text += fmt.Sprintf(", %d bytes", d.Length)
	}
	text += ", " + d.Part
	if d.Expected != "" || d.Found != "" {
		text += fmt.Sprintf(": expected %s, found %s", d.Expected, d.Found)
	}
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	return text
}

// Options says how a check reads.
type Options struct {
	Rate     int64            // bytes per second, 0 = as fast as possible
	Progress func(Progress)   // called before every file, by the caller's goroutine
	Now      func() time.Time // nil = time.Now; tells what has expired
}

// Progress is how far a check is.
type Progress struct {
	File       string `json:"file"` // that comes next
	Files      int64  `json:"files"`
	TotalFiles int64  `json:"total_files"`
	Bytes      int64  `json:"bytes"` // read
	Damaged    int64  `json:"damaged"`
}

// Report is what a check looked at and what it found.
type Report struct {
	Dir     string `json:"dir"`
	Online  bool   `json:"online"`
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"` // read
	Blocks  int64  `json:"blocks"`
	Chunks  int64  `json:"chunks"`
	Points  int64  `json:"points"`
	Series  int64  `json:"series"`  // of the catalogue
	Again   int64  `json:"again"`   // of these, begun again after a deletion
	Records int64  `json:"records"` // of the log

	TagEntries int64 `json:"tag_entries"` // changes, and series with their tags, in the files of tags
	Events     int64 `json:"events"`      // in files

	Deletions  int64 `json:"deletions"`  // of series that segments still hold something of
	Remembered int64 `json:"remembered"` // of others, kept so that no old copy brings the series back

	TookUS int64 `json:"took_us"`

	Damaged  int64    `json:"damaged"`
	Damages  []Damage `json:"damages"` // the first MaxDamages
	Expected []Damage `json:"expected"`

	// TagsDamaged says that files of tags are among the damaged ones. A running node writes them
	// again: Rewritten are the paths of their copies, NotRewritten says why some are not.
	TagsDamaged  bool     `json:"-"`
	Rewritten    []string `json:"rewritten,omitempty"`
	NotRewritten string   `json:"not_rewritten,omitempty"`
}
