package config

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limitOfGroup is the memory limit of a container, or of the service that this process is in.
const limitOfGroup = "/sys/fs/cgroup/memory.max"

func memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	all := uint64(info.Totalram) * uint64(info.Unit)
	raw, err := os.ReadFile(limitOfGroup)
	if limit, perr := strconv.ParseUint(strings.TrimSpace(string(raw)), 10,
		64); err == nil && perr == nil { // else there is none: "max"
		return min(all, limit)
	}
	return all
}
