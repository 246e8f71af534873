package sandbox

import (
	"sync"
	"time"
)

// Program is the program that creates sandboxes.
const Program = "bwrap"

// Host is what a host offers.
type Host struct {
	Bwrap     string // path; empty: not installed
	Version   string // "0.8.0"
	Users     bool   // processes without privileges can create user namespaces
	Landlock  int    // version of the interface; 0: none
	Isolation bool   // a separate network is possible
	Pasta     string // path; empty: programs that know no proxy have no separate network

	Private []string // what only root can read in /etc, if this process is root's

	Problem string // why no sandbox is possible; empty: it is
	Fix     string // what to do
}

const (
	keepOffer   = time.Minute
	keepProblem = 5 * time.Second
)

// Examiner examines the host, and again when the result is old. The zero value is ready.
type Examiner struct {
	mu   sync.Mutex
	host Host
	at   time.Time
}

// Host returns what the host offers.
func (e *Examiner) Host() Host {
	e.mu.Lock()
	defer e.mu.Unlock()
	keep := keepOffer
	if e.host.Problem != "" {
		keep = keepProblem
	}
	if e.at.IsZero() || time.Since(e.at) > keep {
		e.host, e.at = Examine(), time.Now()
	}
	return e.host
}
