package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// WithFile returns the processes that have a file open. It excludes those of other users, which are unreadable.
func WithFile(path string) ([]Identity, error) {
	want, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return matching(func(pid int) bool { return hasOpen(pid, path, want) })
}

// matching returns the processes whose pids match.
func matching(matches func(pid int) bool) (found []Identity, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !matches(pid) {
			continue
		}
		id, err := Of(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, nil
}

// hasOpen reports whether a pid has a file open. Only a descriptor of that name is opened for the comparison: devices
// may act when they are inspected.
func hasOpen(pid int, path string, want os.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range all {
		name := filepath.Join(dir, fd.Name())
		target, err := os.Readlink(name)
		if err != nil || filepath.Base(target) != filepath.Base(path) {
			continue
		}
		if info, err := os.Stat(name); err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}

// InFolder returns the processes of a program that work in a folder.
func InFolder(program, dir string) ([]Identity, error) {
	want, err := os.Stat(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // no process works in a folder that does not exist
	}
	isProgram := func(word string) bool { return filepath.Base(word) == program }
	return matching(func(pid int) bool {
		at, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
		return err == nil && os.SameFile(at, want) && slices.ContainsFunc(Arguments(pid), isProgram)
	})
}

// Arguments returns the command line of a process; none if it is not known.
func Arguments(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
}

// SameStart reports whether a process has started at a time as another program reads it from the kernel.
func SameStart(id Identity, start string) bool { return start == "" || start == id.StartTime }
