package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// setupTimeout is the timeout of each command that sets up a workspace.
const setupTimeout = 30 * time.Minute

// setupFile in the directory of a delivery describes the setup before it.
const setupFile = "setup.json"

// setUpFolder runs the commands that make a new workspace usable, and again when a lock file has changed. Files that the
// operator lists in .worktreeinclude are copied before.
func (a *Activities) setUpFolder(ctx context.Context, st *runningCall, in contract.PassInput, w *workspace.Folder,
	rules tree.Rules, t run.Blob) error {
	known, err := tree.Load(ctx, st.l.Store, store.Digest(t.Digest))
	if err != nil {
		return err
	}
	with := workspace.SetupDigest(st.folder.setup, known)
	if w.SetUp(with) {
		return nil
	}
	if err := w.BeginSetup(); err != nil {
		return err
	}
	if of := st.plan.Workspace; of == nil || !of.Bare { // the tree of a run across projects has none
		if err := workspace.Include(ctx, st.folder.of.Workspace, w.Dir, rules.Tracked); err != nil {
			return err
		}
	}
	if err := a.runSetup(ctx, st, in, w, rules, t); err != nil {
		return err
	}
	return w.EndSetup(with)
}

// runSetup runs the commands, and undoes what they change in files of the tree.
func (a *Activities) runSetup(ctx context.Context, st *runningCall, in contract.PassInput, w *workspace.Folder,
	rules tree.Rules, t run.Blob) error {
	if len(st.folder.setup) == 0 {
		return nil
	}
	s := run.WorkspaceSetup{Commands: st.folder.setup}
	var output strings.Builder
	for i, command := range st.folder.setup {
		exit, out, err := a.setupCommand(ctx, st, in, w, i, command)
		output.WriteString("$ " + command + "\n" + out)
		s.DurationMS += exit.Duration.Milliseconds()
		if err == nil && (exit.Code != 0 || exit.TimedOut || exit.Killed) {
			err = fmt.Errorf("%s: exit code %d", command, exit.Code)
			if exit.TimedOut {
				err = fmt.Errorf("%s: ended after its timeout of %s", command, setupTimeout)
			}
		}
		if err != nil {
			return a.setupFailed(ctx, err, out)
		}
	}
	err := w.Restore(ctx, st.l.Store, t, rules, func(path string) error {
		s.Undone = append(s.Undone, path)
		return nil
	})
	if err != nil {
		return err
	}
	s.Count, s.Undone = len(s.Undone), s.Undone[:min(len(s.Undone), workspace.MaxFiles)]
	b, err := a.storeText(ctx, st.l.Store, output.String())
	if err != nil {
		return err
	}
	s.Output = &b
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(st.dir, setupFile), raw)
}

// setupFailed returns a [setupError] with the last lines, unless the call was cancelled.
func (a *Activities) setupFailed(ctx context.Context, err error, output string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	message := "set up the workspace: " + err.Error()
	if end := lastOf(output); end != "" {
		message += ":\n" + end
	}
	a.redactAll(&message)
	return &setupError{message}
}

// setupError is the error of a call whose workspace could not be set up. The workflow pauses the run.
type setupError struct{ message string }

func (e *setupError) Error() string { return e.message }

// setupCommand runs a command as a step without an agent runs, and returns what it printed.
func (a *Activities) setupCommand(ctx context.Context, st *runningCall, in contract.PassInput, w *workspace.Folder, n int,
	command string) (exit agent.Exit, output string, err error) {
	dir := filepath.Join(st.dir, fmt.Sprintf("%s%d", calls.SetupPrefix, n+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exit, "", err
	}
	cmd := agent.Command{
		Run: in.RunID, Argv: []string{pipeline.Shell, "-c", command}, Env: st.folder.env, Environment: environ.FromContext(ctx), Shell: true,
		Timeout: setupTimeout, Output: int64(st.limits.Output), Dir: w.Dir,
	}
	calls.Within(dir, &cmd)
	if err := os.WriteFile(cmd.Prompt, nil, 0o600); err != nil {
		return exit, "", err
	}
	c := pipeline.Confinement{Network: st.plan.Workspace.Network}
	a.confine(&cmd, c, a.bounds().OfCommand("the setup of the workspace", cmd.Argv, c), in.RunID, dir)
	if cmd.Sandbox != nil {
		cmd.Sandbox.Objects = st.objects
	}
	p, err := a.startSupervisor(dir, nil)
	if err != nil {
		return exit, "", err
	}
	exit, err = agent.Run(ctx, p, cmd, "the call was cancelled")
	out, unread := calls.ReadOutputs(dir, int64(st.limits.Output))
	return exit, string(out.Stdout) + string(out.Stderr), errors.Join(err, unread)
}

// setupOf reads the setup before a delivery; nil: there was none.
func setupOf(dir string) *run.WorkspaceSetup {
	raw, err := os.ReadFile(filepath.Join(dir, setupFile))
	var s run.WorkspaceSetup
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}
