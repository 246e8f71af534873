package rundir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/passbook-run/passbook/run"
)

const archivesDir = orchestrator + "/archives"

// Archive moves a run aside, into _orchestrator/archives/run-<id>-<start>: everything that is Passbook's, and a copy of the artifact. The
// directory is free afterwards. The claim goes last, so an archiving that was cut off is found and finished by the next one.
func (d Dir) Archive(ctx context.Context) (string, error) {
	claim, err := d.Claim()
	if err != nil {
		return "", err
	}
	lock, err := d.lock(ctx, "archive")
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	to, err := d.archiveName(claim)
	if err != nil {
		return "", err
	}
	if err := d.Disk.Mkdir(d.Path(to), dirPerm); err != nil {
		return "", err
	}
	if err := d.copyArtifact(to); err != nil {
		return "", err
	}
	names, err := d.toArchive()
	if err != nil {
		return "", err
	}
	if err := d.moveLink(to); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := d.move(name, path.Join(to, strings.TrimPrefix(name, orchestrator+"/"))); err != nil {
			return "", err
		}
	}
	return to, nil
}

// archiveName is where the run goes; one that was begun is gone on with.
func (d Dir) archiveName(claim run.Claim) (string, error) {
	old, err := os.ReadDir(d.Path(archivesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	prefix := "run-" + claim.RunID + "-"
	for _, e := range old {
		if strings.HasPrefix(e.Name(), prefix) {
			return path.Join(archivesDir, e.Name()), nil
		}
	}
	started := claim.CreatedAt
	if b, err := d.State(); err == nil && b.StartedAt != "" {
		started = b.StartedAt
	}
	return path.Join(archivesDir, prefix+strings.NewReplacer(":", "-", ".", "-").Replace(started)), nil
}

// copyArtifact keeps the artifact as it is: a fresh run begins from the seed again.
func (d Dir) copyArtifact(to string) error {
	b, err := d.State()
	if err != nil || b.CurrentArtifactPath == "" {
		return nil //nolint:nilerr // nothing was written yet, or it was moved by the archiving that was cut off
	}
	data, err := os.ReadFile(d.Path(b.CurrentArtifactPath))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.Disk.WriteFile(d.Path(path.Join(to, b.CurrentArtifactPath)), data, filePerm)
}

// toArchive lists what is Passbook's: the contents of _orchestrator but the archives, the files beside it, and at last the claim.
func (d Dir) toArchive() ([]string, error) {
	entries, err := os.ReadDir(d.Path(orchestrator))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := path.Join(orchestrator, e.Name()); name != archivesDir {
			names = append(names, name)
		}
	}
	return append(names, WorkspaceDir, snapshotsDir, DeliveryPatch, repairsDir, decisionsDir, EventsFile, TracesFile, ProvenanceFile, ResultFile, PromotionsFile, MetaFile, ClaimFile), nil
}

// moveLink makes the link to the cost log anew: what it points to has moved.
func (d Dir) moveLink(to string) error {
	if err := os.Remove(d.Path(SpendFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Symlink(strings.TrimPrefix(CostLog, orchestrator+"/"), d.Path(path.Join(to, SpendFile)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (d Dir) move(from, to string) error {
	if _, err := os.Lstat(d.Path(from)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.Disk.Rename(d.Path(from), d.Path(to))
}
