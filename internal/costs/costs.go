// Package costs is the ledger of one host: what its calls reserved of the budgets of a day, and what they cost.
//
// Each call of an agent is reserved before it is claimed and settled afterwards, once for each delivery, from what the
// store has of it. A call that ends while no program looks is settled by the next one that reads the ledger. The
// ledger can be restored from the stores: it decides nothing that they do not show. It covers the calls of its host
// only, and makes none.
//
//	<state>/costs/2026-11-25.jsonl    the calls that were reserved on that day in UTC, 0600
//	<state>/costs/waiting.json        the calls that wait for their turn, see queue.go
//	<state>/costs/lock                held while the ledger is written
//	<state>/costs/damaged/            files that could not be read completely
package costs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
)

const (
	folder  = "costs"
	suffix  = ".jsonl"
	damaged = "damaged"
	version = 1
)

// Ledger is the ledger of a host. It is safe for concurrent use, also by several processes.
type Ledger struct {
	dir  string
	host string
	opt  Options

	mu   sync.Mutex
	days map[string]*day // by name of the file
}

// Options are what a ledger needs.
type Options struct {
	Disk disk.Disk
	Now  func() time.Time // nil: time.Now
	Zone *time.Location   // of days; nil: local time
	// this process, which reserves calls: it releases only what it was the last to reserve
	Worker process.Identity
	// opens a store by its URL
	Open func(ctx context.Context, url string) (*store.Store, error)
}

// Open returns the ledger of a host in its state directory. Nothing is created before the first call is reserved.
func Open(stateDir, host string, o Options) *Ledger {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	return &Ledger{dir: filepath.Join(stateDir, folder), host: host, opt: o, days: map[string]*day{}}
}

// locked runs do while no other program writes the ledger.
func (l *Ledger) locked(ctx context.Context, do func() error) (err error) {
	if err := l.opt.Disk.Mkdir(l.dir, 0o700); err != nil {
		return fmt.Errorf("open the ledger of costs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lock, err := l.opt.Disk.WaitLock(ctx, filepath.Join(l.dir, "lock"), disk.Self("ledger of costs", l.opt.Now()))
	if err != nil {
		return fmt.Errorf("open the ledger of costs: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	return do()
}

// names returns the names of the days since a time that have a file or were read before, in order.
func (l *Ledger) names(since time.Time) ([]string, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the ledger of costs: %w", err)
	}
	out := slices.Collect(maps.Keys(l.days))
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if _, err := time.Parse(time.DateOnly, name); ok && err == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return name < nameOf(since) }), nil
}

func nameOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (l *Ledger) path(name string) string { return filepath.Join(l.dir, name+suffix) }

// midnight returns the begin of the day of t in the ledger's time zone, moved by a number of days.
func (l *Ledger) midnight(t time.Time, move int) time.Time {
	y, m, d := t.In(l.opt.Zone).Date()
	return time.Date(y, m, d+move, 0, 0, 0, 0, l.opt.Zone)
}

// records returns the calls that were reserved since a time, in order.
func (l *Ledger) records(since time.Time) ([]*record, error) {
	names, err := l.names(since)
	if err != nil {
		return nil, err
	}
	var out []*record
	for _, name := range names {
		d, err := l.load(name)
		if err != nil {
			return nil, err
		}
		for _, r := range d.records {
			if !r.At.Before(since) {
				out = append(out, r)
			}
		}
	}
	return out, nil
}
