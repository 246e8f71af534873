package config

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Concurrency limits each kind of work of one worker. Settings.Calls limits agent processes.
type Concurrency struct {
	Projections int // open a run directory, append to its journal, inspect its artifact
	Segments    int // archive a segment of a journal, rebuild a directory
	Checkouts   int // check out, save, commit or deliver a whole tree
	Screenshots int // take screenshots of an artifact
	Notices     int // notify a receiver
	Prompts     int // compose a prompt, read a round or checkpoint; per queue
	Queues      int // poll queues of programs, browsers and stores that hosts share
	Runs        int // keep a run in memory; others are read again from their history
}

// Host has the measures from which limits are derived. 0: unknown, no limit.
type Host struct {
	Cores  int
	Memory uint64 // bytes available to this process
	Disk   uint64 // bytes free for scratch directories
}

const gib = 1 << 30

// Concurrency returns the limits of a worker on the host.
func (h Host) Concurrency() Concurrency {
	return Concurrency{
		Projections: 4 * h.Cores, // each is short and waits for the disk
		Segments:    h.Cores,     // each holds a journal in memory
		Checkouts:   max(1, min(h.Cores, per(h.Disk, gib))),
		Screenshots: max(1, min(h.Cores, per(h.Memory, gib))), // each starts a browser of several processes
		Notices:     16,                                       // each waits for the network with an open connection
		Prompts:     4 * h.Cores,                              // each is short and reads the store
		Queues:      32,                                       // each keeps a request to the server open
		Runs:        1000,                                     // each needs about 0.2 MB, also while it waits
	}
}

// per returns how often size fits into all; 0 means unknown.
func per(all, size uint64) int {
	if all == 0 {
		return math.MaxInt
	}
	return int(all / size)
}

// ThisHost measures the cores and the memory available to this process, and the free space of the file system of a
// folder, which need not exist.
func ThisHost(folder string) Host { return Host{runtime.GOMAXPROCS(0), memory(), free(folder)} }

func free(folder string) uint64 {
	for {
		var disk unix.Statfs_t
		err := unix.Statfs(folder, &disk)
		if err == nil {
			return disk.Bavail * uint64(disk.Bsize)
		}
		if above := filepath.Dir(folder); above != folder && errors.Is(err, os.ErrNotExist) {
			folder = above
			continue
		}
		return 0
	}
}
