package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/repo"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
)

// removable lists what a run has left, in the order in which it is removed: first what can refuse, last what the rest is found by.
func (o Operator) removable(ctx context.Context, r Removal, s removed, all []removed) (Removable, error) {
	p := Removable{
		RunID: s.claim.RunID, Pipeline: s.claim.Pipeline, Directory: s.dir.Root, Store: s.store, Standing: o.removedStands(ctx, r, s),
		Kept: []string{}, named: s.named,
	}
	o.mayRemove(&p, r, s)
	for _, step := range []func(context.Context, *Removable, Removal, removed, []removed) error{
		o.workflowParts, o.gitParts, o.scratchParts, o.environmentParts, o.storeParts, o.directoryParts, o.registryParts,
	} {
		if err := step(ctx, &p, r, s, all); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (o Operator) removedStands(ctx context.Context, r Removal, s removed) run.Standing {
	if r.Offline {
		return run.Stands(s.state.Status, run.LiveUnknown, "Temporal was not asked")
	}
	return o.Standing(ctx, s.seat(), s.state.Status)
}

// seat is the claim of where the run is at work.
func (s removed) seat() run.Claim {
	if !s.there {
		return s.claim
	}
	return s.dir.Seat(s.claim)
}

// mayRemove notes what speaks against the removal but for the run's own checkout.
func (o Operator) mayRemove(p *Removable, r Removal, s removed) {
	if host := s.seat().Host; host != "" && host != o.Host {
		p.refuse("its directory is on another host (%.8s): remove it there", host)
	}
	if s.there {
		if err := AtHome(o.Settings.StateDir, s.claim, s.dir); err != nil {
			p.Problems = append(p.Problems, err)
		}
	}
	st := p.Standing
	_, open := s.state.Asks()
	switch live := st.Liveness; {
	case live == run.LiveOpen && st.Recorded.Closed():
		p.refuse("it is %s, and its workflow is about to close: run the command again in a moment", st.Recorded)
	case live == run.LiveOpen:
		c := run.Conflict(st.Status, run.Remove, run.Terms{Undecided: open})
		p.Problems = append(p.Problems, &RefusedError{Verb: removeVerb, Why: fmt.Sprintf("it is %s. End it first: starter cancel %s", st.Status, p.RunID), Conflict: c})
	case live == run.LiveUnknown && !r.Offline:
		p.refuse("whether it is live is unknown (%s). Make that server reachable; or, of a run that is over, remove only what is on this host and in the store: --offline", st.Detail)
	case live == run.LiveUnknown && !st.Recorded.Closed() && !s.begun:
		p.refuse("it is recorded as %s, and without Temporal nobody can tell whether it is live: run the command without --offline", st.Recorded)
	}
}

// gitParts are the run's own checkout and branch, where it works on a git repository.
func (o Operator) gitParts(ctx context.Context, p *Removable, r Removal, s removed, all []removed) error {
	if s.work == nil || s.work.Kind != "git" {
		return nil
	}
	branch := s.work.Branch
	if branch == "" {
		branch = repo.BranchPrefix + p.RunID
	}
	g := gitRemoval{p: p, r: r, s: s, branch: branch, checkout: s.dir.Path(rundir.WorkspaceDir)}
	source, err := repo.Open(ctx, s.work.Source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g.withoutSource()
	case err != nil:
		return err
	}
	g.source = source
	var besides []string
	for _, other := range all {
		besides = append(besides, repo.BranchPrefix+other.claim.RunID)
	}
	if err := g.checkouts(ctx); err != nil {
		return err
	}
	return g.ofBranch(ctx, besides)
}

// gitRemoval is what is to be removed from the repository that a run has worked on.
type gitRemoval struct {
	p        *Removable
	r        Removal
	s        removed
	source   *repo.Repo
	branch   string
	checkout string
}

// withoutSource: the repository does not exist any more, and what the checkout holds cannot be compared with anything.
func (g gitRemoval) withoutSource() error {
	g.p.keep("branch %s: the repository %s is not found", g.branch, g.s.work.Source)
	if _, err := os.Lstat(g.checkout); err == nil && !g.r.Discard {
		g.p.refuse("the repository %s of its checkout is not found, so what only %s has is not known. Bring the repository back, or remove the run all the same: --discard",
			g.s.work.Source, g.checkout)
	}
	return nil
}

// checkouts finds where the branch is checked out: in the run's directory, or where that was.
func (g gitRemoval) checkouts(ctx context.Context) error {
	registered, err := g.source.Checkouts(ctx, g.branch)
	if err != nil {
		return err
	}
	mine := false
	for _, path := range registered {
		_, err := os.Lstat(path)
		gone := errors.Is(err, fs.ErrNotExist)
		own := samePath(path, g.checkout)
		mine = mine || own || gone
		if !own && !gone {
			if !g.r.KeepBranch {
				g.p.refuse("its branch %s is checked out at %s: switch to another branch there, or keep it: --keep-branch", g.branch, path)
			}
			continue
		}
		note := "git worktree of " + g.source.Root()
		if gone {
			note += "; its folder is gone"
		}
		g.p.part("checkout", path, Amount{}, note, func(ctx context.Context) error { return g.removeCheckout(ctx, path) })
	}
	dirt, err := repo.WorktreeDirt(ctx, g.checkout)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, repo.ErrNotOurs):
		g.p.refuse("%v: put back what the run had there, or remove it", err)
		return nil
	case err != nil:
		return err
	}
	if !mine {
		g.p.refuse("its checkout %s has another branch or commit checked out: git -C %s switch %s", g.checkout, g.checkout, g.branch)
	}
	if paths := dirt.Paths(); len(paths) > 0 && !g.r.Discard {
		g.p.refuse("its checkout %s has changes that are in no commit (%s). To keep them, commit them there and use --keep-branch; to lose them: --discard", g.checkout, few(paths))
	}
	return nil
}

