// Package gate decides on one host whether the next call of an agent may be made: its account answers, a place is free,
// and the budget of the day covers it. It makes no calls and sends no messages: a refusal has the time to ask
// again.
//
// All of it is in one file, which is open only during a batch of requests. It holds a row for each call that runs, with
// the process that supervises it: a row whose process has ended takes no place, and what the call cost is read from its
// store. A file that is missing or damaged is made again from the calls of the stores. Costs that cannot be known then
// are at least what is known, and a budget in dollars waits until the stores have been read.
//
//	<state>/gate.db               0600; see rows.go
//	<state>/gate.db.damaged-N     a file that could not be read
package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
)

const (
	fileName = "gate.db"
	lockName = "gate.lock"
	damaged  = ".damaged-"
	version  = 1
	// lockTimeout is how long a request waits for the file, which other processes use too.
	lockTimeout = time.Minute
)

// Options are what a gate needs. A program that only reads needs none.
type Options struct {
	Disk   disk.Disk
	Now    func() time.Time // nil: time.Now
	Zone   *time.Location   // of days; nil: local time
	Worker process.Identity // this process, which makes calls
	PerDay Budget
	AtOnce config.AtOnce
	// opens a store by its URL without secrets
	Open func(ctx context.Context, url string) (*store.Store, error)
	// lists the stores of this host's runs, as Open gets them; nil: only those of calls
	Stores func() []string
	// reports whether the output of a call in its scratch directory shows that its provider answers; nil: it never does
	Answers func(dir, reply string) bool
}

// Gate is the gate of a host. It is safe for concurrent use, also by several processes.
type Gate struct {
	path, host string
	opt        Options

	mu    sync.Mutex
	queue []*request // of the next batch
	busy  bool       // a batch is in progress
}

// Open returns the gate of a host in its state directory. The file is created with the first call.
func Open(stateDir, host string, o Options) *Gate {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	return &Gate{path: filepath.Join(stateDir, fileName), host: host, opt: o}
}

// request is a part of a batch. It may be done twice, the second time in another file.
type request struct {
	do   func(*tx)
	done chan error
}

// update does a request in one transaction with all others that arrive while the file is in use.
func (g *Gate) update(ctx context.Context, do func(*tx)) error {
	r := &request{do, make(chan error, 1)}
	g.mu.Lock()
	g.queue = append(g.queue, r)
	idle := !g.busy
	g.busy = true
	g.mu.Unlock()
	if idle {
		go g.work()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// work does batches until no request is left.
func (g *Gate) work() {
	for {
		g.mu.Lock()
		batch := g.queue
		g.queue, g.busy = nil, len(batch) > 0
		g.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		err := g.batch(batch)
		for _, r := range batch {
			r.done <- err
		}
	}
}

// batch does requests in one transaction. A damaged file is moved aside first.
func (g *Gate) batch(all []*request) error {
	do := func(x *tx) {
		x.begin()
		for _, r := range all {
			if x.err == nil {
				r.do(x)
			}
		}
	}
	file, err := g.transact(false, do)
	if wrong := (*DamageError)(nil); errors.As(err, &wrong) {
		if err = g.moveAside(file); err == nil {
			_, err = g.transact(false, do)
		}
	}
	return err
}

// view reads the file. Without one, nothing is known.
func (g *Gate) view(do func(*tx)) error {
	_, err := g.transact(true, do)
	if errors.Is(err, fs.ErrNotExist) {
		x := &tx{g: g, now: g.opt.Now()}
		do(x)
		return x.err
	}
	return err
}

// DamageError reports a file that cannot be read. The next call makes it again.
type DamageError struct {
	Path  string
	Cause error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("read %s: it is damaged: %v; the next call moves it aside and makes it again from the stores", e.Path,
		e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// errClean ends a transaction that has changed nothing.
var errClean = errors.New("nothing has changed")

// transact opens the file for one transaction. What a damaged file makes the database do, including a fault of the
// mapped memory, is a DamageError.
func (g *Gate) transact(readOnly bool, do func(*tx)) (file fs.FileInfo, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var f *os.File
	defer func() {
		if p := recover(); p != nil {
			err = &DamageError{g.path, fmt.Errorf("%v", p)}
			// the mapped memory keeps the lock of a file that is closed
			if unlock := errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()); unlock != nil {
				err = unlock
			}
		}
	}()
	db, err := bbolt.Open(g.path, 0o600, &bbolt.Options{Timeout: lockTimeout, ReadOnly: readOnly, NoStatistics: true,
		OpenFile: func(path string, flag int, mode fs.FileMode) (_ *os.File, err error) {
			if f, err = os.OpenFile(path, flag, mode); err == nil {
				file, err = f.Stat()
			}
			if err == nil && readOnly && file.Size() == 0 { // another process is creating it
				disk.Close(f)
				return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
			}
			return f, err
		}})
	if err != nil {
		if path, no := (*fs.PathError)(nil), syscall.Errno(0); !errors.As(err, &path) && !errors.As(err, &no) &&
			!errors.Is(err, bbolterrors.ErrTimeout) {
			err = &DamageError{g.path, err}
		}
		return file, fmt.Errorf("open the gate of calls: %w", err)
	}
	in := func(b *bbolt.Tx) error {
		x := &tx{b: b, g: g, now: g.opt.Now()}
		if readOnly {
			x.known()
		}
		if do(x); x.err == nil && !x.dirty {
			return errClean
		}
		return x.err
	}
	if readOnly {
		err = db.View(in)
	} else {
		err = db.Update(in)
	}
	if errors.Is(err, errClean) {
		err = nil
	}
	err = errors.Join(err, db.Close())
	if now, gone := os.Stat(g.path); err == nil && (gone != nil || !os.SameFile(file, now)) { // it was removed meanwhile
		return g.transact(readOnly, do)
	}
	return file, err
}

// moveAside moves a damaged file, unless another process has.
func (g *Gate) moveAside(file fs.FileInfo) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	lock, err := g.opt.Disk.WaitLock(ctx, filepath.Join(filepath.Dir(g.path), lockName),
		disk.Self("gate of calls", g.opt.Now()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err := os.Stat(g.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(file, now) {
		return nil
	}
	if err != nil {
		return err
	}
	return g.opt.Disk.Rename(g.path, g.path+damaged+strconv.FormatInt(g.opt.Now().UnixMilli(), 10))
}

// Damaged lists the files that were moved aside since a time.
func (g *Gate) Damaged(since time.Time) (paths []string) {
	found, err := os.ReadDir(filepath.Dir(g.path))
	if err != nil {
		return nil // there is no state directory
	}
	for _, e := range found {
		at, is := strings.CutPrefix(e.Name(), fileName+damaged)
		ms, err := strconv.ParseInt(at, 10, 64)
		if is && err == nil && !time.UnixMilli(ms).Before(since) {
			paths = append(paths, filepath.Join(filepath.Dir(g.path), e.Name()))
		}
	}
	return paths
}
