package local

import (
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/process"
)

// Capabilities are what a worker found on its host, beside its bound queues.
type Capabilities struct {
	Process  process.Identity `json:"process"` // of the worker
	At       time.Time        `json:"at"`      // of the last change
	Programs []Capability     `json:"programs"`
	Stores   []Capability     `json:"stores"` // that hosts share
	Browser  Capability       `json:"browser"`
	Queues   []string         `json:"queues"`   // polled for runs on those stores
	LeftOut  []string         `json:"left_out"` // over concurrency.queues
}

// Capability is one thing that a host has, or lacks.
type Capability struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`
	Missing string `json:"missing,omitempty"` // why it cannot be used; empty: it can
}

const capabilitiesFile = "capabilities.json"

// AnnounceCapabilities is called by a worker when what it finds has changed.
func AnnounceCapabilities(stateDir string, c Capabilities) error {
	dir := filepath.Join(stateDir, workerDir)
	if err := (durable.Disk{}).Mkdir(dir, 0o700); err != nil {
		return err
	}
	return save(filepath.Join(dir, capabilitiesFile), c)
}

// ReadCapabilities gives what the last worker of a state directory announced; zero: none did.
func ReadCapabilities(stateDir string) (c Capabilities, err error) {
	err = load(filepath.Join(stateDir, workerDir, capabilitiesFile), &c)
	return c, err
}
