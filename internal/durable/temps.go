package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var tempPattern = regexp.MustCompile(`\.tmp\.[0-9A-Za-z]+$`)

func tempName(path string) string {
	return path + ".tmp." + strings.ToLower(rand.Text()[:10])
}

// IsTemp reports whether a file name is that of a temporary file of this package.
func IsTemp(name string) bool {
	return tempPattern.MatchString(name)
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
			of := tempPattern.ReplaceAllString(e.Name(), "")
			if e.IsDir() || of == e.Name() || !folders[dir][of] {
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
