package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/rundir"
)

// sharedRoot is the folder of all shared environments; empty until a test needs one.
var sharedRoot string

// sharedServer starts the server and the worker that tests share, and returns their state directory.
var sharedServer = sync.OnceValues(func() (state string, err error) {
	if sharedRoot, err = os.MkdirTemp("", "passbook-shared-"); err != nil {
		return "", err
	}
	settings := filepath.Join(sharedRoot, "settings.yaml")
	if err := os.WriteFile(settings, []byte("{}\n"), 0o600); err != nil {
		return "", err
	}
	state = filepath.Join(sharedRoot, "state")
	cmd := exec.Command(filepath.Join(programs, "starter"), "server", "start")
	cmd.Dir = project
	cmd.Env = append(append(environ(state), caching()...), "PASSBOOK_SETTINGS="+settings, "PASSBOOK_IDLE=1h",
		"PASSBOOK_CALLS=16") // calls of some tests wait for others
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("start the shared server: %w\n%s", err, out)
	}
	return state, nil
})

// endShared ends the shared processes and removes their folder, after all tests.
func endShared() error {
	if sharedRoot == "" {
		return nil
	}
	state := filepath.Join(sharedRoot, "state")
	st, err := host.Read(state)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if st.Worker != nil {
		err = errors.Join(err, st.Worker.Process.KillGroup(), st.Worker.Process.AwaitEnd(ctx))
	}
	if st.Server != nil {
		err = errors.Join(err, st.Server.Process.KillGroup(), st.Server.Process.AwaitEnd(ctx))
	}
	return errors.Join(err, endSupervisors(filepath.Join(state, "scratch")), os.RemoveAll(sharedRoot))
}

// runs lists the ids of all runs whose directories are in the environment.
func (h *environment) runs() (ids []string) {
	_ = filepath.WalkDir(h.root, func(path string, e fs.DirEntry, err error) error { // a missing folder has no run
		if err == nil && e.Name() == rundir.ClaimFile {
			if claim, err := rundir.At(filepath.Dir(path)).Claim(); err == nil {
				ids = append(ids, claim.RunID)
			}
		}
		return nil
	})
	return ids
}

// owns reports whether a workflow belongs to a run of a shared environment. All of a separate server do.
func (h *environment) owns(workflowID string, runs []string) bool {
	return h.shared == "" || slices.ContainsFunc(runs, func(id string) bool { return strings.Contains(workflowID, id) })
}

// endRuns ends the open runs of a shared environment, and their agents.
func (h *environment) endRuns() {
	c := h.dialAtTheEnd()
	if c == nil {
		h.t.Error("the shared server does not run")
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for _, id := range h.runs() {
		var gone *serviceerror.NotFound
		if err := c.TerminateWorkflow(ctx, id, "", "the test has ended"); err != nil && !errors.As(err, &gone) {
			h.t.Errorf("clean up: %v", err)
		}
	}
	for _, call := range h.calls() {
		if id, alive := agentOf(call); alive {
			_ = id.KillGroup() // its supervisor ends with it
		}
	}
	_ = os.RemoveAll(h.root) // what the worker still writes is removed with the shared folder
}