// removeCheckout removes a checkout that has no changes, also none since it was listed.
func (g gitRemoval) removeCheckout(ctx context.Context, path string) error {
	dirt, err := repo.WorktreeDirt(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // its folder is gone, and git is told so
	case err != nil:
		return err
	case len(dirt.Paths()) > 0 && !g.r.Discard:
		return fmt.Errorf("remove checkout %s: it has changes that are in no commit (%s). To keep them, commit them there and use --keep-branch; to lose them: --discard", path, few(dirt.Paths()))
	}
	return g.source.RemoveWorktree(ctx, path, true)
}

// ofBranch is the branch itself, unless it stays.
func (g gitRemoval) ofBranch(ctx context.Context, besides []string) error {
	own, err := g.source.OwnWork(ctx, g.branch, besides...)
	if err != nil || own.At == "" {
		return err
	}
	where := g.branch + " in " + g.source.Root()
	if g.r.KeepBranch {
		g.p.keep("branch %s, at %.12s (--keep-branch)", where, own.At)
		return nil
	}
	delivered := g.delivered(ctx, own, besides)
	note := "nothing in it is lost"
	if n := len(own.Only); n > 0 {
		note = fmt.Sprintf("%d commits that nothing else leads to%s", n, delivered)
	}
	if len(own.Only) > 0 && delivered == "" && !g.r.Discard {
		g.p.refuse("its branch %s has commits that nothing else leads to (%s). To keep them, merge them (git -C %s merge %s) or use --keep-branch; to lose them: --discard",
			g.branch, few(own.Only), g.source.Root(), g.branch)
	}
	g.p.part("branch", where, Amount{}, note, func(ctx context.Context) error { return g.source.RemoveBranch(ctx, g.branch, own.At) })
	return nil
}

// delivered says that all the branch has come to was delivered as a commit that is still there; empty: it was not, or not as a commit: files in a checkout
// may have been changed or reset since.
func (g gitRemoval) delivered(ctx context.Context, own repo.OwnWork, besides []string) string {
	d := g.s.state.Delivery
	if d == nil || !d.Delivered || g.s.state.Commit != own.At || d.Commit == "" || !g.source.Holds(ctx, d.Commit, besides...) {
		return ""
	}
	return fmt.Sprintf("; what they come to was delivered to the %s %s", d.To, d.Target)
}

// samePath says whether two paths are one place, whatever links lead there.
func samePath(a, b string) bool {
	real := func(p string) string {
		if r, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			return filepath.Join(r, filepath.Base(p))
		}
		return p
	}
	return real(a) == real(b)
}

// scratchParts are what the run's calls have left where agents work.
func (o Operator) scratchParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	scratch := o.Settings.Scratch()
	dirs, err := activities.ScratchOf(scratch, p.RunID)
	if err != nil || len(dirs) == 0 {
		return err
	}
	var sum Amount
	for _, dir := range dirs {
		if err := measure(dir, &sum); err != nil {
			return err
		}
	}
	p.part("scratch", scratch, sum, fmt.Sprintf("of %d calls; what is still at work there is ended", len(dirs)), func(ctx context.Context) error {
		if err := activities.EndCalls(ctx, scratch, p.RunID); err != nil {
			return err
		}
		for _, dir := range dirs {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// measure adds up the files below a folder.
func measure(root string, sum *Amount) error {
	return filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			sum.Objects++
			sum.Bytes += fi.Size()
		}
		return err
	})
}

