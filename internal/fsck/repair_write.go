package fsck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/rundir"
)

// hintInVain is the hint if derived files are still wrong after they have been rebuilt.
const hintInVain = "the files were made again from the events, and are what they were. Rebuild the directory " +
	"elsewhere (starter rebuild RUN-ID --output-dir OTHER) and compare the two"

// repairAudit is the audit file of one repair.
type repairAudit struct {
	Version    int      `json:"version"`
	RunID      string   `json:"run_id"`
	At         string   `json:"at"`
	By         string   `json:"by"`
	IssueCodes []Code   `json:"issue_codes"`
	Changes    []Change `json:"changes"`
	Backups    []string `json:"backups"` // relative to the directory
}

// repair repairs the findings. The caller holds the lock.
func (x *examined) repair(ctx context.Context, o RepairOptions) (RepairResult, error) {
	if err := x.readWhole(ctx, o.Blobs); err != nil {
		return RepairResult{}, err
	}
	p := x.plan()
	if len(p.changes) == 0 {
		return p.result(), nil
	}
	return x.apply(ctx, o, p)
}

// apply executes a plan: copies of replaced files first, the audit file last. The caller holds the lock.
func (x *examined) apply(ctx context.Context, o RepairOptions, p repairPlan) (RepairResult, error) {
	res := p.result()
	if (p.anew || p.catchUp) && o.Blobs == nil {
		return res, errors.New("repair: derived files are made again from the store, and none was given")
	}
	folder, err := repairFolder(x.dir, o.Now)
	if err != nil {
		return res, err
	}
	backups, err := x.backUp(folder, p)
	if err != nil {
		return res, fmt.Errorf("repair: nothing was changed: %w", err)
	}
	if len(backups) > 0 {
		res.BackupPath = backups[0].at
	}
	if err := x.carryOut(ctx, o.Blobs, p); err != nil {
		return res, fmt.Errorf("repair: %w; what was there is in %s", err, folder)
	}
	if same, err := x.same(ctx, o, folder, backups); err != nil || same {
		res.Changes, res.BackupPath, res.RepairHint = []Change{}, "", x.commands(hintInVain)
		return res, err
	}
	res.Applied, res.AuditPath = true, path.Join(folder, "audit.json")
	audit := repairAudit{
		Version: 1, RunID: x.runID(), At: o.Now.UTC().Format(time.RFC3339Nano), By: o.By, IssueCodes: p.codes,
		Changes: p.changes, Backups: []string{},
	}
	for _, b := range backups {
		audit.Backups = append(audit.Backups, b.at)
	}
	raw, err := disk.Marshal(audit)
	if err != nil {
		return res, err
	}
	return res, x.dir.Inside().WriteFile(x.dir.Path(res.AuditPath), raw, layout.FilePerm)
}

// backup is a copy of a file that a repair replaces. Both names are relative to the directory.
type backup struct{ of, at string }

