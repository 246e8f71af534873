package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sync/errgroup"
)

// ErrDiffers reports that a file contains other data at the offset of an append. Nothing was written.
var ErrDiffers = errors.New("it already contains other data")

// Addition is the data that a file must contain at an offset.
type Addition struct {
	Path   string
	Offset int64
	Data   []byte
	Perm   fs.FileMode

	Unsynced bool // as in [File]
}

// Append appends data at offset, in one write. If an interrupted attempt has left the beginning of data, it is kept
// and the rest is added; other bytes are an error. If all of data exists, nothing is written, whatever follows it. On
// return data and the name of the file are on disk; size is the length of the file.
//
// A file that is missing is created when offset is 0. One that ends before the offset, and [ErrDiffers], leave it as it
// was; after any other error it may hold the beginning of data, which the same call completes.
func (d Disk) Append(path string, offset int64, data []byte, perm fs.FileMode) (size int64, err error) {
	sizes, err := d.AppendAll([]Addition{{Path: path, Offset: offset, Data: data, Perm: perm}})
	if err != nil {
		return 0, err
	}
	return sizes[0], nil
}

// AppendAll does what [Disk.Append] does for several files, and syncs them at the same time unless they may stay
// unsynced. After an error some of them may contain their addition.
func (d Disk) AppendAll(all []Addition) (sizes []int64, err error) {
	err = d.named(func(n *Names) (err error) {
		synced := flushes()
		defer func() { err = errors.Join(err, synced.Wait()) }()
		for _, a := range all {
			size, err := d.append(a, synced)
			if err != nil {
				return explain(err, "append to", a.Path)
			}
			sizes = append(sizes, size)
			if !a.Unsynced && a.Offset == 0 {
				n.add(a.Path, true)
			}
		}
		return nil
	})
	return sizes, err
}

// append writes the missing part of an addition, and returns the size of the file. The file is synced even if nothing is
// missing: an earlier writer may have died before the sync.
func (d Disk) append(a Addition, synced *errgroup.Group) (size int64, err error) {
	flag := os.O_RDWR | os.O_APPEND
	if a.Offset == 0 {
		flag |= os.O_CREATE
	}
	f, err := d.open(a.Path, flag, a.Perm)
	if errors.Is(err, fs.ErrNotExist) && a.Offset > 0 {
		return 0, errors.New("it is missing")
	}
	if err != nil {
		return 0, err
	}
	tail, err := readTail(f, a.Offset)
	have := min(len(tail), len(a.Data))
	switch {
	case err != nil:
	case !bytes.Equal(tail[:have], a.Data[:have]):
		err = ErrDiffers
	case have < len(a.Data):
		err = d.write(f, a.Data[have:])
	}
	return a.Offset + int64(max(len(tail), len(a.Data))), d.flush(synced, f, a.Unsynced, err)
}

// readTail returns what a file has from offset on.
func readTail(f *os.File, offset int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < offset {
		return nil, fmt.Errorf("it ends at %d, so what comes before %d is missing", info.Size(), offset)
	}
	return io.ReadAll(io.NewSectionReader(f, offset, info.Size()-offset))
}

// CutTail moves the content of a file from offset on into the file at to. On return that file is on disk with those
// bytes and the first one ends at offset. After an error or a crash the tail is still at the end of the first file,
// complete in the other, or both; a repeated call finishes the work. If the other contains other data, the error is
// [ErrDiffers] and nothing is truncated. A file that ends at offset stays unchanged.
func (d Disk) CutTail(path string, offset int64, to string) error {
	f, err := d.open(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(d.cutTail(f, offset, to), f.Close())
	}
	return explain(err, "cut the end of", path)
}

func (d Disk) cutTail(f *os.File, offset int64, to string) error {
	tail, err := readTail(f, offset)
	if err != nil || len(tail) == 0 {
		return err
	}
	if _, err := d.Append(to, 0, tail, 0o600); err != nil {
		return err
	}
	if err := d.step(Step{Op: OpTruncate, Path: f.Name()}); err != nil {
		return err
	}
	if err := f.Truncate(offset); err != nil {
		return err
	}
	return d.sync(OpSync, []string{f.Name()}, nil)
}
