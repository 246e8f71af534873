package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Carrying gives the processes in whose environment name=value was when their program began. Whatever such a process starts has it too, unless it
// takes it away. This process, zombies, and processes that cannot be looked at or end meanwhile are not among them.
func Carrying(name, value string) ([]Identity, error) {
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
		if inEnviron(pid, name, value) && id.Alive() { // the number was not given to a stranger between the two looks
			found = append(found, id)
		}
	}
	return found, nil
}

// inEnviron looks at the environment of whoever has this pid now.
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

// Carries says whether name=value was in the environment of this very process when its program began.
func Carries(id Identity, name, value string) bool {
	return inEnviron(id.PID, name, value) && id.Alive()
}

// Children gives the processes whose parent is this one. Zombies are not among them.
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
			continue // it has ended meanwhile, or is no child
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
