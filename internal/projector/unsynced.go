package projector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// While a run works, a projection syncs the journal, state.json, meta.json and the files that an operator may edit. It
// does not sync what can be made again from the journal and the store: logs, the evidence of passes, checkpoints.
// The death of a process loses none of it. A file (layout.UnsyncedFile) names the boot of the machine; the first
// projection after another boot makes all of it again. When the run pauses or ends, the file system is synced and the
// file emptied.

// unsyncedNames is a store that can make names durable later.
type unsyncedNames interface {
	NameUnsynced(ctx context.Context, name string, data []byte) error
	Sync() error
}

// boot returns the id of this boot; empty: everything is synced at once.
func (d Dir) boot() string {
	if d.Boot != nil {
		return d.Boot()
	}
	return disk.Boot()
}

// unsynced returns the boot during which files were written that may not be on disk; empty: there are none.
func (d Dir) unsynced() (string, error) {
	raw, err := d.ReadFile(layout.UnsyncedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(raw)), err
}

// openForBatch opens the directory for a projection. If the machine was started again since unsynced files were
// written, they are made again first.
func (d Dir) openForBatch(ctx context.Context, blobs Blobs) (*Projector, error) {
	was, err := d.unsynced()
	if err != nil {
		return nil, err
	}
	boot := d.boot()
	var healed []string
	if was != "" && was != boot {
		if healed, err = d.writeAgain(ctx, blobs, was); err != nil {
			return nil, fmt.Errorf("make files again that the machine may have lost: %w", err)
		}
		was = ""
	}
	p, err := d.Open(ctx, blobs)
	if err != nil {
		return nil, err
	}
	p.boot, p.unsynced, p.healed = boot, was, append(healed, p.healed...)
	return p, nil
}

// writeAgain writes everything again that a projection leaves unsynced.
func (d Dir) writeAgain(ctx context.Context, blobs Blobs, boot string) ([]string, error) {
	p, err := d.Open(ctx, blobs)
	if err != nil {
		return nil, err
	}
	p.heal("the machine was started again before all files were on disk")
	p.restarted, p.restored, p.Spares, p.unsynced = true, p.meta.Events.Seq, true, boot
	if err := p.StartOver(); err != nil {
		return nil, err
	}
	return p.healed, p.Materialise()
}

// defers reports whether this batch leaves files unsynced.
func (p *Projector) defers() bool {
	s := p.state().Status
	return p.boot != "" && (s == run.Running || s == run.Replaying)
}

// markUnsynced names this boot before the first unsynced file is written.
func (p *Projector) markUnsynced() error {
	if p.unsynced == p.boot {
		return nil
	}
	return p.setUnsynced(p.boot + "\n")
}

func (p *Projector) setUnsynced(boot string) error {
	p.unsynced = strings.TrimSpace(boot)
	return p.Dir.Inside().WriteAll([]disk.File{{Path: p.Dir.Path(layout.UnsyncedFile), Data: []byte(boot),
		Perm: layout.FilePerm, DirPerm: layout.DirPerm}})
}

// settle makes the files of earlier batches durable.
func (p *Projector) settle() error {
	if p.unsynced == "" {
		return nil
	}
	if err := p.Dir.Inside().SyncFileSystem(p.Dir.Root); err != nil {
		return err
	}
	if names, ok := p.Blobs.(unsyncedNames); ok {
		if err := names.Sync(); err != nil {
			return err
		}
	}
	return p.setUnsynced("")
}

// keepMark stores a checkpoint.
func (p *Projector) keepMark(c run.Checkpoint, defers bool) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	name := checkpointName(c, raw)
	if store, ok := p.Blobs.(Replacer); ok && p.restarted {
		if have, err := store.ReadName(p.Ctx, name); err == nil && disk.Digest(have) == disk.Digest(raw) {
			return nil
		}
		return store.Replace(p.Ctx, name, raw)
	}
	if store, ok := p.Blobs.(unsyncedNames); ok && defers {
		return store.NameUnsynced(p.Ctx, name, raw)
	}
	return p.Blobs.Name(p.Ctx, name, raw)
}
