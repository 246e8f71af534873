package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// SetupPrefix is the prefix of the directories, in that of a delivery, of the commands that set up its workspace.
const SetupPrefix = "setup-"

// Reap ends what is left of a delivery and of its setup: by the supervisor if it runs, or else every process that
// carries the mark of the delivery. Another process with the same pid is not touched.
func Reap(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), SetupPrefix) {
			if err := reap(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return reap(ctx, dir)
}

func reap(ctx context.Context, dir string) error {
	rec, ok, err := supervisor.ReadRecord(dir)
	if err != nil || !ok {
		return err // no agent was started
	}
	if err := supervisor.Stop(dir, rec.Process, "no worker waits for the call"); err != nil {
		return err
	}
	if err := rec.Process.AwaitEnd(ctx); err != nil {
		return err
	}
	if _, err := supervisor.ReadExit(dir); !errors.Is(err, supervisor.ErrNoExit) {
		return nil // all of it had ended before that was written
	}
	return process.KillWithEnv(ctx, agent.MarkEnv, dir)
}

// ReadIdentity reads what [WriteIdentity] recorded; ok is false if there is nothing, or something incomplete.
func ReadIdentity(dir string) (id process.Identity, ok bool, err error) {
	const limit = 64 << 10
	raw, err := disk.ReadFile(filepath.Join(dir, WorkerFile), limit)
	var other *disk.KindError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &other) {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	return id, json.Unmarshal(raw, &id) == nil, nil
}

// EndAll ends what the calls of a run have left running on this host. A worker keeps an agent running whose answer may
// still be needed; this is for a run whose workflow is lost.
func EndAll(ctx context.Context, scratch, runID string) error {
	dirs, err := Folders(scratch, runID)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		deliveries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, d := range deliveries {
			if err := Reap(ctx, filepath.Join(dir, d.Name())); err != nil {
				return fmt.Errorf("end the processes of %s: %w", filepath.Join(dir, d.Name()), err)
			}
		}
	}
	return nil
}

// ReapDead ends what lost supervisors of this host have left running. What their agents have written stays.
func ReapDead(ctx context.Context, scratch string) error {
	found, all := filepath.Glob(filepath.Join(scratch, "*", "*", supervisor.RecordFile))
	setups, err := filepath.Glob(filepath.Join(scratch, "*", "*", SetupPrefix+"*", supervisor.RecordFile))
	all = errors.Join(all, err)
	for _, file := range append(found, setups...) {
		dir := filepath.Dir(file)
		rec, ok, err := supervisor.ReadRecord(dir)
		if err == nil && ok && !rec.Process.Alive() {
			err = Reap(ctx, dir)
		}
		all = errors.Join(all, err)
	}
	return all
}
