package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrShort reports that a file ends before the offset of an append. Nothing was written.
type ErrShort struct {
	Path         string
	Size, Offset int64
}

func (e *ErrShort) Error() string {
	return fmt.Sprintf("append to %s at %d: it ends at %d, so what comes before is missing", e.Path, e.Offset, e.Size)
}

// ErrDiffers reports that a file contains other data at the offset of an append. At is the offset in the file of the
// first byte that differs. Nothing was written.
type ErrDiffers struct {
	Path string
	At   int64
}

func (e *ErrDiffers) Error() string {
	return fmt.Sprintf("append to %s: it already contains other data at %d", e.Path, e.At)
}

// Append appends data at offset, in one write. If an interrupted attempt has left the beginning of data, it is kept
// and the rest is added; other bytes are an error. If all of data exists, nothing is written, whatever follows it. On
// return data and the name of the file are on disk; size is the length of the file.
//
// A file that is missing is created when offset is 0. The errors [ErrShort] and
// [ErrDiffers] leave it as it was; after any other error it may hold the
// beginning of data, which the same call completes.
func (d Disk) Append(path string, offset int64, data []byte, perm fs.FileMode) (size int64, err error) {
	sizes, err := d.AppendAll([]Addition{{Path: path, Offset: offset, Data: data, Perm: perm}})
	if err != nil {
		return 0, err
	}
	return sizes[0], nil
}

// AppendUnsynced does what [Disk.Append] does, except for syncing: after a power failure data may be missing. It is for
// data that its reader finds elsewhere then.
func (d Disk) AppendUnsynced(path string, offset int64, data []byte, perm fs.FileMode) (size int64, err error) {
	sizes, err := d.AppendAll([]Addition{{Path: path, Offset: offset, Data: data, Perm: perm, Unsynced: true}})
	if err != nil {
		return 0, err
	}
	return sizes[0], nil
}

// Addition is the data that a file must contain at an offset.
type Addition struct {
	Path   string
	Offset int64
	Data   []byte
	Perm   fs.FileMode

	Unsynced bool // as in [File]
}

// AppendAll does what [Disk.Append] does for several files, and syncs them at the same time unless they may stay
// unsynced. After an error some of them may contain their addition.
func (d Disk) AppendAll(all []Addition) (sizes []int64, err error) {
	files := make([]*os.File, 0, len(all))
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	var created []File
	var synced []*os.File
	for _, a := range all {
		f, err := d.openGrowing(a.Path, a.Offset, a.Perm)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		size, err := d.complete(f, a.Offset, a.Data)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
		if a.Unsynced {
			continue
		}
		synced = append(synced, f)
		if a.Offset == 0 {
			created = append(created, File{Path: a.Path})
		}
	}
	for i, err := range d.syncAll(synced) {
		if err != nil {
			return nil, fmt.Errorf("append to %s: %w", synced[i].Name(), err)
		}
	}
	return sizes, d.syncNames(created, nil)
}

func (d Disk) openGrowing(path string, offset int64, perm fs.FileMode) (*os.File, error) {
	flag := os.O_RDWR | os.O_APPEND
	if offset == 0 {
		flag |= os.O_CREATE
	}
	f, err := d.open(path, flag, perm)
	if errors.Is(err, fs.ErrNotExist) && offset > 0 {
		return nil, &ErrShort{Path: path, Offset: offset}
	}
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", path, err)
	}
	return f, nil
}

// complete writes the missing part of data. Its callers sync the file even if nothing is missing, because an earlier
// writer may have died before the sync.
func (d Disk) complete(f *os.File, offset int64, data []byte) (int64, error) {
	tail, size, err := readTail(f, offset, len(data))
	if err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(data, tail) {
		return 0, &ErrDiffers{Path: f.Name(), At: offset + int64(common(data, tail))}
	}
	rest := data[len(tail):]
	if len(rest) > 0 {
		if _, err := d.write(f, rest); err != nil {
			return 0, fmt.Errorf("append to %s: %w", f.Name(), err)
		}
	}
	return size + int64(len(rest)), nil
}

// readTail returns at most limit bytes from offset on, and the size of the file.
func readTail(f *os.File, offset int64, limit int) ([]byte, int64, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("append to %s: %w", f.Name(), err)
	}
	if info.Size() < offset {
		return nil, 0, &ErrShort{Path: f.Name(), Size: info.Size(), Offset: offset}
	}
	tail := make([]byte, min(info.Size()-offset, int64(limit)))
	if _, err := f.ReadAt(tail, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("append to %s: read what is there: %w", f.Name(), err)
	}
	return tail, info.Size(), nil
}

// common counts the leading bytes that a and b have in common.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
