package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const tempMark = ".tmp."

// tempName names a temporary file. No pattern and no secret number: both are costly in a program that starts for each
// call.
func tempName(path string) string {
	return path + tempMark + strconv.FormatUint(rand.Uint64(), 36)
}

// IsTemp reports whether a file name is that of a temporary file of this package.
func IsTemp(name string) bool {
	_, is := tempOf(name)
	return is
}

// tempOf returns the name of the file that a temporary file was written for.
func tempOf(name string) (of string, is bool) {
	at := strings.LastIndex(name, tempMark)
	if at < 0 {
		return "", false
	}
	random := name[at+len(tempMark):]
	for _, r := range random {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return "", false
		}
	}
	return name[:at], random != ""
}

// CleanTempsOf removes the temporary files that a crash left of the files at these paths. Only their single writer
// may call it, because a file that is being written looks the same. A missing folder is clean.
func (d Disk) CleanTempsOf(paths ...string) error {
	folders := byFolder(paths)
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		entries, err := d.readDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean %s: %w", dir, err)
		}
		for _, e := range entries {
			of, is := tempOf(e.Name())
			if !is || e.IsDir() || !folders[dir][of] {
				continue
			}
			if err := d.remove(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("clean %s: %w", dir, err)
			}
		}
	}
	return nil
}

func byFolder(paths []string) map[string]map[string]bool {
	folders := map[string]map[string]bool{}
	for _, p := range paths {
		dir := filepath.Dir(p)
		if folders[dir] == nil {
			folders[dir] = map[string]bool{}
		}
		folders[dir][filepath.Base(p)] = true
	}
	return folders
}
