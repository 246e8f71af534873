package projector

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// batchWriter collects whole files, so that each folder is synced once. Blobs are read when they are written, a few at
// a time: a rebuild of a whole directory need not fit into memory.
type batchWriter struct {
	dir   Dir
	load  func(digest string) ([]byte, error)
	files []wholeFile
	index map[string]int
	list  func(wholeFile) // if not nil, files are listed instead of written

	defers       bool // evidence stays unsynced
	evidenceOnly bool // other files stay unchanged, except for those that are read back

	spares bool // files whose bytes are lost stay unchanged

	first run.State // before the batch
}

// wholeFile is a file to be written: a blob of the store, the result of load when it is written, or data.
type wholeFile struct {
	name   string // in the directory, with slashes
	digest string
	tree   string // listed by load
	load   func() ([]byte, error)
	data   []byte
	verify *disk.Verify

	evidence bool // of a pass or a checkpoint: no operator edits it
}

// add queues a file and replaces an earlier one with the same name.
func (w *batchWriter) add(f wholeFile) {
	if !fs.ValidPath(f.name) {
		f.name = path.Clean(f.name)
	}
	if w.list != nil {
		w.list(f)
		return
	}
	if w.evidenceOnly && !f.evidence && f.verify == nil {
		return
	}
	if w.index == nil {
		w.index = map[string]int{}
	}
	if i, ok := w.index[f.name]; ok {
		w.files[i] = f
		return
	}
	w.index[f.name] = len(w.files)
	w.files = append(w.files, f)
}

func (w *batchWriter) flush() error {
	const atOnce = 64 // all files of a call are open at the same time
	for files := range slices.Chunk(w.files, atOnce) {
		whole, err := w.read(files)
		if err != nil {
			return err
		}
		if err := w.write(whole); err != nil {
			return err
		}
	}
	w.files, w.index = nil, nil
	return nil
}

// read returns the bytes of some files.
func (w *batchWriter) read(files []wholeFile) ([]disk.File, error) {
	out := make([]disk.File, 0, len(files))
	for _, f := range files {
		data, err := f.data, error(nil)
		switch {
		case f.digest != "":
			data, err = w.load(f.digest)
		case f.load != nil:
			data, err = f.load()
		}
		if w.spares && journal.Unreadable(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.dir.Path(f.name), err)
		}
		out = append(out, disk.File{Path: w.dir.Path(f.name), Data: data, Perm: layout.FilePerm, DirPerm: layout.DirPerm,
			Verify: f.verify, Unsynced: w.defers && f.evidence})
	}
	return out, nil
}

// write replaces the files, and removes leftovers of attempts that a crash interrupted.
func (w *batchWriter) write(files []disk.File) error {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	disk := w.dir.Inside()
	if err := disk.CleanTempsOf(paths...); err != nil {
		return err
	}
	return disk.WriteAll(files)
}
