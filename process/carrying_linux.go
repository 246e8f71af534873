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
		if err != nil || pid == os.Getpid() || !carries(pid, name, value) {
			continue
		}
		id, err := Of(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if carries(pid, name, value) && id.Alive() { // the number was not given to a stranger between the two looks
			found = append(found, id)
		}
	}
	return found, nil
}

// carries looks at the environment of whoever has this pid now.
func carries(pid int, name, value string) bool {
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
