package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

const (
	folder  = "accounts"
	suffix  = ".json"
	version = 1
)

// How long others wait for the run that was leased the probe.
const (
	// StartWithin is how long it may take to make its call.
	StartWithin = 2 * time.Minute
	// AnswerWithin is how long its call may print nothing. Then the account counts as open.
	AnswerWithin = time.Minute
	// SelfAfter is how long after the reset a run makes its call without a lease.
	SelfAfter = 5 * time.Minute
)

// Shut is what a host knows of an account that a provider does not answer.
type Shut struct {
	Version int `json:"version"`
	Account
	Number int64         `json:"number"` // of the limit: later limits have greater numbers
	Kind   run.LimitKind `json:"kind"`
	Until  string        `json:"until"`
	Since  string        `json:"since"` // the first limit since it was open
	Count  int           `json:"count"` // limits since it was open
	Open   bool          `json:"open"`  // the provider answers again
	Probe  *Probe        `json:"probe,omitempty"`
}

// Probe is the call that is made first after a reset.
type Probe struct {
	Run  string `json:"run"`
	Call string `json:"call"`
	At   string `json:"at"`
}

// Host is the folder of the accounts of a host. It is safe for concurrent use, also by several processes.
type Host struct {
	Dir  string
	Disk disk.Disk
}

// At returns the accounts of a host in its state directory.
func At(stateDir string, disk disk.Disk) Host {
	return Host{Dir: filepath.Join(stateDir, folder), Disk: disk}
}

var validID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// Caller is a call that wants to be made.
type Caller struct {
	Run, Call string
	Number    int64 // of the limit whose probe was leased to the run; 0: none; contract.ProbeNow: an operator asks
}

// Ask reports whether a call may be made: nil, or what it waits for. probe is set if the call is the first one after
// the reset. A healthy account costs one read.
func (h Host) Ask(ctx context.Context, id string, c Caller, now time.Time) (shut *Shut, probe bool, err error) {
	if s, err := h.read(id); err != nil || s == nil || s.Open {
		return nil, false, err
	}
	err = h.locked(ctx, id, func(s *Shut) (*Shut, error) {
		if s == nil || s.Open {
			return nil, nil
		}
		if probe = s.allows(c, now); !probe {
			shut = s
			return nil, nil
		}
		if s.Probe != nil && s.Probe.Call == c.Call {
			return nil, nil // it is delivered again
		}
		s.Probe = &Probe{Run: c.Run, Call: c.Call, At: run.Time(now)}
		return s, nil
	})
	return shut, probe, err
}

// allows reports whether a call is the probe.
func (s *Shut) allows(c Caller, now time.Time) bool {
	if c.Number == contract.ProbeNow {
		return true
	}
	until, err := time.Parse(run.TimeFormat, s.Until)
	if err != nil || now.Before(until) {
		return false
	}
	if s.Probe != nil && s.Probe.Call == c.Call {
		return true
	}
	if c.Number != s.Number && now.Before(until.Add(SelfAfter)) {
		return false
	}
	if s.Probe == nil {
		return true
	}
	at, err := time.Parse(run.TimeFormat, s.Probe.At)
	return err != nil || !now.Before(at.Add(StartWithin+AnswerWithin))
}

// Limit is a limit that a call met.
type Limit struct {
	Kind  run.LimitKind
	Until time.Time     // zero: unknown
	After time.Duration // from a known reset to the first call
	Call  string        // that met it
	// how long to wait after a number of limits whose reset is unknown
	Wait func(count int) time.Duration
}

// Close records a limit of an account, and returns what its calls wait for. Calls of the same limit share it.
func (h Host) Close(ctx context.Context, a Account, l Limit, now time.Time) (shut Shut, err error) {
	err = h.locked(ctx, a.ID, func(s *Shut) (*Shut, error) {
		if s == nil || s.Open {
			s = &Shut{Version: version, Account: a, Since: run.Time(now), Number: numberOf(s)}
		}
		until, err := time.Parse(run.TimeFormat, s.Until)
		if fresh := err != nil || !now.Before(until); fresh {
			s.Number, s.Count, s.Probe = max(s.Number+1, now.UnixMilli()), s.Count+1, nil
			until = time.Time{}
		}
		reset := l.Until
		if !reset.IsZero() {
			reset = reset.Add(l.After)
		} else if until.IsZero() {
			reset = now.Add(l.Wait(s.Count))
		}
		if reset.After(until) {
			until = reset
		}
		if s.Probe != nil && s.Probe.Call == l.Call {
			s.Probe = nil
		}
		s.Kind, s.Until = l.Kind, run.Time(until)
		shut = *s
		return s, nil
	})
	return shut, err
}

