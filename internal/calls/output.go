package calls

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrNoOutput reports that the output of a running call is not in this scratch directory.
var ErrNoOutput = errors.New("nothing here yet: the call is being started, or it runs on another host")

// Output returns the file to which the newest delivery of a running call writes its output. call is its id in the
// journal; the worker appends the digest of the question.
func Output(scratch, call string) (string, error) {
	folders, err := os.ReadDir(scratch)
	if err != nil {
		return "", ErrNoOutput
	}
	name, root, newest := FolderName(call), "", time.Time{}
	for _, f := range folders {
		if f.Name() != name && !strings.HasPrefix(f.Name(), name+".") {
			continue
		}
		// after a reset the same call may have been asked something else
		if fi, err := f.Info(); err == nil && (root == "" || fi.ModTime().After(newest)) {
			root, newest = filepath.Join(scratch, f.Name()), fi.ModTime()
		}
	}
	if root == "" {
		return "", ErrNoOutput
	}
	deliveries, err := os.ReadDir(root)
	last := 0
	for _, d := range deliveries {
		if n, wrong := strconv.Atoi(d.Name()); wrong == nil {
			last = max(last, n)
		}
	}
	if err != nil || last == 0 {
		return "", ErrNoOutput
	}
	return filepath.Join(root, strconv.Itoa(last), StdoutFile), nil
}

// Folders returns the scratch directories of the calls of a run.
func Folders(scratch, runID string) ([]string, error) {
	folders, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, f := range folders {
		if f.IsDir() && strings.HasPrefix(f.Name(), FolderName(runID+"/")) {
			out = append(out, filepath.Join(scratch, f.Name()))
		}
	}
	return out, nil
}
