package rundir

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// LostError reports that a run has written to a directory and that none of its events can be read (requirement 002
// §3.1, the last resort).
type LostError struct {
	Dir        string
	RunID      string
	Checkpoint string // file of the newest undamaged artifact in a checkpoint; empty: none
}

func (e *LostError) Error() string {
	page := "no checkpoint holds an undamaged artifact"
	if e.Checkpoint != "" {
		page = "the newest undamaged artifact is " + filepath.Join(e.Dir, filepath.FromSlash(e.Checkpoint))
	}
	return fmt.Sprintf("%s is damaged: no event of run %s can be read from its %s, and all other files are derived "+
		"from it. Nothing was changed. `starter rebuild %s --output-dir %s` restores it from Temporal's history and the "+
		"store. If neither has the run, manual recovery is needed: restore %s from a copy, then resume; %s", e.Dir,
		e.RunID, EventsFile, e.RunID, shell.Quote(e.Dir), EventsFile, page)
}

// Begun reports whether a directory has had events, as its meta.json records.
func Begun(d Dir) bool {
	m, err := d.Meta()
	return err == nil && m.Events.Seq > 0
}

// Lost returns a *LostError if the directory contains files of a run but no event that starts one. s is the state after
// its events.
func Lost(d Dir, s run.State) error {
	if s.Status != "" && s.Status != run.Unknown {
		return nil
	}
	left, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return err
	}
	if len(left.Lines) == 0 && !d.Has(MetaFile) && Remains(d) == "" {
		return nil // claimed, but not started
	}
	claim, err := d.Claim()
	if err != nil {
		return err
	}
	return &LostError{Dir: d.Root, RunID: claim.RunID, Checkpoint: newestArtifact(d)}
}

// Remains names a file or folder that a run creates after its first event, or "".
func Remains(d Dir) string {
	for _, name := range []string{StateFile, ResultFile, DefinitionFile, LogsDir,
		PassesDir, CheckpointsDir, SnapshotsDir} {
		if d.Has(name) {
			return name
		}
	}
	return ""
}

// newestArtifact is the file of the last checkpoint whose artifact matches its manifest.
func newestArtifact(d Dir) string {
	checkpoints, err := d.Entries(CheckpointsDir)
	if err != nil {
		return ""
	}
	newest, at := "", ""
	for _, id := range checkpoints {
		var c CheckpointRecord
		folder := CheckpointDir(id)
		if err := d.ReadJSON(path.Join(folder, "manifest.json"), &c); err != nil || c.CreatedAt <= at {
			continue
		}
		if file := validArtifact(d, folder, c); file != "" {
			newest, at = file, c.CreatedAt
		}
	}
	return newest
}

// validArtifact is the artifact in a checkpoint's folder; empty if it is missing or differs.
func validArtifact(d Dir, folder string, c CheckpointRecord) string {
	names, err := d.Entries(folder)
	if err != nil {
		return ""
	}
	for _, name := range names {
		file := path.Join(folder, name)
		if !strings.HasPrefix(name, "artifact.") {
			continue
		}
		if have, err := d.DigestOf(file); err == nil && have == c.ArtifactHash {
			return file
		}
	}
	return ""
}
