package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/supervisor"
)

// reap ends what is left of a delivery: by its supervisor if that lives, and whatever carries the mark if the supervisor was lost with nothing recorded.
// A stranger with one of their numbers is left alone.
func reap(ctx context.Context, dir string) error {
	rec, ok, err := supervisor.ReadRecord(dir)
	if err != nil || !ok {
		return err // no agent was started
	}
	if err := supervisor.Stop(dir, rec.Process, "no worker waits for the call any more"); err != nil {
		return err
	}
	if err := rec.Process.AwaitEnd(ctx); err != nil {
		return err
	}
	if _, err := supervisor.ReadExit(dir); !errors.Is(err, supervisor.ErrNoExit) {
		return nil // all of it had ended before that was written
	}
	return process.EndCarrying(ctx, agent.MarkEnv, dir)
}

// readIdentity reads who a delivery has recorded; false: nobody, or half of it, when the worker died and its child with it.
func readIdentity(dir, name string) (id process.Identity, ok bool, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	return id, json.Unmarshal(raw, &id) == nil, nil
}

// EndCalls ends what the calls of a run have left at work on this host: its workflow was lost, and a worker lets an agent go on whose answer may yet be
// asked for.
func EndCalls(ctx context.Context, scratch, runID string) error {
	dirs, err := ScratchOf(scratch, runID)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		deliveries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, d := range deliveries {
			if err := reap(ctx, filepath.Join(dir, d.Name())); err != nil {
				return fmt.Errorf("end what is at work in %s: %w", filepath.Join(dir, d.Name()), err)
			}
		}
	}
	return nil
}

// ReapDead ends what lost supervisors of this host have left behind: their calls may never be asked for again. What their agents had written stays.
func (a *Activities) ReapDead(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(a.cfg.Scratch, "*", "*", supervisor.RecordFile))
	if err != nil {
		return err
	}
	var all error
	for _, file := range found {
		dir := filepath.Dir(file)
		rec, ok, err := supervisor.ReadRecord(dir)
		if err == nil && ok && !rec.Process.Alive() {
			err = reap(ctx, dir)
		}
		all = errors.Join(all, err)
	}
	return all
}