// same reports whether a repair had no effect: the findings are the same as before, and no file has changed. Then it
// removes its copies.
func (x *examined) same(ctx context.Context, o RepairOptions, folder string, copies []backup) (bool, error) {
	now, err := examine(ctx, x.dir, CheckOptions{EffectiveStatus: o.EffectiveStatus, ReadTree: o.ReadTree}, true)
	if err != nil || !slices.Equal(sorted(now.found), sorted(x.found)) {
		return false, err
	}
	for _, c := range copies {
		was, err := x.dir.ReadRaw(c.at)
		if err != nil {
			return false, err
		}
		is, err := x.dir.ReadRaw(c.of)
		if err != nil || !bytes.Equal(was, is) {
			return false, err
		}
	}
	var left []string
	for _, c := range copies {
		for at := c.at; at != folder; at = path.Dir(at) {
			left = append(left, at)
		}
	}
	slices.Sort(left) // the contents of a folder come after the folder
	left = slices.Compact(left)
	slices.Reverse(left)
	left = append(left, folder)
	if others, err := x.dir.ReadDir(layout.RepairsDir); err == nil && len(others) == 1 {
		left = append(left, layout.RepairsDir)
	}
	for _, name := range left {
		if err := x.dir.Inside().Remove(x.dir.Path(name)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// runID is the run's ID, or, if run.json is damaged, the name of its directory.
func (x *examined) runID() string {
	if c, err := x.dir.Claim(); err == nil {
		return c.RunID
	}
	return path.Base(x.dir.Root)
}

// repairFolder creates a separate folder for the files of one repair.
func repairFolder(d projector.Dir, now time.Time) (string, error) {
	stamp := path.Join(layout.RepairsDir, now.UTC().Format("20060102T150405.000Z"))
	folder := stamp
	for n := 2; d.Has(folder); n++ {
		folder = stamp + "-" + strconv.Itoa(n)
	}
	return folder, d.Inside().Mkdir(d.Path(folder), layout.DirPerm)
}

// backUp copies the files to be replaced.
func (x *examined) backUp(folder string, p repairPlan) ([]backup, error) {
	names := []string{layout.MetaFile}
	if p.anew || p.catchUp {
		names = append(names, layout.StateFile)
	}
	if p.anew && x.stream.artifact != "" {
		names = append(names, x.stream.artifact)
	}
	if p.lines {
		names = append(names, layout.EventsFile)
	}
	var copies []backup
	var files []disk.File
	keep := func(name, to string) error {
		raw, err := x.dir.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		copies = append(copies, backup{of: name, at: to})
		files = append(files, disk.File{Path: x.dir.Path(to), Data: raw, Perm: layout.FilePerm,
			DirPerm: layout.DirPerm, Verify: &disk.Verify{}})
		return nil
	}
	for _, name := range names {
		if err := keep(name, path.Join(folder, path.Base(name))); err != nil {
			return nil, err
		}
	}
	for _, name := range x.replaced(p) {
		if slices.Contains(names, name) {
			continue
		}
		if err := keep(name, path.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	return copies, x.dir.Inside().WriteAll(files)
}

// replaced lists the files that a repair replaces because they differ from what was written.
func (x *examined) replaced(p repairPlan) []string {
	var names []string
	for _, c := range p.changes {
		switch {
		case slices.Contains(records.Growing(), c.Field):
			names = append(names, c.Field)
		default:
			names = append(names, below(x.shadow, c.Field)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (x *examined) carryOut(ctx context.Context, blobs projector.Blobs, p repairPlan) error {
	switch {
	case p.lines:
		return x.writeLines(ctx, blobs)
	case p.anew || p.catchUp && p.edit:
		return x.again(ctx, blobs, true)
	case p.catchUp:
		return x.again(ctx, blobs, false)
	}
	for _, c := range p.changes {
		if c.After == nil {
			x.meta.object.Drop(c.Field)
		} else {
			x.meta.object.Set(c.Field, c.After)
		}
	}
	return x.writeObject(x.meta.object)
}

// writeObject replaces meta.json and keeps its final line feed, if it has one.
func (x *examined) writeObject(o *object.Object) error {
	if err := o.Seal(); err != nil {
		return err
	}
	raw, err := o.Bytes()
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(x.meta.raw, []byte("\n")) {
		raw = bytes.TrimSuffix(raw, []byte("\n"))
	}
	return (&projector.Projector{Dir: x.dir}).Replace(layout.MetaFile, raw)
}

// again lets the projector continue from meta.json, or rebuild everything from the first event. An artifact that an
// operator has edited stays unchanged, and so do unknown keys of meta.json.
func (x *examined) again(ctx context.Context, blobs projector.Blobs, anew bool) error {
	edited, err := x.editedArtifact()
	if err != nil {
		return err
	}
	p, err := x.dir.Open(ctx, &spareBlobs{Blobs: blobs, x: x})
	if err != nil {
		return err
	}
	p.Spares = true
	if anew {
		if err := p.StartOver(); err != nil {
			return err
		}
	}
	if err := p.Append(nil); err != nil {
		return err
	}
	if err := p.Materialise(); err != nil {
		return err
	}
	if edited != nil {
		if err := x.dir.Inside().WriteFile(x.dir.Path(x.stream.artifact), edited, layout.FilePerm); err != nil {
			return err
		}
	}
	return x.keepUnknown()
}

// editedArtifact is the artifact if it differs from the recorded one; nil if it is the same or missing.
func (x *examined) editedArtifact() ([]byte, error) {
	if !x.has(ArtifactHashMismatch) || x.artifactIsMissing() {
		return nil, nil
	}
	return x.dir.ReadFile(x.stream.artifact)
}

func (x *examined) artifactIsMissing() bool { return !x.dir.Has(x.stream.artifact) }

// keepUnknown restores the keys of meta.json that the projector does not know.
func (x *examined) keepUnknown() error {
	if x.meta.object == nil {
		return nil
	}
	raw, err := x.dir.ReadRaw(layout.MetaFile)
	if err != nil {
		return err
	}
	now, err := object.ParseObject(raw)
	if err != nil {
		return err
	}
	known := object.JSONKeys(reflect.TypeFor[rundir.Meta]())
	added := false
	for _, k := range x.meta.object.Keys {
		if !slices.Contains(known, k) {
			now.Set(k, x.meta.object.Values[k])
			added = true
		}
	}
	if !added {
		return nil
	}
	return x.writeObject(now)
}
