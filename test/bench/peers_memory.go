package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errNoMemory reports that the system does not show the memory of processes in /proc.
var errNoMemory = errors.New("needs /proc of Linux")

// memory is the proportional set size (PSS) of process trees in bytes: pages that processes share count once.
func memory(roots []int) (int64, error) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		return 0, errNoMemory
	}
	parents, err := processTable()
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, pid := range family(roots, parents) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		kb, err := pss(string(text))
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		sum += kb << 10
	}
	return sum, nil
}

// family lists the roots and their descendants.
func family(roots []int, parents map[int]int) []int {
	var out []int
	for pid := range parents {
		for at := pid; at > 1; at = parents[at] {
			if slices.Contains(roots, at) {
				out = append(out, pid)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// processTable maps each process to its parent.
func processTable() (map[int]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	out := map[int]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, errPID := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ") // state, parent
		fields := strings.Fields(after)
		if errPID != nil || len(fields) < 2 {
			return nil, fmt.Errorf("read %s: %q", path, text)
		}
		if out[pid], err = strconv.Atoi(fields[1]); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return out, nil
}

// pss reads a rollup: kilobytes.
func pss(rollup string) (int64, error) {
	for line := range strings.Lines(rollup) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		}
	}
	return 0, errors.New("no line Pss")
}
