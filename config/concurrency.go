package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Concurrency is how much of each kind of work one worker does at once; Calls bounds agent processes. What is 0 follows from the host.
type Concurrency struct {
	Projections int `mapstructure:"projections"`
	Segments    int `mapstructure:"segments"`
	Checkouts   int `mapstructure:"checkouts"`
	Screenshots int `mapstructure:"screenshots"`
	Notices     int `mapstructure:"notices"`
	Prompts     int `mapstructure:"prompts"`
	Queues      int `mapstructure:"queues"`
}

// Bound is the bound of one kind of work.
type Bound struct {
	Setting string // its name in the settings
	Work    string // what it bounds
	Rule    string // how many, where the setting is 0
	Why     string
	value   *int
	byHost  func(Host) int
}

// Host is what the bounds follow from. 0: unknown, so it bounds nothing.
type Host struct {
	Cores  int
	Memory uint64 // bytes that this process may use
	Disk   uint64 // bytes free for scratch directories
}

const gib = 1 << 30

// bounds are all of them: the one table of what is done at once.
func (c *Concurrency) bounds() []Bound {
	return []Bound{
		{
			"concurrency.projections", "open a run directory, append to its journal, inspect its artifact", "4 per core",
			"each is short and waits for the disk", &c.Projections, func(h Host) int { return 4 * h.Cores },
		},
		{
			"concurrency.segments", "archive a segment of a journal, rebuild a directory", "1 per core",
			"each holds a journal in memory", &c.Segments, func(h Host) int { return h.Cores },
		},
		{
			"concurrency.checkouts", "check out, save, commit or deliver a whole tree", "1 per core and per GiB free in state_dir",
			"each hashes, reads and writes every file", &c.Checkouts, func(h Host) int { return min(h.Cores, per(h.Disk, gib)) },
		},
		{
			"concurrency.screenshots", "take screenshots of an artifact", "1 per core and per GiB of memory",
			"each starts a browser of several processes", &c.Screenshots, func(h Host) int { return min(h.Cores, per(h.Memory, gib)) },
		},
		{
			"concurrency.notices", "notify a receiver", "16",
			"each waits for the network with an open connection", &c.Notices, func(Host) int { return 16 },
		},
		{
			"concurrency.prompts", "compose a prompt, read a round or checkpoint; per queue", "4 per core",
			"each is short and reads the store", &c.Prompts, func(h Host) int { return 4 * h.Cores },
		},
		{
			"concurrency.queues", "poll queues of programs, browsers and stores that hosts share", "32",
			"each keeps a request to the server open", &c.Queues, func(Host) int { return 32 },
		},
	}
}

// Bounds lists the bounds of all kinds of work.
func Bounds() []Bound { return new(Concurrency).bounds() }

// On returns the bounds with those that follow from the host.
func (c Concurrency) On(h Host) Concurrency {
	for _, b := range c.bounds() {
		if *b.value == 0 {
			*b.value = max(b.byHost(h), 1)
		}
	}
	return c
}

// check names every bound that cannot be one.
func (c Concurrency) check() error {
	var errs []error
	for _, b := range c.bounds() {
		if *b.value < 0 {
			errs = append(errs, fmt.Errorf("settings: %s is %d; it must be at least 1, or 0 for %s", b.Setting, *b.value, b.Rule))
		}
	}
	return errors.Join(errs...)
}

// per is how many pieces of a size there are.
func per(all, size uint64) int {
	if all == 0 {
		return math.MaxInt
	}
	return int(all / size)
}

// ThisHost measures the host: cores and memory that this process may use, and the room where a folder is or will be.
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

// ruleOf is the rule that an unset setting follows; empty: none.
func ruleOf(setting string) string {
	for _, b := range Bounds() {
		if b.Setting == setting {
			return b.Rule
		}
	}
	return ""
}
