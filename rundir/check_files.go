package rundir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"

	"github.com/passbook-run/passbook/durable"
)

// judgeFiles compares the files that follow from the events with what meta.json says of them. All of this is of Passbook's own directories.
func (x *examined) judgeFiles() error {
	if x.stream.beyond > 0 {
		x.lags(DerivedFileBehind, MetaFile, fmt.Sprintf("%s has not seen the last %d of %d events", MetaFile, x.stream.beyond, x.stream.lines+x.stream.beyond))
	}
	if x.meta.good() {
		if err := errors.Join(x.judgeGrowing(), x.judgeState()); err != nil {
			return err
		}
	}
	x.judgeLeft()
	return errors.Join(x.judgeArtifact(), x.judgeCheckpoints(), x.judgeSnapshots(), x.judgeCalls(), x.judgePromotions(), x.judgeShadow())
}

// judgeLeft finds a directory whose journal and meta.json are gone while the rest of the run is there.
func (x *examined) judgeLeft() {
	if x.meta.raw != nil || x.stream.lines+x.stream.beyond+x.stream.torn > 0 {
		return
	}
	if name := x.dir.remains(); name != "" {
		x.lags(StreamMissing, "", fmt.Sprintf("%s and %s are missing, and %s is there: the run has left more than its claim", EventsFile, MetaFile, name))
	}
}

// judgeState looks where state.json stands. It is written before meta.json, so it may be ahead of it, but not behind.
func (x *examined) judgeState() error {
	stands := x.meta.typed.Events.Seq
	if x.meta.typed.Behind != nil {
		stands = x.meta.typed.Behind.Seq
	}
	book, err := x.dir.written()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.findIn(DerivedFileBehind, StateFile, StateFile+" is missing")
	case errors.Is(err, ErrDamaged):
		x.findIn(DerivedFileBehind, StateFile, StateFile+" cannot be read")
	case err != nil:
		return err
	case book.LastSeq < stands:
		x.findIn(DerivedFileBehind, StateFile, fmt.Sprintf("%s stands at event %d, and %s says %d", StateFile, book.LastSeq, MetaFile, stands))
	case book.LastSeq == stands && !x.dir.marked(x.meta.typed.Records):
		x.lags(DerivedFileDamaged, StateFile, fmt.Sprintf("%s is not what was written: its checksum is not the one in %s", StateFile, MetaFile))
	case book.LastSeq > stands:
		x.lags(DerivedFileBehind, StateFile, fmt.Sprintf("%s stands at event %d already, and %s says %d", StateFile, book.LastSeq, MetaFile, stands))
	}
	return nil
}

// marked says that state.json has the bytes that meta.json speaks of; true where that speaks of none.
func (d Dir) marked(mark *BookMark) bool {
	if mark == nil {
		return true
	}
	raw, err := os.ReadFile(d.Path(StateFile))
	return err != nil || *mark == *markOf(raw)
}

// judgeArtifact compares the artifact's bytes with the digest that the events name. Lines that meta.json has not seen may have changed it.
func (x *examined) judgeArtifact() error {
	s := x.stream
	want := s.want.State.Artifact
	if want == nil || s.artifact == "" {
		return nil
	}
	have, err := x.dir.digestOf(s.artifact)
	if err != nil || have == want.Digest {
		return err
	}
	if s.beyond > 0 && s.after.Artifact != nil && have == s.after.Artifact.Digest {
		return nil
	}
	said := s.artifact + " is missing"
	if have != "" {
		said = fmt.Sprintf("%s is not what the run recorded: its sha-256 is %s, not %s", s.artifact, have[:12], want.Digest[:min(12, len(want.Digest))])
	}
	x.lags(ArtifactHashMismatch, s.artifact, said)
	return nil
}

// digestOf is the sha-256 of a file; empty: it is missing.
func (d Dir) digestOf(name string) (string, error) {
	f, err := durable.Open(d.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// judgeCheckpoints compares the directory of each named checkpoint with its event and its manifest.
func (x *examined) judgeCheckpoints() error {
	book, err := x.dir.written()
	if err != nil && !missing(err) {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(x.stream.checkpoints)) {
		wrong, err := x.dir.wrongCheckpoint(id, x.stream.checkpoints[id], path.Ext(x.stream.artifact), book.Checkpoints)
		if err != nil {
			return err
		}
		if wrong != "" {
			x.lags(CheckpointDamaged, checkpointDir(id), fmt.Sprintf("checkpoint %s: %s", id, wrong))
		}
	}
	return nil
}

// judgeSnapshots looks whether each turn has the manifest of its tree. Whether a line of it was changed is for whoever reads it as a tree.
func (x *examined) judgeSnapshots() error {
	for n, tree := range x.stream.turns {
		name := SnapshotManifest(n)
		raw, err := os.ReadFile(x.dir.Path(name))
		said := fmt.Sprintf("snapshot of turn %d: %s ", n, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			x.lags(SnapshotDamaged, name, said+"is missing")
		case err != nil:
			return err
		case !json.Valid(raw) || !bytes.HasPrefix(raw, []byte(`{"version":1,`+"\n"+`"tree":"`+tree+`",`)):
			x.lags(SnapshotDamaged, name, said+"is not of tree "+tree[:min(12, len(tree))])
		}
	}
	return nil
}

// wrongCheckpoint says what is wrong with a checkpoint's directory; empty: nothing.
func (d Dir) wrongCheckpoint(id string, k kept, ext string, records []CheckpointRecord) (string, error) {
	var m CheckpointRecord
	dir := checkpointDir(id)
	err := d.readJSON(path.Join(dir, "manifest.json"), &m)
	if missing(err) {
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
	files := []file{{stateSnapshot, m.StateHash}}
	if k.artifact != "" {
		files = append(files, file{"artifact" + ext, k.artifact})
	}
	for _, n := range k.notes {
		if n.Whole.Digest != "" {
			files = append(files, file{n.File, n.Whole.Digest})
		}
	}
	for _, f := range files {
		have, err := d.digestOf(path.Join(dir, f.name))
		if err != nil {
			return "", err
		}
		if have != f.digest && f.name == stateSnapshot && slices.ContainsFunc(records, func(r CheckpointRecord) bool { return r.ID == id && r.StateHash == have }) {
			return "manifest.json is not what the run recorded", nil
		}
		if have != f.digest {
			return f.name + " is missing or was changed", nil
		}
	}
	return "", nil
}

// inRecords says that one of the records in state.json is that of a manifest, or that none has its id: a revert takes records back. The hash of the state
// is compared with the file that it is of: after a second revert the record may have that of the state without what the first one has set aside.
func inRecords(m CheckpointRecord, records []CheckpointRecord) bool {
	same := func(r CheckpointRecord) bool { return r.ID == m.ID }
	equal := func(r CheckpointRecord) bool {
		r.StateHash = m.StateHash
		return reflect.DeepEqual(r, m)
	}
	return !slices.ContainsFunc(records, same) || slices.ContainsFunc(records, equal)
}
