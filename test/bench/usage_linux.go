package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what a process used until now.
type usage struct {
	memory uint64 // resident, in bytes
	cpu    time.Duration
}

// userHz is the unit of CPU time in /proc on every Linux.
const userHz = 100

// usageOf reads what a process uses, without what it started.
func usageOf(pid int) (usage, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return usage{}, err
	}
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) // the name before it may contain spaces
	const user, system, resident = 11, 12, 21
	var n [3]uint64
	for i, at := range []int{user, system, resident} {
		if n[i], err = strconv.ParseUint(string(fields[at]), 10, 64); err != nil {
			return usage{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	return usage{n[2] * uint64(os.Getpagesize()), time.Duration(n[0]+n[1]) * time.Second / userHz}, nil
}
