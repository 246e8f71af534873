package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children returns the command lines of the processes whose parent is this one.
func children() (commands []string) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return []string{err.Error()}
	}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, ...
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		if line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")); err == nil {
			commands = append(commands, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return commands
}
