package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// callFolder is the workspace in which a call works.
type callFolder struct {
	of       contract.Tree
	rules    tree.Rules // of the plan
	pictures []string   // that the call gets in the folder, and that are not part of the tree
	keep     bool       // the agent's changes are its result
	setup    []string   // commands
	env      []string   // names of variables that they may read besides the usual ones
	fresh    bool       // it is made for the call, and removed after it
}

// folderOf returns how a call uses the workspace, or nil if the run has none.
func folderOf(plan *pipeline.Plan, role pipeline.Role, in contract.PassInput) *callFolder {
	if in.Tree == nil {
		return nil
	}
	c := &callFolder{of: *in.Tree, rules: workspace.RulesOf(plan), keep: role.Gives == pipeline.GivesChanges,
		fresh: in.Slot == contract.FreshSlot}
	if plan.Workspace != nil {
		c.setup, c.env = plan.Workspace.Setup, plan.Workspace.Env
	}
	return c
}

// folderPath returns the folder of a call.
func (a *Activities) folderPath(in contract.PassInput) string {
	return a.folders.Path(in.Tree.Workspace.Source, in.RunID, in.Slot)
}

// enterFolder makes the workspace ready for a call of a supervisor: it holds the accepted tree, or what an interrupted
// call left that is continued, and what git ignores. After a call that was killed, timed out or lost it is made again, since
// ignored files may be half written.
func (a *Activities) enterFolder(ctx context.Context, st *runningCall, in contract.PassInput,
	by process.Identity) (err error) {
	free, err := a.slots.checkouts.acquire(ctx)
	if err != nil {
		return fmt.Errorf("prepare the workspace: %w", err)
	}
	defer free()
	w, err := a.folders.Lock(ctx, st.work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if err := endHolder(ctx, w, in.Call); err != nil {
		return err
	}
	doubtful, err := w.Hold(workspace.Holder{Call: in.Call, Dir: st.dir, Supervisor: by, Keeps: st.folder.keep})
	if err == nil && st.folder.fresh {
		err = w.Discard()
	}
	if err != nil {
		return err
	}
	if st.session != nil && st.session.Late { // the same attempt
		doubtful = false
	}
	rules, err := a.treeRules(ctx, st)
	if err != nil {
		return err
	}
	t := st.folder.of.Tree
	if s := st.session; s != nil && s.Tree != nil {
		t = *s.Tree
	}
	if err := a.fillFolder(ctx, st, w, rules, t, doubtful); err != nil {
		return fmt.Errorf("prepare the workspace: %w", err)
	}
	if st.objects, err = workspace.RemakeGit(ctx, a.stateDir(), workspace.Current(st.folder.of), w.Dir); err != nil {
		return fmt.Errorf("prepare the workspace: %w", err)
	}
	return a.setUpFolder(ctx, st, in, w, rules, t)
}

// endHolder ends another call that still works in a folder: its run has gone back, and nothing waits for its answer.
func endHolder(ctx context.Context, w *workspace.Folder, call string) error {
	h := w.Holder()
	if h == nil || h.Call == call || !h.Supervisor.Alive() {
		return nil
	}
	if err := agent.Join(h.Dir, h.Supervisor).Kill("its run has gone back, and another call needs the workspace"); err != nil {
		return fmt.Errorf("end call %s, which works in %s: %w", h.Call, w.Dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := h.Supervisor.AwaitEnd(ctx); err != nil {
		return fmt.Errorf("end call %s, which works in %s: %w", h.Call, w.Dir, err)
	}
	return nil
}

// fillFolder restores the tree that a call begins with.
func (a *Activities) fillFolder(ctx context.Context, st *runningCall, w *workspace.Folder, rules tree.Rules, t run.Blob,
	doubtful bool) error {
	var kept []string
	keep := func(path string) error {
		to, err := a.keepEdit(st.root(), w.Dir, path)
		kept = append(kept, path+" (now "+to+")")
		return err
	}
	restore := w.Restore
	if doubtful || w.New() {
		restore = w.Remake
	}
	if err := restore(ctx, st.l.Store, t, rules, keep); err != nil || len(kept) == 0 {
		return err
	}
	message := keptMessage(kept)
	if doubtful {
		message = lostMessage(kept)
	}
	return disk.WriteFile(filepath.Join(st.dir, keptFile), []byte(message))
}

// keptFile in the directory of a delivery is a message about files of an operator that were in the way.
const keptFile = "kept"

// root returns the run of a call.
func (st *runningCall) root() string {
	root, _, _ := strings.Cut(st.l.Call, "/")
	return root
}

// keepEdit copies a file of an operator from the workspace into the directory of the run; on a host without it, beside
// the workspace.
func (a *Activities) keepEdit(runID, folder, path string) (string, error) {
	if dir := a.recordedDir(runID); dir != "" {
		return a.open(dir).KeepFile(folder, path)
	}
	beside := a.open(folder + ".edits")
	to, err := beside.KeepFile(folder, path)
	return beside.Path(to), err
}

// treeRules returns what belongs to the tree that a call leaves: decided by the tree that it got.
func (a *Activities) treeRules(ctx context.Context, st *runningCall) (tree.Rules, error) {
	c := st.folder
	rules, err := a.folders.WithGit(ctx, st.l.Store, c.rules, workspace.Current(c.of))
	rules.Paths = slices.DeleteFunc(slices.Clone(c.pictures), func(p string) bool {
		return slices.Contains(rules.Tracked, p)
	})
	return rules, err
}

// leaveFolder stores what a call left in the workspace, if that is its result or a session continues with it. A folder
// that can never be stored is an answer too: it was paid for.
func (a *Activities) leaveFolder(ctx context.Context, st *runningCall) (saved tree.Saved, problem string, err error) {
	problem, err = calls.CheckWorkDir(st.work)
	if errors.Is(err, fs.ErrNotExist) {
		problem, err = "the working directory was removed", nil
	}
	if problem != "" || err != nil {
		return saved, problem, err
	}
	free, err := a.slots.checkouts.acquire(ctx)
	if err != nil {
		return saved, "", err
	}
	defer free()
	w, err := a.folders.Lock(ctx, st.work)
	if err != nil {
		return saved, "", err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if !w.HeldBy(st.l.Call) {
		return saved, "another call works in the workspace", nil
	}
	rules, err := a.treeRules(ctx, st)
	if err != nil {
		return saved, "", err
	}
	rules.Limits = st.limits.Tree
	saved, err = w.Save(ctx, st.l.Store, rules)
	if wrong := (*tree.FolderError)(nil); errors.As(err, &wrong) {
		return saved, wrong.Error(), nil
	}
	return saved, "", err
}

// storeWorkspace stores the agent's workspace.
func (a *Activities) storeWorkspace(ctx context.Context, st *runningCall, ans *calls.Answer) error {
	if st.folder == nil || !st.folder.keep {
		return nil
	}
	saved, problem, err := a.leaveFolder(ctx, st)
	if err != nil {
		return fmt.Errorf("store the workspace: %w", err)
	}
	if ans.TreeError = problem; problem != "" {
		return nil
	}
	b := workspace.Blob(saved)
	ans.Tree = &b
	ans.Skipped, ans.SkippedCount = workspace.Skipped(saved)
	return nil
}

// interruptedTree returns the tree that an interrupted call left, for its session. Without it the session is of no use:
// the model relies on its own changes.
func (a *Activities) interruptedTree(ctx context.Context, st *runningCall, ans *calls.Answer) *run.Blob {
	if ans != nil && ans.Tree != nil {
		return ans.Tree
	}
	saved, problem, err := a.leaveFolder(ctx, st)
	if err != nil || problem != "" {
		return nil
	}
	b := workspace.Blob(saved)
	return &b
}

// settleFolder makes the workspace hold the accepted tree again after a call whose changes do not count, and frees it.
// After one that was killed or timed out it is made again. Its repository always is: the operator may use it now. Errors
// are logged: the next call makes the folder again.
func (a *Activities) settleFolder(ctx context.Context, st *runningCall, doubtful, accepted bool) {
	if st.folder != nil {
		a.warn(ctx, "restore the workspace after a call", st.work, a.settle(ctx, st, doubtful, accepted))
	}
}

func (a *Activities) settle(ctx context.Context, st *runningCall, doubtful, accepted bool) (err error) {
	free, err := a.slots.checkouts.acquire(ctx)
	if err != nil {
		return err
	}
	defer free()
	w, err := a.folders.Lock(ctx, st.work)
	if err != nil {
		return err
	}
	if st.folder.fresh && w.HeldBy(st.l.Call) {
		return w.Remove()
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	if !w.HeldBy(st.l.Call) {
		return nil
	}
	if doubtful {
		if err := w.Discard(); err != nil {
			return err
		}
	}
	if doubtful || !accepted || !st.folder.keep {
		rules, err := a.treeRules(ctx, st)
		if err != nil {
			return err
		}
		if err := w.Restore(ctx, st.l.Store, st.folder.of.Tree, rules, nil); err != nil {
			return err
		}
	}
	if _, err := workspace.RemakeGit(ctx, a.stateDir(), workspace.Current(st.folder.of), w.Dir); err != nil {
		return err
	}
	return w.Release()
}
