package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// bootID is the kernel's id of this boot and the pid namespace, since containers share the former.
func bootID() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + " " + namespace, nil
}

func lookup(pid int) (entry, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return entry{}, ErrGone
	}
	if err != nil {
		return entry{}, err
	}
	return parseStat(stat)
}

// parseStat reads state (field 3), parent (field 4) and start time (field 22) of proc_pid_stat(5). The name in
// field 2 may contain brackets and newlines, so parsing starts after the last bracket.
func parseStat(stat []byte) (entry, error) {
	const state, parent, start = 0, 4 - 3, 22 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= start {
		return entry{}, fmt.Errorf("process table: cannot read %q", stat)
	}
	zombie := bytes.ContainsAny(fields[state], "ZXx")
	pid, err := strconv.Atoi(string(fields[parent]))
	if err != nil {
		return entry{}, fmt.Errorf("process table: cannot read %q", stat)
	}
	return entry{start: string(fields[start]), zombie: zombie, parent: pid}, nil
}
