package fsck

import (
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
)

// judgeShadow compares the files of the directory with the list.
func (x *examined) judgeShadow() error {
	s := x.shadow
	if s == nil || x.has(streamDamage()...) {
		return nil // nothing to compare with
	}
	if s.Err != nil {
		return s.Err
	}
	names := make([]string, 0, len(s.Files))
	for name := range s.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := x.judgeShadowed(name, s.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

func (x *examined) judgeShadowed(name string, f projector.ShadowFile) error {
	if name == x.stream.artifact || f.Gone || x.named(name) {
		return nil // an artifact may be edited
	}
	if f.Tree != "" {
		return x.judgeManifest(name, f)
	}
	have, err := x.dir.DigestOf(name)
	if err != nil || slices.Contains(f.Digests, have) {
		return err
	}
	if strings.Contains(name, "~") { // after a repeated revert there may be another superseded copy
		original := path.Join(path.Dir(path.Dir(name)),
			projector.SupersededSuffix.ReplaceAllString(path.Base(path.Dir(name)), ""), path.Base(name))
		if there, err := supersededAs(x.dir.Dir, original, f.Digests[0], false); there || err != nil {
			return err
		}
	}
	x.lags(codeOf(name), fileOf(name), notRecorded(name, have, f.Digests[0]))
	return nil
}

// judgeManifest reads the manifest of a turn's tree, which contains the name of the tree that its lines describe.
func (x *examined) judgeManifest(name string, f projector.ShadowFile) error {
	if x.opts.ReadTree == nil {
		return nil
	}
	raw, err := x.dir.ReadFile(name)
	if err != nil {
		return err
	}
	if err := x.opts.ReadTree(raw); err != nil {
		x.lags(SnapshotDamaged, name, name+" was changed: "+err.Error())
	}
	return nil
}

// named reports whether there is a finding for a file or its folder already.
func (x *examined) named(name string) bool {
	for ; name != "." && name != "/"; name = path.Dir(name) {
		if x.files[name] {
			return true
		}
	}
	return false
}

// codeOf is the code of the finding for a wrong file.
func codeOf(name string) Code {
	switch folder := path.Dir(name); {
	case strings.HasPrefix(name, layout.CheckpointsDir+"/"):
		return CheckpointDamaged
	case strings.HasPrefix(name, layout.SnapshotsDir+"/"):
		return SnapshotDamaged
	case folder == ".", folder == layout.Orchestrator, folder == layout.DecisionsDir, folder == layout.EditsDir,
		strings.HasPrefix(name, layout.InputsDir+"/"), strings.HasPrefix(name, layout.Orchestrator+"/amended-"):
		return DerivedFileDamaged
	}
	return EvidenceDamaged
}

// fileOf is the file or folder to be rebuilt: a checkpoint as a whole.
func fileOf(name string) string {
	if strings.HasPrefix(name, layout.CheckpointsDir+"/") {
		return path.Dir(name)
	}
	return name
}
