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
)

// reap ends what is left of a delivery of a dead worker: exactly the child that it recorded, and whatever that had started, never a stranger with
// one of their numbers. A worker that dies takes only the child along.
func reap(ctx context.Context, dir string) error {
	if err := reapChild(ctx, dir); err != nil {
		return err
	}
	return process.EndCarrying(ctx, agent.MarkEnv, dir)
}

func reapChild(ctx context.Context, dir string) error {
	id, ok, err := readIdentity(dir, childFile)
	if err != nil || !ok || !id.Alive() {
		return err
	}
	if err := id.KillGroup(); err != nil && !errors.Is(err, process.ErrGone) {
		return err
	}
	return id.AwaitEnd(ctx)
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

// ReapDead ends what workers of this host have left behind that are gone: nobody may ever ask for their calls again. What their agents had written stays.
func (a *Activities) ReapDead(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(a.cfg.Scratch, "*", "*", workerFile))
	if err != nil {
		return err
	}
	var all error
	for _, file := range found {
		dir := filepath.Dir(file)
		id, ok, err := readIdentity(dir, workerFile)
		if err == nil && ok && !id.Alive() {
			err = reap(ctx, dir)
		}
		all = errors.Join(all, err)
	}
	return all
}
