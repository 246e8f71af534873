package rundir

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Archive moves a run to _orchestrator/archives/run-<id>-<start>: all files of Passbook, and a copy of the artifact.
// The directory is then free. The claim is moved last, so that the next call finds and completes an interrupted
// archive.
func (d Dir) Archive(ctx context.Context) (string, error) {
	claim, err := d.Claim()
	if err != nil {
		return "", err
	}
	lock, err := lock(ctx, d, "archive")
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	to, err := archiveName(d, claim)
	if err != nil {
		return "", err
	}
	if err := d.inside().Mkdir(d.Path(to), DirPerm); err != nil {
		return "", err
	}
	if err := d.copyArtifact(to); err != nil {
		return "", err
	}
	names, err := toArchive(d)
	if err != nil {
		return "", err
	}
	if err := moveLink(d, to); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := d.move(name, path.Join(to, strings.TrimPrefix(name, Orchestrator+"/"))); err != nil {
			return "", err
		}
	}
	return to, nil
}

// archiveName returns the destination of the run: that of an interrupted archive, if there is one.
func archiveName(d Dir, claim run.Claim) (string, error) {
	old, err := d.ReadDir(ArchivesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	prefix := "run-" + claim.RunID + "-"
	for _, e := range old {
		if strings.HasPrefix(e.Name(), prefix) {
			return path.Join(ArchivesDir, e.Name()), nil
		}
	}
	started := claim.CreatedAt
	if b, err := Records(d); err == nil && b.StartedAt != "" {
		started = b.StartedAt
	}
	return path.Join(ArchivesDir, prefix+strings.NewReplacer(":", "-", ".", "-").Replace(started)), nil
}

// copyArtifact leaves the artifact in place: a new run starts from the seed again.
func (d Dir) copyArtifact(to string) error {
	b, err := Records(d)
	if err != nil || b.CurrentArtifactPath == "" {
		return nil //nolint:nilerr // nothing was written yet, or an interrupted archive has moved it
	}
	data, err := d.ReadFile(b.CurrentArtifactPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.inside().WriteFile(d.Path(path.Join(to, b.CurrentArtifactPath)), data, FilePerm)
}

// toArchive lists the files of Passbook: the contents of _orchestrator except the archives, the files beside it, and
// last the claim.
func toArchive(d Dir) ([]string, error) {
	entries, err := d.ReadDir(Orchestrator)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := path.Join(Orchestrator, e.Name()); name != ArchivesDir {
			names = append(names, name)
		}
	}
	return append(names, WorkspaceDir, SnapshotsDir, run.LanesDir, DeliveryPatch,
		DecisionsDir, EventsFile, TracesFile, ProvenanceFile, ResultFile,
		PromotionsFile, MetaFile, ClaimFile), nil
}

// moveLink recreates the link to the cost log, whose target has moved.
func moveLink(d Dir, to string) error {
	if err := d.inside().Remove(d.Path(SpendFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := d.inside().Symlink(strings.TrimPrefix(CostLog, Orchestrator+"/"),
		d.Path(path.Join(to, SpendFile)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (d Dir) move(from, to string) error {
	if _, err := d.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.inside().Rename(d.Path(from), d.Path(to))
}
