package segment

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// nullFS takes writes and keeps nothing, to measure the writer alone.
type nullFS struct{ vfs.FS }

type nullFile struct{ vfs.File }

func (nullFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nullFile{}, nil }
func (nullFile) Write(p []byte) (int, error)                          { return len(p), nil }
func (nullFile) Sync() error                                          { return nil }
func (nullFile) Close() error                                         { return nil }

// BenchmarkAdd writes 400,000 chunks of 200,000 series, index and footer
// included, without a disk.
func BenchmarkAdd(b *testing.B) {
	const series, chunks = 200_000, 2
	for _, size := range []int{20, 250, 900} {
		for _, order := range []string{"random", "sorted"} {
			b.Run(fmt.Sprintf("%dB/%s", size, order), func(b *testing.B) {
				data := make([]byte, size)
				b.SetBytes(series * chunks * int64(size))
				b.ReportAllocs()
				var info Info
				for b.Loop() {
					info = addAll(b, nullFS{}, series, chunks, order == "sorted", data)
				}
				n := float64(info.Chunks)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/chunk")
				b.ReportMetric(float64(info.Size-info.DataBytes)/n, "overhead-B/chunk")
			})
		}
	}
}

// addAll writes a segment whose series are added in the order of their hashes
// or in none.
func addAll(tb testing.TB, fs vfs.FS, series, chunks int, sorted bool, data []byte) Info {
	tb.Helper()
	w, err := Create(fs, testPath)
	if err != nil {
		tb.Fatal(err)
	}
	for s := range series {
		h := testHash(uint64(s))
		if sorted {
			h = Hash{byte(s >> 16), byte(s >> 8), byte(s)}
		}
		for c := range chunks {
			if err := w.Add(1, h, int64(c), 720, data); err != nil {
				tb.Fatal(err)
			}
		}
	}
	info, err := w.Finish()
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

func benchReader(b *testing.B, series, chunks int) *Reader {
	b.Helper()
	path := vfs.Default.PathJoin(b.TempDir(), "bench")
	w := &prefixFS{FS: vfs.Default, path: path}
	addAll(b, w, series, chunks, false, make([]byte, 900))
	return open(b, vfs.Default, path)
}

// prefixFS puts testPath where the benchmark wants it.
type prefixFS struct {
	vfs.FS
	path string
}

func (f *prefixFS) Create(_ string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.FS.Create(f.path, c)
}

// BenchmarkIndex finds a series and its chunk range without reading data: the
// range is empty.
func BenchmarkIndex(b *testing.B) {
	const series = 100_000
	r := benchReader(b, series, 1)
	warmCache(b, r, series)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		h := testHash(uint64(i * 7919 % series))
		h[15] ^= 0xff
		if err := r.Chunks(1, h, 0, 1, func(int64, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkLookup reads chunks of one series from the page cache.
func BenchmarkLookup(b *testing.B) {
	for _, chunks := range []int{1, 10, 120} {
		b.Run(fmt.Sprintf("%dchunks", chunks), func(b *testing.B) {
			series := 100_000 / chunks
			r := benchReader(b, series, chunks)
			warmCache(b, r, series)
			b.ReportAllocs()
			i, n := 0, 0
			for b.Loop() {
				err := r.Chunks(1, testHash(uint64(i*7919%series)), 0, int64(chunks),
					func(_ int64, data []byte) error {
						n += len(data)
						return nil
					})
				if err != nil {
					b.Fatal(err)
				}
				i++
			}
			if n == 0 {
				b.Fatal("nothing was read")
			}
		})
	}
}

// BenchmarkLookupKept is BenchmarkLookup with all blocks in memory, and with a
// twentieth of them.
func BenchmarkLookupKept(b *testing.B) {
	for _, keep := range []int64{256 << 20, 4 << 20} {
		b.Run(fmt.Sprintf("%dMiB", keep>>20), func(b *testing.B) {
			const series = 100_000
			path := benchReader(b, series, 1).file.path
			r, err := NewFiles(vfs.Default, 1, keep).Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			warmCache(b, r, series)
			warmCache(b, r, series)
			b.ReportAllocs()
			i, n := 0, 0
			for b.Loop() {
				err := r.Chunks(1, testHash(uint64(i*7919%series)), 0, 1, func(_ int64, data []byte) error {
					n += len(data)
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				i++
			}
			if n == 0 {
				b.Fatal("nothing was read")
			}
		})
	}
}

// BenchmarkFirstLookup opens a segment and reads one chunk.
func BenchmarkFirstLookup(b *testing.B) {
	r := benchReader(b, 100_000, 1)
	for b.Loop() {
		again, err := Open(vfs.Default, r.file.path)
		if err != nil {
			b.Fatal(err)
		}
		if err := again.Chunks(1, testHash(5), 0, 1, func(int64, []byte) error {
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		if err := again.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEach scans a segment whose chunks were added in index order, and one
// where they were not.
func BenchmarkEach(b *testing.B) {
	for _, order := range []string{"random", "sorted"} {
		b.Run(order, func(b *testing.B) {
			path := vfs.Default.PathJoin(b.TempDir(), "bench")
			info := addAll(b, &prefixFS{FS: vfs.Default, path: path}, 100_000, 1, order == "sorted",
				make([]byte, 900))
			r := open(b, vfs.Default, path)
			b.SetBytes(info.Size)
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Each(func(uint64, Hash, int64, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func warmCache(b *testing.B, r *Reader, series int) {
	b.Helper()
	for i := range series {
		if err := r.Chunks(1, testHash(uint64(i)), 0, 1, func(int64, []byte) error {
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
