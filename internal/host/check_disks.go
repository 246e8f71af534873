package host

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/rundir"
)

// Limits of free space, in bytes.
const (
	lowSpace = 1 << 30
	noSpace  = 64 << 20
)

// place is a folder that a run writes to.
type place struct {
	name, path string
	variable   string // the variable that sets it; empty: the run determines it
}

// fix adds the setting of a place to the first fix.
func (p place) fix(first string) string {
	if p.variable == "" {
		return first
	}
	return first + ", or set " + p.variable + " to a folder on another file system"
}

// disks checks the file systems that are written to: those of the named run, or those of the settings and of every
// open run.
func (e *examiner) disks(ctx context.Context) {
	e.folder(place{"state", e.Settings.StateDir, "PASSBOOK_STATE_DIR"})
	e.format()
	e.folder(place{"temp", os.TempDir(), "TMPDIR"})
	if e.Run != nil {
		e.disksOf(ctx, *e.Run)
		return
	}
	e.folder(place{"run root", e.Settings.RunRoot, "PASSBOOK_RUN_ROOT"})
	e.store(ctx, e.Settings.Store, "PASSBOOK_STORE")
	dirs, err := e.dirs()
	if err != nil {
		return // runs reports it
	}
	for _, d := range dirs {
		if on, err := volume.Of(d.Root); err != nil || !e.mounts[on.Mount] {
			e.folder(place{name: "run directory", path: d.Root})
		}
	}
}

// disksOf checks the folders that a run writes to, as its run.json records them.
func (e *examiner) disksOf(ctx context.Context, d rundir.Dir) {
	e.folder(place{name: "run directory", path: d.Root})
	claim, err := d.Claim()
	if err != nil {
		return // runs reports it
	}
	claim = d.CurrentClaim(claim)
	if claim.Host != "" && e.host != "" && claim.Host != e.host {
		e.add(Unchecked, "disk", "host",
			"run doctor on that host, or set PASSBOOK_STATE_DIR to the run's state directory",
			"%s is written by host %s, and this state directory (%s) is that of host %s: the run's own state "+
				"directory and store are not checked", d.Root, claim.Host,
			e.Settings.StateDir, e.host)
		return
	}
	if claim.Store != "" {
		e.store(ctx, claim.Store, "")
	}
}

// store checks the folder of a store, or that its bucket answers.
func (e *examiner) store(ctx context.Context, address, variable string) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
		e.folder(place{"store", filepath.FromSlash(u.Path), variable})
		return
	}
	e.bucket(ctx, address)
}

// folder checks that a folder can be written or created, and has free space. Nothing is written.
func (e *examiner) folder(p place) {
	there, err := existing(p.path)
	if err != nil {
		fix := p.fix("check " + e.typed("config"))
		if p.variable != "" {
			fix = "check " + p.variable + ": " + e.typed("config")
		}
		e.add(Problem, "disk", p.name, fix, "%v", err)
		return
	}
	on, unknown := volume.Of(there)
	if unknown == nil {
		e.mounts[on.Mount] = true
	}
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		where := there
		if unknown == nil {
			where += " on " + on.String()
		}
		e.add(Problem, "disk", p.name, p.fix("make "+there+" writable"), "%s cannot be written: %v", where, err)
		return
	}
	if unknown != nil {
		e.add(Unchecked, "disk", p.name, "", "%s is writable; its free space is not known (%v)", p.path, unknown)
		return
	}
	e.freeSpace(p, on)
}

// freeSpace checks the free space of a place.
func (e *examiner) freeSpace(p place, on volume.Info) {
	fix := p.fix("free space in " + on.Mount)
	switch {
	case on.Full() || on.Free < noSpace:
		e.add(Problem, "disk", p.name, fix, "%s: the disk is full (%s); runs pause there", p.path, on)
	case on.Free < lowSpace:
		e.add(Warning, "disk", p.name, fix, "%s: little space is left (%s)", p.path, on)
	default:
		e.ok("disk", p.name, "%s is writable (%s)", p.path, on)
	}
}

// existing returns the folder itself, or the closest existing one above it.
func existing(path string) (string, error) {
	for {
		fi, err := os.Stat(path)
		switch {
		case err == nil && fi.IsDir():
			return path, nil
		case err == nil:
			return "", &fs.PathError{Op: "use", Path: path, Err: errors.New("it is a file, not a folder")}
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		up := filepath.Dir(path)
		if up == path {
			return "", err
		}
		path = up
	}
}

// bucket checks that a bucket answers.
func (e *examiner) bucket(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	shown := config.Masked(address)
	s, err := operations.OpenStore(ctx, address)
	if err == nil {
		_, err = s.Has(ctx, store.DigestOf([]byte("doctor")))
	}
	if err != nil {
		e.add(Problem, "disk", "store", "check PASSBOOK_STORE and the bucket's credentials: "+e.typed("config"),
			"%s cannot be read: %s", shown,
			strings.ReplaceAll(err.Error(), address, shown))
		return
	}
	e.ok("disk", "store", "%s answers (reading; writing is not tried)", shown)
}
