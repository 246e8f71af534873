package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// removed is a run to remove, as far as it is found. Its directory may be missing.
type removed struct {
	named string // so it is found again
	claim run.Claim
	dir   rundir.Dir // empty: not recorded
	there bool       // the directory exists and is the run's
	state run.State  // as recorded
	work  *run.Workspace
	store string // URL
	begun bool   // the store has a note of its removal: it was interrupted, or only the workflow is left
}

// removalNote is the store's note of a removed run. It is written before the directory is removed, and contains what
// the rest of the removal needs.
type removalNote struct {
	Version   int            `json:"version"`
	Claim     run.Claim      `json:"claim"`
	Directory string         `json:"directory"`
	Workspace *run.Workspace `json:"workspace,omitempty"`
}

// removed finds a run by its directory, which may be missing, or by its id.
func (o Operator) removed(ctx context.Context, what string) (removed, error) {
	s, err := o.locate(ctx, what)
	if err != nil {
		return s, err
	}
	s.store = cmp.Or(o.storeOf(s.claim), o.Settings.Store)
	blobs, err := OpenStore(ctx, s.store)
	if err != nil {
		return s, err
	}
	note, err := removalOf(ctx, blobs, s.claim.RunID)
	if err != nil {
		return s, err
	}
	if note != nil {
		s.begun, s.work = true, note.Workspace
	}
	if s.there {
		err = s.readDirectory()
	} else {
		err = s.readStore(ctx, blobs)
	}
	if err != nil || s.work != nil {
		return s, err
	}
	source, err := workspace.In(o.Settings.StateDir).Source(ctx, s.claim.RunID) // neither may have its start
	if source != "" {
		s.work = &run.Workspace{Kind: run.WorkspaceGit, Source: source}
	}
	return s, err
}

// locate finds the directory, or its last place.
func (o Operator) locate(ctx context.Context, what string) (removed, error) {
	d, err := Find(o.Settings.StateDir, what, false)
	if err == nil {
		return o.located(ctx, what, d)
	}
	id, was, rerr := rememberedAt(o.Settings.StateDir, what)
	if rerr != nil {
		return removed{}, rerr
	}
	if id != "" {
		return o.remembered(ctx, id, was)
	}
	var name *NameError
	if !errors.As(err, &name) || len(name.Found) > 0 {
		return removed{}, err
	}
	return o.elsewhere(ctx, what, err)
}

// located returns a run whose directory exists or is recorded.
func (o Operator) located(ctx context.Context, what string, d rundir.Dir) (removed, error) {
	claim, err := d.Claim()
	if fi, serr := os.Stat(what); serr != nil || !fi.IsDir() { // an id
		id, ierr := fullID(o.Settings.StateDir, what)
		if ierr != nil {
			return removed{}, ierr
		}
		if err != nil || claim.RunID != id {
			return o.remembered(ctx, id, d)
		}
	}
	return removed{named: d.Root, claim: claim, dir: d, there: true}, err
}

// rememberedAt returns the run recorded for a directory that is missing or contains no run.
func rememberedAt(stateDir, what string) (id string, d rundir.Dir, err error) {
	abs, err := filepath.Abs(what)
	if err != nil {
		return "", d, err
	}
	all, err := indexed(stateDir)
	if err != nil {
		return "", d, err
	}
	var found []string
	for run, dir := range all {
		if filepath.Clean(dir) == abs {
			found, d = append(found, run), rundir.At(dir)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return "", d, nil
	case 1:
		return found[0], d, nil
	}
	return "", d, &NameError{What: what, Found: found}
}

// remembered returns a run whose directory is not at its recorded place: it was deleted, or archived when another run
// started there.
func (o Operator) remembered(ctx context.Context, id string, was rundir.Dir) (removed, error) {
	archived, err := was.Archived()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return removed{}, err
	}
	for _, a := range archived {
		if claim, err := a.Claim(); err == nil && claim.RunID == id {
			return removed{named: id, claim: claim, dir: a, there: true}, nil
		}
	}
	s := removed{named: id, dir: was, claim: run.Claim{RunID: id, Host: o.Host, Store: o.Settings.Store}}
	claim, _, err := o.registered(ctx, id)
	if err == nil {
		s.claim = claim
	} else if !errors.Is(err, store.ErrMissing) {
		return s, err
	}
	return s, nil
}

