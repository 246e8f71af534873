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

// Concurrency limits each kind of work of one worker. Settings.Calls limits agent processes. 0: derived from the
// host.
type Concurrency struct {
	Projections int `mapstructure:"projections"`
	Segments    int `mapstructure:"segments"`
	Checkouts   int `mapstructure:"checkouts"`
	Screenshots int `mapstructure:"screenshots"`
	Notices     int `mapstructure:"notices"`
	Prompts     int `mapstructure:"prompts"`
	Queues      int `mapstructure:"queues"`
	Runs        int `mapstructure:"runs"`
}

// Bound is the limit of one kind of work.
type Bound struct {
	Setting string // name in the settings
	Work    string // what it limits
	Rule    string // the limit if the setting is 0
	Why     string
	value   *int
	byHost  func(Host) int
}

// Host has the measures from which limits are derived. 0: unknown, no limit.
type Host struct {
	Cores  int
	Memory uint64 // bytes available to this process
	Disk   uint64 // bytes free for scratch directories
}

const gib = 1 << 30

// bounds returns the limit of every kind of work.
func (c *Concurrency) bounds() []Bound {
	return []Bound{
		{
			"concurrency.projections", "open a run directory, append to its journal, inspect its artifact",
			"4 per core",
			"each is short and waits for the disk", &c.Projections, func(h Host) int { return 4 * h.Cores },
		},
		{
			"concurrency.segments", "archive a segment of a journal, rebuild a directory", "1 per core",
			"each holds a journal in memory", &c.Segments, func(h Host) int { return h.Cores },
		},
		{
			"concurrency.checkouts", "check out, save, commit or deliver a whole tree",
			"1 per core and per GiB free in state_dir",
			"each hashes, reads and writes every file", &c.Checkouts,
			func(h Host) int { return min(h.Cores, per(h.Disk, gib)) },
		},
		{
			"concurrency.screenshots", "take screenshots of an artifact", "1 per core and per GiB of memory",
			"each starts a browser of several processes", &c.Screenshots, func(h Host) int {
				return min(h.Cores,
					per(h.Memory, gib))
			},
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
		{
			"concurrency.runs", "keep a run in memory; others are read again from their history", "1000",
			"each needs about 0.2 MB, also while it waits", &c.Runs, func(Host) int { return 1000 },
		},
	}
}

// Bounds lists the limits of all kinds of work.
func Bounds() []Bound { return new(Concurrency).bounds() }

// On returns the limits, with those that are 0 derived from the host.
func (c Concurrency) On(h Host) Concurrency {
	for _, b := range c.bounds() {
		if *b.value == 0 {
			*b.value = max(b.byHost(h), 1)
		}
	}
	return c
}

// check reports every invalid limit.
func (c Concurrency) check() error {
	var errs []error
	for _, b := range c.bounds() {
		if *b.value < 0 {
			errs = append(errs, fmt.Errorf("settings: %s is %d; it must be at least 1, or 0 for %s", b.Setting,
				*b.value, b.Rule))
		}
	}
	return errors.Join(errs...)
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

// ruleOf returns the rule of an unset setting; empty: none.
func ruleOf(setting string) string {
	for _, b := range Bounds() {
		if b.Setting == setting {
			return b.Rule
		}
	}
	return ""
}
