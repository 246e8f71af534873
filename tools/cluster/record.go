package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// record identifies a started process, so that it is never confused with another process that has the same ID later.
type record struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // start time as reported by the system; only compared
}

// identify asks the system about a process; ok is false if it does not exist or has ended.
func identify(pid int) (started string, ok bool) {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, after, _ := strings.Cut(string(stat), ") ") // the name before it may contain anything
		fields := strings.Fields(after)
		if len(fields) < 20 || fields[0] == "Z" {
			return "", false
		}
		return fields[19], true
	}
	output, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	started = strings.TrimSpace(string(output))
	return started, err == nil && started != ""
}

func (r record) alive() bool {
	started, ok := identify(r.PID)
	return ok && started == r.Started
}

// signal sends a signal, unless the process has ended.
func (r record) signal(sig syscall.Signal) error {
	if !r.alive() {
		return nil
	}
	if err := syscall.Kill(r.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to %s (pid %d): %w", sig, r.Name, r.PID, err)
	}
	return nil
}

func (s settings) recordFile() string { return filepath.Join(s.Dir, "processes.json") }

// records are the processes that were started and not stopped, in start order. Some may have ended.
func (s settings) records() ([]record, error) {
	data, err := os.ReadFile(s.recordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was started: %w", err)
	}
	var out []record
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.recordFile(), err)
	}
	return out, nil
}

// keep replaces the records.
func (s settings) keep(all []record) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	fresh := s.recordFile() + ".new"
	if err := os.WriteFile(fresh, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, s.recordFile())
}