// elsewhere returns a run that this machine has not recorded but the store or Temporal may know. missing: neither
// knows it.
func (o Operator) elsewhere(ctx context.Context, id string, missing error) (removed, error) {
	s := removed{named: id}
	if strings.ContainsFunc(id, func(r rune) bool { return r == '/' || r == '\\' || r == ' ' }) {
		return s, missing // a path
	}
	claim, dir, err := o.registered(ctx, id)
	switch {
	case err == nil:
		s.claim, s.dir = claim, rundir.At(dir)
		return s, nil
	case !errors.Is(err, store.ErrMissing):
		return s, err
	case o.Client == nil:
		return s, missing
	}
	d, err := o.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil { // even if the server does not answer: the name matches nothing that is known
		return s, missing
	}
	host, _ := field[string](d.GetWorkflowExecutionInfo().GetMemo().GetFields(), "host")
	// another host may have its directory
	if d.GetWorkflowExecutionInfo().GetType().GetName() != contract.PipelineWorkflow || host != o.Host {
		return s, missing
	}
	s.claim = run.Claim{RunID: id, Host: host, Namespace: o.Namespace, Store: o.Settings.Store, Embedded: o.Embedded}
	return s, nil
}

// registered reads the registration of a run in the store, with its directory at that time.
func (o Operator) registered(ctx context.Context, id string) (claim run.Claim, dir string, err error) {
	s, err := store.Open(ctx, o.Settings.Store)
	if err != nil {
		return claim, "", err
	}
	note, err := removalOf(ctx, s, id)
	if err != nil {
		return claim, "", err
	}
	if note != nil {
		return note.Claim, note.Directory, nil
	}
	r, err := registration(ctx, s, id)
	return r.Claim, r.Directory, err
}

// removalOf reads the store's note of a removed run; nil: none.
func removalOf(ctx context.Context, s *store.Store, id string) (*removalNote, error) {
	raw, err := s.ReadName(ctx, removedPrefix+id)
	if errors.Is(err, store.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var n removalNote
	if err := json.Unmarshal(raw, &n); err != nil {
		return nil, fmt.Errorf("read the note of the removal of run %s: %w", id, err)
	}
	return &n, nil
}

// readDirectory reads the status of the run and its checkout.
func (s *removed) readDirectory() error {
	now, err := s.dir.Now()
	if err != nil {
		return fmt.Errorf("read the status of run %s: %w", s.claim.RunID, err)
	}
	s.state = now.State
	if w := now.Meta.Workspace; w != nil {
		s.work = &run.Workspace{Kind: w.Kind, Source: w.Source, Branch: w.Branch}
		return nil
	}
	if start, err := s.dir.First(); err == nil && start.Workspace != nil {
		s.work = start.Workspace
	}
	return nil
}

// readStore reads the same from the checkpoints if the directory is missing.
func (s *removed) readStore(ctx context.Context, st *store.Store) error {
	names := blobs.Of(st)
	marks, err := rundir.Marks(ctx, names, s.claim.RunID)
	if err != nil || len(marks) == 0 {
		return err
	}
	if newest, err := rundir.LoadCheckpoint(ctx, names, s.claim.RunID, marks[len(marks)-1].ID); err == nil {
		s.state = newest.State
	}
	if first, err := rundir.LoadCheckpoint(ctx, names, s.claim.RunID, run.UnnamedID(1)); err == nil &&
		first.Start != nil && s.work == nil {
		s.work = first.Start.Workspace
	}
	return nil
}
