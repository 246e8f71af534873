package rundir

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/passbook-run/passbook/run"
)

// LostError says that a run has written to a directory, and that no event of it can be read any more (requirement 002 §3.1, the last resort).
type LostError struct {
	Dir        string
	RunID      string
	Checkpoint string // file of the newest artifact that a checkpoint holds undamaged; empty: none
}

func (e *LostError) Error() string {
	page := "no checkpoint holds an undamaged artifact"
	if e.Checkpoint != "" {
		page = "the newest undamaged artifact is " + filepath.Join(e.Dir, filepath.FromSlash(e.Checkpoint))
	}
	return fmt.Sprintf("%s is damaged: no event of run %s can be read from its %s, and everything else follows from that. Nothing was changed. If Temporal still has "+
		"the run's history, `starter rebuild %s --output-dir OTHER` writes it into another directory. Otherwise manual recovery is needed: "+
		"bring %s back from a copy, then resume; %s", e.Dir, e.RunID, EventsFile, e.RunID, EventsFile, page)
}

// Lost says whether the directory holds what a run left, and no event that opens one; s is what its events come to. nil: it does not.
func (d Dir) Lost(s run.State) error {
	if s.Status != "" && s.Status != run.Unknown {
		return nil
	}
	left, err := d.readStream(0)
	if err != nil {
		return err
	}
	if len(left.lines) == 0 && !d.there(MetaFile) && d.remains() == "" {
		return nil // claimed, and nothing came of it
	}
	claim, err := d.Claim()
	if err != nil {
		return err
	}
	return &LostError{Dir: d.Root, RunID: claim.RunID, Checkpoint: d.newestArtifact()}
}

// remains names a file or folder that a run makes after its first event; empty: there is none.
func (d Dir) remains() string {
	for _, name := range []string{StateFile, ResultFile, DefinitionFile, logsDir, passesDir, checkpointsDir, snapshotsDir} {
		if d.there(name) {
			return name
		}
	}
	return ""
}

// newestArtifact is the file of the last checkpoint whose artifact is what its manifest says.
func (d Dir) newestArtifact() string {
	manifests, err := filepath.Glob(d.Path(path.Join(checkpointsDir, "*", "manifest.json")))
	if err != nil {
		return ""
	}
	newest, at := "", ""
	for _, name := range manifests {
		var c CheckpointRecord
		raw, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(raw, &c) != nil || c.CreatedAt <= at {
			continue
		}
		if file := d.soundArtifact(filepath.Dir(name), c); file != "" {
			newest, at = file, c.CreatedAt
		}
	}
	return newest
}

// soundArtifact is the artifact in a checkpoint's folder; empty: it is missing or another one.
func (d Dir) soundArtifact(folder string, c CheckpointRecord) string {
	files, err := filepath.Glob(filepath.Join(folder, "artifact.*"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && digest(raw) == c.ArtifactHash {
			return path.Join(checkpointsDir, filepath.Base(folder), filepath.Base(file))
		}
	}
	return ""
}
