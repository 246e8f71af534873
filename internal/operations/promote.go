package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// ActionPromote is the action of a promotion's delivery.completed.
const ActionPromote = "promote"

// Promotion names the target of a copied result.
type Promotion struct {
	To    string // a file or a folder
	Force bool   // replace other data there, which is kept beside it
	Now   time.Time
}

// Promoted is the place of a copied result.
type Promoted struct {
	RunID  string `json:"run_id"`
	Kind   string `json:"kind"` // artifact or tree
	Digest string `json:"sha256"`
	Path   string `json:"path"`
	Files  int    `json:"files"`
	Again  bool   `json:"again"`  // it existed already, and nothing was copied
	Before string `json:"before"` // new place of the former data; empty: there was none
}

// Promote copies the result of a completed run: its artifact to a file, or its workspace to a folder. The manifest of
// the result is first checked against journal and store. At any time the path has either the former data or the
// complete result. Repeating a promotion copies and records nothing. Other data at the path is refused unless Force
// is set.
func Promote(ctx context.Context, dir rundir.Dir, p Promotion) (Promoted, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Promoted{}, err
	}
	if err := dir.Known(); err != nil {
		return Promoted{}, err
	}
	if now, err := dir.Now(); err != nil {
		return Promoted{}, err
	} else if err := run.May(now.State.Status, run.Promote, run.Terms{}); err != nil { // before a store is asked for
		return Promoted{}, err
	}
	s, err := OpenStore(ctx, claim.Store)
	if err != nil {
		return Promoted{}, err
	}
	r, err := dir.Result(ctx, blobs.Of(s))
	if err != nil {
		return Promoted{}, err
	}
	path, err := destination(r, dir, p.To)
	if err != nil {
		return Promoted{}, err
	}
	c := &copying{dir: dir, store: s, result: r, path: path, force: p.Force, now: p.Now}
	c.made = Promoted{RunID: r.RunID, Kind: r.Kind, Digest: r.Digest, Path: path, Files: 1}
	err = dir.Promoting(ctx, p.Now, func() (run.DeliveryCompleted, error) { return c.copy(ctx) })
	return c.made, err
}

// copying runs one promotion.
type copying struct {
	dir    rundir.Dir
	store  *store.Store
	result rundir.Result
	path   string
	force  bool
	now    time.Time
	made   Promoted
}

func (c *copying) copy(ctx context.Context) (run.DeliveryCompleted, error) {
	do, to := c.file, "file"
	if c.result.Kind == rundir.ResultTree {
		do, to = c.tree, "folder"
	}
	if err := do(ctx); err != nil {
		return run.DeliveryCompleted{}, err
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{c.result.RunID, c.result.Digest, c.path}, "\n")))
	return run.DeliveryCompleted{
		ID: "promotion-" + hex.EncodeToString(sum[:6]), Action: ActionPromote, Delivered: true, To: to, Target: c.path,
		Files: c.made.Files, Result: c.result.Digest,
	}, nil
}

// destination returns the target without symbolic links. It is writable, in no run's directory, and contains none.
func destination(r rundir.Result, dir rundir.Dir, to string) (string, error) {
	path, err := filepath.Abs(to)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(path)
	if r.Kind == rundir.ResultArtifact && (strings.HasSuffix(to, string(filepath.Separator)) || err == nil &&
		fi.IsDir()) {
		path = filepath.Join(path, filepath.Base(r.Name))
	}
	if err := rundir.Writable(filepath.Dir(path)); err != nil {
		return "", err
	}
	if r.Kind == rundir.ResultTree {
		if err := rundir.Writable(path); err != nil {
			return "", err
		}
	}
	if path, err = resolved(path); err != nil {
		return "", err
	}
	root, err := resolved(dir.Root)
	if err != nil {
		return "", err
	}
	if contains(path, root) {
		return "", refusedTo("%s contains the run directory %s: choose another --to", path, root)
	}
	return path, nil
}

func refusedTo(format string, args ...any) error {
	return &RefusedError{Verb: string(run.Promote), Why: fmt.Sprintf(format, args...)}
}

// resolved returns an absolute path without symbolic links, as far as it exists.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return resolved(path) // it has been created meanwhile
	}
	if err == nil {
		return "", &rundir.TargetError{Path: path, Why: "it is a symbolic link that leads nowhere",
			Next: "Name another path"}
	}
	above, err := resolved(filepath.Dir(path))
	return filepath.Join(above, filepath.Base(path)), err
}

// contains reports whether a folder is or contains a path.
func contains(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// backup returns a free name beside the path for the former data.
func (c *copying) backup() string {
	name := c.path + ".before-" + c.now.UTC().Format("20060102-150405")
	for free, n := name, 2; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// file copies the artifact to the path.
func (c *copying) file(ctx context.Context) error {
	raw, err := c.dir.ResultBytes(ctx, blobs.Of(c.store), c.result)
	if err != nil {
		return err
	}
	if fi, err := os.Stat(c.path); err == nil && !fi.Mode().IsRegular() {
		return refusedTo("%s is not a file: choose another --to", c.path)
	}
	there, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = c.dir.Disk.Mkdir(filepath.Dir(c.path), 0o755)
	case err == nil && string(there) == string(raw):
		c.made.Again = true
		return c.dir.Disk.Settle(c.path) // its writer may have died before the sync
	case err == nil && !c.force:
		return refusedTo("%s exists and is not the result of run %s: choose another --to, or replace it with "+
			"--force, which keeps it beside the new one", c.path, c.result.RunID)
	case err == nil:
		c.made.Before = c.backup()
		_, err = c.dir.Disk.CreateExclusive(c.made.Before, there, 0o644)
	}
	if err != nil {
		return err
	}
	if err := c.dir.Disk.CleanTempsOf(c.path); err != nil {
		return err
	}
	return c.dir.Disk.WriteFile(c.path, raw, 0o644)
}
