package disk

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	tempMark     = ".tmp."
	alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// tempName names a temporary file. No pattern and no secret number: both are costly in a program that starts for each
// call.
func tempName(path string) string {
	return path + tempMark + strconv.FormatUint(rand.Uint64(), 36)
}

// IsTemp reports whether a file name is that of a temporary file of this package.
func IsTemp(name string) bool { return tempOf(name) != "" }

// tempOf returns the name of the file that a temporary file was written for; empty if it is none.
func tempOf(name string) string {
	at := strings.LastIndex(name, tempMark)
	if at < 0 || at+len(tempMark) == len(name) || strings.Trim(name[at+len(tempMark):], alphanumeric) != "" {
		return ""
	}
	return name[:at]
}

// CleanTempsOf removes the temporary files that a crash left of the files at these paths. Only their single writer
// may call it, because a file that is being written looks the same. A missing folder is clean.
func (d Disk) CleanTempsOf(paths ...string) error {
	folders := map[string][]fs.DirEntry{}
	for _, path := range paths {
		dir := filepath.Dir(path)
		entries, seen := folders[dir]
		if !seen {
			var err error
			if entries, err = d.entries(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return explain(err, "clean", dir)
			}
			folders[dir] = entries
		}
		for _, e := range entries {
			if e.IsDir() || tempOf(e.Name()) != filepath.Base(path) {
				continue
			}
			if err := d.Remove(filepath.Join(dir, e.Name())); err != nil {
				return explain(err, "clean", dir)
			}
		}
	}
	return nil
}
