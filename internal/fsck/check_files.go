package fsck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/rundir"
)

// judgeFiles compares derived files with their marks in meta.json. It is for directories of Passbook only.
func (x *examined) judgeFiles() error {
	if x.stream.beyond > 0 {
		x.lags(DerivedFileBehind, layout.MetaFile,
			fmt.Sprintf("%s lacks the last %d of %d events", layout.MetaFile, x.stream.beyond,
				x.stream.lines+x.stream.beyond))
	}
	if x.meta.good() {
		if err := errors.Join(x.judgeGrowing(), x.judgeState()); err != nil {
			return err
		}
	}
	x.judgeLeft()
	return errors.Join(x.judgeArtifact(), x.judgeCheckpoints(), x.judgeSnapshots(), x.judgeCalls(), x.judgePromotions(),
		x.judgeShadow())
}

// judgeLeft finds a directory with files of a run but without events and meta.json.
func (x *examined) judgeLeft() {
	if x.meta.raw != nil || x.stream.lines > 0 {
		return
	}
	if name := projector.Remains(x.dir.Dir); name != "" {
		x.lags(StreamMissing, "",
			fmt.Sprintf("%s has no event and %s is missing, and %s is there: the run has left more than its claim",
				layout.EventsFile, layout.MetaFile, name))
	}
}

// judgeState compares the position of state.json. It is written before meta.json, so it may be ahead of it, but not
// behind.
func (x *examined) judgeState() error {
	stands := x.meta.typed.Events.Seq
	if x.meta.typed.Behind != nil {
		stands = x.meta.typed.Behind.Seq
	}
	book, err := x.dir.State()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.findIn(DerivedFileBehind, layout.StateFile, layout.StateFile+" is missing")
	case errors.Is(err, disk.ErrDamaged):
		x.findIn(DerivedFileBehind, layout.StateFile, layout.StateFile+" cannot be read")
	case err != nil:
		return err
	case book.LastSeq < stands:
		x.findIn(DerivedFileBehind, layout.StateFile,
			fmt.Sprintf("%s is at event %d, and %s records %d", layout.StateFile, book.LastSeq, layout.MetaFile,
				stands))
	case book.LastSeq == stands && !marked(x.dir.Dir, x.meta.typed.Records):
		x.lags(DerivedFileDamaged, layout.StateFile,
			fmt.Sprintf("%s is not what was written: its checksum is not the one in %s", layout.StateFile,
				layout.MetaFile))
	case book.LastSeq > stands:
		x.lags(DerivedFileBehind, layout.StateFile,
			fmt.Sprintf("%s is at event %d already, and %s records %d", layout.StateFile, book.LastSeq,
				layout.MetaFile, stands))
	}
	return nil
}

// marked reports whether state.json has the bytes of its mark in meta.json; true if there is no mark.
func marked(d rundir.Dir, mark *rundir.StateMark) bool {
	if mark == nil {
		return true
	}
	raw, err := d.ReadFile(layout.StateFile)
	return err != nil || *mark == *rundir.MarkOf(raw)
}

// judgeArtifact compares the artifact's bytes with the digest in the events. Lines after those in meta.json may have
// changed it.
func (x *examined) judgeArtifact() error {
	s := x.stream
	want := s.want.State.Artifact
	if want == nil || s.artifact == "" {
		return nil
	}
	have, err := x.dir.DigestOf(s.artifact)
	if err != nil || have == want.Digest {
		return err
	}
	if later := s.further.State.Artifact; later != nil && have == later.Digest {
		return nil
	}
	x.lags(ArtifactHashMismatch, s.artifact, notRecorded(s.artifact, have, want.Digest))
	return nil
}

// judgeCheckpoints compares the directory of each named checkpoint with its event and its manifest.
func (x *examined) judgeCheckpoints() error {
	book, err := x.dir.State()
	if err != nil && !disk.Missing(err) {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(x.stream.checkpoints)) {
		wrong, err := wrongCheckpoint(x.dir.Dir, id, x.stream.checkpoints[id], path.Ext(x.stream.artifact),
			book.Checkpoints)
		if err != nil {
			return err
		}
		if wrong != "" {
			x.lags(CheckpointDamaged, layout.CheckpointDir(id), fmt.Sprintf("checkpoint %s: %s", id, wrong))
		}
	}
	return nil
}

// judgeSnapshots checks that each turn has the manifest of its tree. Changed lines of a manifest are found when it is
// read as a tree.
func (x *examined) judgeSnapshots() error {
	for n, tree := range x.stream.turns {
		name := layout.SnapshotManifest(n)
		raw, err := x.dir.ReadFile(name)
		message := fmt.Sprintf("snapshot of turn %d: %s ", n, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			x.lags(SnapshotDamaged, name, message+"is missing")
		case err != nil:
			return err
		case !json.Valid(raw) || !bytes.HasPrefix(raw, []byte(`{"version":1,`+"\n"+`"tree":"`+tree+`",`)):
			x.lags(SnapshotDamaged, name, fmt.Sprintf("%sis not of tree %.12s", message, tree))
		}
	}
	return nil
}

// wrongCheckpoint describes what is wrong with a checkpoint's directory; empty: nothing.
func wrongCheckpoint(d rundir.Dir, id string, k kept, ext string, records []rundir.CheckpointRecord) (string, error) {
	var m rundir.CheckpointRecord
	dir := layout.CheckpointDir(id)
	err := d.ReadJSON(path.Join(dir, "manifest.json"), &m)
	if disk.Missing(err) {
		return "manifest.json is missing or cannot be read", nil
	}
	if err != nil {
		return "", err
	}
	if m.ID != id || m.ArtifactHash != k.artifact {
		return "manifest.json is of another checkpoint", nil
	}
	if !inRecords(m, records) {
		return "manifest.json is not what the run recorded", nil
	}
	type file struct{ name, digest string }
	files := []file{{layout.StateSnapshot, m.StateHash}}
	if k.artifact != "" {
		files = append(files, file{"artifact" + ext, k.artifact})
	}
	for _, n := range k.notes {
		if n.Whole.Digest != "" {
			files = append(files, file{n.File, n.Whole.Digest})
		}
	}
	for _, f := range files {
		have, err := d.DigestOf(path.Join(dir, f.name))
		if err != nil {
			return "", err
		}
		if have != f.digest && f.name == layout.StateSnapshot &&
			slices.ContainsFunc(records, func(r rundir.CheckpointRecord) bool {
				return r.ID == id &&
					r.StateHash == have
			}) {
			return "manifest.json is not what the run recorded", nil
		}
		if have != f.digest {
			return f.name + " is missing or was changed", nil
		}
	}
	return "", nil
}

// inRecords reports whether state.json has a record equal to a manifest, or no record with its ID, because a revert
// removes records. The hash of the state is compared with the state file: after a second revert the record may have the
// hash of the state without what the first revert superseded.
func inRecords(m rundir.CheckpointRecord, records []rundir.CheckpointRecord) bool {
	same := func(r rundir.CheckpointRecord) bool { return r.ID == m.ID }
	equal := func(r rundir.CheckpointRecord) bool {
		r.StateHash = m.StateHash
		return reflect.DeepEqual(r, m)
	}
	return !slices.ContainsFunc(records, same) || slices.ContainsFunc(records, equal)
}