func numberOf(s *Shut) int64 {
	if s == nil {
		return 0
	}
	return s.Number
}

// Opened records that the provider answered a call. It returns the limit that has ended, or nil if the call was not
// the probe of one.
func (h Host) Opened(ctx context.Context, id, call string) (ended *Shut, err error) {
	if s, err := h.read(id); err != nil || s == nil || s.Open {
		return nil, err
	}
	err = h.locked(ctx, id, func(s *Shut) (*Shut, error) {
		if s == nil || s.Open || s.Probe == nil || s.Probe.Call != call {
			return nil, nil
		}
		s.Open, s.Probe, s.Count = true, nil, 0
		ended = s
		return s, nil
	})
	return ended, err
}

// Release ends the probe of a call that was not answered, and returns its limit; nil: the call is not a probe.
func (h Host) Release(ctx context.Context, id, call string) (left *Shut, err error) {
	if s, err := h.read(id); err != nil || s == nil || s.Probe == nil || s.Probe.Call != call {
		return nil, err
	}
	err = h.locked(ctx, id, func(s *Shut) (*Shut, error) {
		if s == nil || s.Probe == nil || s.Probe.Call != call {
			return nil, nil
		}
		s.Probe, left = nil, s
		return s, nil
	})
	return left, err
}

// Read returns what is known of an account, or nil.
func (h Host) Read(id string) (*Shut, error) { return h.read(id) }

// Probes returns the accounts whose first call after a reset is a call.
func (h Host) Probes(call string) (ids []string) {
	h.each(func(id string, s *Shut) {
		if s.Probe != nil && s.Probe.Call == call {
			ids = append(ids, id)
		}
	})
	return ids
}

// InForce lists the accounts that their providers do not answer, as far as it is known.
func (h Host) InForce() (all []Shut) {
	h.each(func(_ string, s *Shut) {
		if !s.Open {
			all = append(all, *s)
		}
	})
	return all
}

// each visits what is known of each account and can be read.
func (h Host) each(visit func(id string, s *Shut)) {
	entries, err := os.ReadDir(h.Dir)
	if err != nil {
		return // no provider was ever shut
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || !validID.MatchString(id) {
			continue
		}
		if s, err := h.read(id); err == nil && s != nil {
			visit(id, s)
		}
	}
}

// locked replaces the file of an account by what do returns; nil: it stays.
func (h Host) locked(ctx context.Context, id string, do func(*Shut) (*Shut, error)) (err error) {
	if !validID.MatchString(id) {
		return fmt.Errorf("read the account %q: its id must have 16 hex digits", id)
	}
	if err := h.Disk.Mkdir(h.Dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lock, err := h.Disk.WaitLock(ctx, filepath.Join(h.Dir, "lock"), disk.Self("accounts", time.Now()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	s, err := h.read(id)
	if err != nil {
		return err
	}
	if s, err = do(s); s == nil || err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return h.Disk.WriteFile(h.path(id), append(data, '\n'), 0o600)
}

func (h Host) path(id string) string { return filepath.Join(h.Dir, id+suffix) }

// read returns what is known of an account, or nil. A damaged file is moved away: the next call finds out.
func (h Host) read(id string) (*Shut, error) {
	data, err := os.ReadFile(h.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Shut
	err = json.Unmarshal(data, &s)
	if err == nil && s.Version > version {
		return nil, fmt.Errorf("read the account %s: a later version of Passbook wrote %s", id, h.path(id))
	}
	if _, wrong := time.Parse(run.TimeFormat, s.Until); err != nil || wrong != nil {
		return nil, h.Disk.Rename(h.path(id), fmt.Sprintf("%s.damaged-%d", h.path(id), time.Now().UnixMilli()))
	}
	return &s, nil
}