// storeParts is the note in the store that the run was removed: `store gc` then takes what only this run needs for garbage. Nothing else is removed there,
// since others may need it.
func (o Operator) storeParts(ctx context.Context, p *Removable, _ Removal, s removed, all []removed) error {
	if err := o.keptForOthers(p, all); err != nil {
		return err
	}
	blobs, err := store.Open(ctx, s.store)
	if err != nil {
		return err
	}
	defer blobs.Close()
	var n Amount
	for _, prefix := range []string{"calls/", "checkpoints/", "late/"} {
		names, err := blobs.List(ctx, prefix+p.RunID+"/")
		if err != nil {
			return err
		}
		n.Objects += len(names)
	}
	if s.begun {
		return nil
	}
	raw, err := json.Marshal(removalNote{Version: 1, Claim: s.claim, Directory: s.dir.Root, Workspace: s.work})
	if err != nil {
		return err
	}
	p.part("store", s.store, n, "calls, checkpoints and journal: released", func(ctx context.Context) error {
		blobs, err := store.Open(ctx, s.store)
		if err != nil {
			return err
		}
		defer blobs.Close()
		_, err = blobs.Create(ctx, removedPrefix+p.RunID, raw)
		return err
	})
	return nil
}

// keptForOthers says which runs come of this one: `store gc` keeps what they need as long as they are there.
func (o Operator) keptForOthers(p *Removable, all []removed) error {
	rows, _, err := Here(o.Settings.StateDir, o.Settings.RunRoot)
	if err != nil {
		return err
	}
	var of []string
	for _, row := range rows {
		too := slices.ContainsFunc(all, func(s removed) bool { return s.claim.RunID == row.RunID })
		if comes := row.Source == p.RunID || row.ThreadID == p.RunID; comes && !too && row.RunID != p.RunID {
			mode := row.Mode
			if mode == "" {
				mode = "of its lineage"
			}
			of = append(of, fmt.Sprintf("%s (%s)", row.RunID, strings.ReplaceAll(mode, "_", "-")))
		}
	}
	if slices.Sort(of); len(of) > 0 {
		p.keep("calls, checkpoints and journal in the store, as long as these runs need them: %s", strings.Join(of, ", "))
	}
	return nil
}

// directoryParts is the run directory, without what the run has not made.
func (o Operator) directoryParts(_ context.Context, p *Removable, _ Removal, s removed, _ []removed) error {
	if s.dir.Root == "" {
		return nil
	}
	if !s.there {
		if left, err := os.ReadDir(s.dir.Root); err == nil && len(left) == 0 {
			p.part("directory", s.dir.Root, Amount{}, "empty", func(context.Context) error { return s.dir.RemoveEmpty() })
		} else if err == nil {
			p.keep("%s: it has no %s of this run, so nothing in it is known to be the run's", s.dir.Root, rundir.ClaimFile)
		}
		return nil
	}
	c, err := s.dir.Contents()
	if err != nil {
		return err
	}
	for _, name := range c.Foreign {
		p.keep("%s: the run has not made it", s.dir.Path(name))
	}
	for _, name := range c.Archived {
		p.keep("%s: an earlier run of this directory, to be removed by itself", s.dir.Path(name))
	}
	if fi, err := os.Lstat(s.dir.Root); err == nil && fi.Mode().Type() == fs.ModeSymlink {
		p.keep("%s: a symbolic link; what it leads to is emptied", s.dir.Root)
	}
	note := ""
	if s.work != nil && s.work.Kind == "dir" {
		note = "with the copy of " + s.work.Source + " that the run worked on"
	}
	p.part("directory", s.dir.Root, Amount{c.Files, c.Bytes}, note, func(context.Context) error { return writing(s.dir.Remove(), s) })
	return nil
}

// writing says what to do about a directory that somebody writes to.
func writing(err error, s removed) error {
	var held *durable.ErrHeld
	if errors.As(err, &held) {
		return &RefusedError{Verb: removeVerb, Why: fmt.Sprintf("%s is being written by %s: wait for it to end", s.dir.Root, held.Owner)}
	}
	return err
}

// environmentParts is what the last start or resume has handed over to the run's calls.
func (o Operator) environmentParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	path, err := environ.Path(o.Settings.StateDir, p.RunID)
	if err == nil {
		_, err = os.Lstat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	p.part("environment", path, Amount{}, "variables handed over to its calls", func(context.Context) error { return environ.Remove(o.Settings.StateDir, p.RunID) })
	return nil
}

// registryParts is the entry by which this machine finds the run.
func (o Operator) registryParts(_ context.Context, p *Removable, _ Removal, _ removed, _ []removed) error {
	entry := filepath.Join(o.Settings.StateDir, "runs", p.RunID)
	if _, err := os.Lstat(entry); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	p.part("registry", entry, Amount{}, "the entry of `starter list`", func(context.Context) error {
		if err := os.Remove(entry); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return nil
}
