package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/run"
)

// ErrNoArtifact means that the run revises no artifact.
var ErrNoArtifact = errors.New("the run has no artifact")

// Artifact is what a run revises: its file, relative to the directory, with its content at the start and now.
type Artifact struct {
	File   string
	Seed   []byte // empty: the run began without one
	Now    []byte
	Absent bool // the file is not there now
}

// Artifact reads the artifact as it was at the start and as it is. The seed is looked for among the files that the run
// was given, and among the backups of its first passes; if it is not there the error is fs.ErrNotExist.
func (d Dir) Artifact() (Artifact, error) {
	events, _, err := d.Events()
	if err != nil {
		return Artifact{}, err
	}
	var start run.RunStart
	if len(events) > 0 {
		events[0].Decode(&start)
	}
	if start.Artifact == nil {
		return Artifact{}, ErrNoArtifact
	}
	a := Artifact{File: start.Artifact.File}
	a.Now, err = d.ReadFile(a.File)
	if a.Absent = errors.Is(err, fs.ErrNotExist); err != nil && !a.Absent {
		return a, err
	}
	if seed := start.Artifact.Seed.Digest; seed != "" {
		a.Seed, err = d.seed(seed, a, events)
		return a, err
	}
	return a, nil
}

// Inputs lists the files that the run was given; none if the list is missing or unreadable.
func (d Dir) Inputs() ([]InputFile, error) {
	var given Inputs
	if err := d.ReadJSON(InputsFile, &given); err != nil && !disk.Missing(err) {
		return nil, err
	}
	return given.Files, nil
}

func (d Dir) seed(want string, a Artifact, events []run.Event) ([]byte, error) {
	given, err := d.Inputs()
	if err != nil {
		return nil, err
	}
	for _, f := range given {
		if raw, err := d.ReadFile(path.Join(InputsDir, f.Path)); err == nil &&
			disk.Digest(pass.Stored(string(raw))) == want {
			return pass.Stored(string(raw)), nil
		}
	}
	for _, e := range events {
		var p run.PassStart
		if e.Kind != run.KindPassStart {
			continue
		}
		if e.Decode(&p); p.Before != want {
			continue
		}
		if raw, err := d.ReadFile(BackupFile(p.Pass, a.File)); err == nil &&
			disk.Digest(raw) == want {
			return raw, nil
		}
	}
	if disk.Digest(a.Now) == want {
		return a.Now, nil
	}
	return nil, fmt.Errorf("the artifact that the run began with (%s) is not in %s: %w", want, d.Root, fs.ErrNotExist)
}

// Inputs is the manifest of the files a run was given: path beside the definition, and digest.
type Inputs struct {
	Version int         `json:"version"`
	Files   []InputFile `json:"files"`
}

// Digests returns the digest of each file, by path.
func (in Inputs) Digests() map[string]string {
	all := map[string]string{}
	for _, f := range in.Files {
		all[f.Path] = f.Digest
	}
	return all
}

// InputFile is one file of the manifest.
type InputFile struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}
