package disk

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Owner describes the holder of a lock, for people. The kernel's lock decides, which a dead process does not hold.
type Owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Boot  string    `json:"boot,omitempty"` // the kernel's boot id; empty: the system has none
	Since time.Time `json:"since"`
	What  string    `json:"what"` // its task: "worker", "rebuild r-1"
}

// Self returns this process as an owner.
func Self(what string, now time.Time) Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil // this system has none
	}
	return Owner{
		PID:   os.Getpid(),
		Host:  host,
		Boot:  strings.TrimSpace(string(boot)),
		Since: now.UTC().Truncate(time.Millisecond),
		What:  what,
	}
}

func (o Owner) String() string {
	if o.PID == 0 {
		return "a process that left no record"
	}
	return fmt.Sprintf("%s (pid %d on %s, since %s)", o.What, o.PID, o.Host, o.Since.Format(time.RFC3339))
}

// readOwner reads the record of a lock file. It is the zero Owner if there is none or if it is being written. It does
// not show whether the lock is held.
func (d Disk) readOwner(path string) Owner {
	var o Owner
	data, err := d.readFile(path)
	if err != nil || json.Unmarshal(data, &o) != nil {
		return Owner{}
	}
	return o
}
