package host

import (
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
)

// Capabilities are what a worker found on its host, apart from its own queues.
type Capabilities struct {
	Process  process.Identity `json:"process"` // of the worker
	At       time.Time        `json:"at"`      // of the last change
	Programs []Capability     `json:"programs"`
	Stores   []Capability     `json:"stores"` // shared by hosts
	Browser  Capability       `json:"browser"`
	Queues   []string         `json:"queues"`   // polled for runs on those stores
	LeftOut  []string         `json:"left_out"` // exceeding what one worker polls
}

// Capability is one thing that a host has or lacks.
type Capability struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`
	Missing string `json:"missing,omitempty"` // why it cannot be used; empty: usable
}

const capabilitiesFile = "capabilities.json"

// AnnounceCapabilities records what a worker found on its host.
func AnnounceCapabilities(stateDir string, c Capabilities) error {
	dir := filepath.Join(stateDir, workerDir)
	if err := (disk.Disk{}).Mkdir(dir, 0o700); err != nil {
		return err
	}
	return save(filepath.Join(dir, capabilitiesFile), c)
}

// ReadCapabilities returns what the last worker of a state directory recorded; zero: nothing.
func ReadCapabilities(stateDir string) (c Capabilities, err error) {
	err = load(filepath.Join(stateDir, workerDir, capabilitiesFile), &c)
	return c, err
}
