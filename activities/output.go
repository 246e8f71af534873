package activities

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrNoOutput says that a running call's output is not on this host, or not under this folder for scratch.
var ErrNoOutput = errors.New("nothing here yet: the call is being started, or it runs on another host")

// OutputOf is the file that a running call's newest delivery writes its output to. call is its id as the journal has it; the worker adds the digest of the question.
func OutputOf(scratch, call string) (string, error) {
	folders, err := os.ReadDir(scratch)
	if err != nil {
		return "", ErrNoOutput
	}
	name, root, newest := scratchName(call), "", time.Time{}
	for _, f := range folders {
		if f.Name() != name && !strings.HasPrefix(f.Name(), name+".") {
			continue
		}
		if fi, err := f.Info(); err == nil && (root == "" || fi.ModTime().After(newest)) { // after a reset the same call may have been asked something else
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
	return filepath.Join(root, strconv.Itoa(last), stdoutFile), nil
}

// ScratchOf are the folders that the calls of a run have left below the folder for scratch.
func ScratchOf(scratch, runID string) ([]string, error) {
	folders, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, f := range folders {
		if f.IsDir() && strings.HasPrefix(f.Name(), scratchName(runID+"/")) {
			out = append(out, filepath.Join(scratch, f.Name()))
		}
	}
	return out, nil
}
