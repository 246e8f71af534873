package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// WithEnv returns the processes that started with name=value in their environment, which their children inherit.
// It excludes this process, zombies, and unreadable processes.
func WithEnv(name, value string) ([]Identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for processes with %s: %w", name, err)
	}
	var found []Identity
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !inEnviron(pid, name, value) {
			continue
		}
		id, err := Of(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if inEnviron(pid, name, value) && id.Alive() { // the pid was not reused meanwhile
			found = append(found, id)
		}
	}
	return found, nil
}

// inEnviron reports whether the environment of a pid contains name=value.
func inEnviron(pid int, name, value string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	want := []byte(name + "=" + value)
	for pair := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(pair, want) {
			return true
		}
	}
	return false
}

// HasEnv reports whether this process started with name=value in its environment.
func HasEnv(id Identity, name, value string) bool {
	return inEnviron(id.PID, name, value) && id.Alive()
}

// Children returns the children of this process, without zombies.
func Children() ([]Identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the children of process %d: %w", os.Getpid(), err)
	}
	var found []Identity
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if of, err := lookup(pid); err != nil || of.zombie || of.parent != os.Getpid() {
			continue // ended meanwhile, or no child
		}
		id, err := Of(pid)
		if err == nil {
			found = append(found, id)
		} else if !errors.Is(err, ErrGone) {
			return nil, err
		}
	}
	return found, nil
}

// StartedBelow reports whether a process that descends from another one has started within a time and still runs.
func StartedBelow(pid int, within time.Duration) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true // nothing is known
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return true
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	if err != nil {
		return true
	}
	const ticks = 100 // of a second, for programs
	all := map[int]entry{}
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			if of, err := lookup(id); err == nil && !of.zombie {
				all[id] = of
			}
		}
	}
	for id, of := range all {
		start, err := strconv.ParseFloat(of.start, 64)
		if err != nil || id == pid || seconds-start/ticks > within.Seconds() {
			continue
		}
		for up := of.parent; up > 1; up = all[up].parent {
			if up == pid {
				return true
			}
		}
	}
	return false
}
