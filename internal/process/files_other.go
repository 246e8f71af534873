//go:build !linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// WithFile returns the processes that have a file open, as lsof lists them; none where there is no lsof.
func WithFile(path string) ([]Identity, error) { return listed("-t", "--", path) }

// InFolder returns the processes of a program that work in a folder.
func InFolder(program, dir string) ([]Identity, error) {
	return listed("-t", "-a", "-d", "cwd", "-c", program, "--", dir)
}

// listed returns the processes that lsof lists.
func listed(args ...string) (found []Identity, err error) {
	out, err := exec.Command("lsof", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.Is(err, exec.ErrNotFound) || errors.As(err, &exit) {
		err = nil // lsof also fails if there is none
	}
	if err != nil {
		return nil, fmt.Errorf("list processes with lsof: %w", err)
	}
	for word := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
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

// Arguments returns the command line of a process; none if it is not known.
func Arguments(pid int) []string {
	out, err := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// SameStart reports whether a process has started at a time as another program reads it from the kernel. Here it is not
// known in which form.
func SameStart(Identity, string) bool { return true }
