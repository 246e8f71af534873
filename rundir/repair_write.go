package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/durable"
)

const repairsDir = "run_state_repairs"

// hintInVain is what is said where the files that follow from the events are found wrong however often they are made.
const hintInVain = "the files were made again from the events, and are what they were. Write the directory again elsewhere (starter rebuild RUN-ID --output-dir OTHER) and compare the two"

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

// repair does what is to be done. The caller holds the lock.
func (x *examined) repair(ctx context.Context, o RepairOptions) (RepairResult, error) {
	if err := x.readWhole(ctx, o.Blobs); err != nil {
		return RepairResult{}, err
	}
	p := x.plan(o.Now)
	if len(p.changes) == 0 {
		return p.result(), nil
	}
	return x.apply(ctx, o, p)
}

// apply carries a plan out: copies of what is replaced first, the audit file last. The caller holds the lock.
func (x *examined) apply(ctx context.Context, o RepairOptions, p repairPlan) (RepairResult, error) {
	res := p.result()
	if (p.anew || p.catchUp) && o.Blobs == nil {
		return res, errors.New("repair: derived files are made again from the store, and none was given")
	}
	folder, err := x.dir.repairFolder(o.Now)
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
		res.Changes, res.BackupPath, res.RepairHint = []Change{}, "", hintInVain
		return res, err
	}
	res.Applied, res.AuditPath = true, path.Join(folder, "audit.json")
	audit := repairAudit{
		Version: 1, RunID: x.runID(), At: o.Now.UTC().Format(time.RFC3339Nano), By: o.By, IssueCodes: p.codes, Changes: p.changes, Backups: []string{},
	}
	for _, b := range backups {
		audit.Backups = append(audit.Backups, b.at)
	}
	raw, err := marshal(audit)
	if err != nil {
		return res, err
	}
	return res, x.dir.Disk.WriteFile(x.dir.Path(res.AuditPath), raw, filePerm)
}

// backup is a copy of a file that a repair replaces. Both names are relative to the directory.
type backup struct{ of, at string }

// same reports whether a repair could do nothing: the same is found after it as before, and no file has changed. Then it leaves no copies.
func (x *examined) same(ctx context.Context, o RepairOptions, folder string, copies []backup) (bool, error) {
	now, err := x.dir.examine(ctx, CheckOptions{Standing: o.Standing, ReadTree: o.ReadTree}, true)
	if err != nil || !slices.Equal(sorted(now.found), sorted(x.found)) {
		return false, err
	}
	for _, c := range copies {
		was, err := x.dir.readRaw(c.at)
		if err != nil {
			return false, err
		}
		is, err := x.dir.readRaw(c.of)
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
	slices.Sort(left) // what is below a folder comes behind it
	left = slices.Compact(left)
	slices.Reverse(left)
	left = append(left, folder)
	if others, err := os.ReadDir(x.dir.Path(repairsDir)); err == nil && len(others) == 1 {
		left = append(left, repairsDir)
	}
	for _, name := range left {
		if err := x.dir.Disk.Remove(x.dir.Path(name)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// runID is the run's id; other programs name a run by its directory.
func (x *examined) runID() string {
	if c, err := x.dir.Claim(); err == nil {
		return c.RunID
	}
	return path.Base(x.dir.Root)
}

// repairFolder makes a folder of its own for what one repair leaves.
func (d Dir) repairFolder(now time.Time) (string, error) {
	stamp := path.Join(repairsDir, now.UTC().Format("20060102T150405.000Z"))
	folder := stamp
	for n := 2; d.there(folder); n++ {
		folder = stamp + "-" + strconv.Itoa(n)
	}
	return folder, d.Disk.Mkdir(d.Path(folder), dirPerm)
}

// backUp keeps a copy of what is replaced.
func (x *examined) backUp(folder string, p repairPlan) ([]backup, error) {
	names := []string{MetaFile}
	if p.anew || p.catchUp {
		names = append(names, StateFile)
	}
	if p.anew && x.stream.artifact != "" {
		names = append(names, x.stream.artifact)
	}
	if p.lines {
		names = append(names, EventsFile)
	}
	var copies []backup
	var files []durable.File
	keep := func(name, to string) error {
		raw, err := os.ReadFile(x.dir.Path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		copies = append(copies, backup{of: name, at: to})
		files = append(files, durable.File{Path: x.dir.Path(to), Data: raw, Perm: filePerm, DirPerm: dirPerm, Verify: &durable.Verify{}})
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
	return copies, x.dir.Disk.WriteAll(files)
}

// replaced are the files that a repair replaces because they are not what was written.
func (x *examined) replaced(p repairPlan) []string {
	var names []string
	for _, c := range p.changes {
		switch {
		case slices.Contains(growing(), c.Field):
			names = append(names, c.Field)
		case x.shadow != nil:
			names = append(names, x.shadow.below(c.Field)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (x *examined) carryOut(ctx context.Context, blobs Blobs, p repairPlan) error {
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
			x.meta.object.drop(c.Field)
		} else {
			x.meta.object.set(c.Field, c.After)
		}
	}
	return x.writeObject(x.meta.object)
}

// writeObject replaces meta.json, which ends as it ended before.
func (x *examined) writeObject(o *object) error {
	if x.own {
		if err := o.seal(); err != nil {
			return err
		}
	}
	raw, err := o.bytes()
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(x.meta.raw, []byte("\n")) {
		raw = bytes.TrimSuffix(raw, []byte("\n"))
	}
	return (&projector{dir: x.dir}).replace(MetaFile, raw)
}

// again lets the projector go on from meta.json, or makes everything derived anew from the first event on. An artifact that somebody has edited
// stays as it is, and so do keys of meta.json that this program does not know.
func (x *examined) again(ctx context.Context, blobs Blobs, anew bool) error {
	edited, err := x.editedArtifact()
	if err != nil {
		return err
	}
	p, err := x.dir.open(ctx, &spareBlobs{Blobs: blobs, x: x})
	if err != nil {
		return err
	}
	p.spares = true
	if anew {
		if err := p.startOver(); err != nil {
			return err
		}
	}
	if err := p.append(nil); err != nil {
		return err
	}
	if err := p.materialise(); err != nil {
		return err
	}
	if edited != nil {
		if err := x.dir.Disk.WriteFile(x.dir.Path(x.stream.artifact), edited, filePerm); err != nil {
			return err
		}
	}
	return x.keepUnknown()
}

// editedArtifact is the artifact that is not the recorded one; nil: it is, or it is missing.
func (x *examined) editedArtifact() ([]byte, error) {
	if !x.has(ArtifactHashMismatch) || x.artifactIsMissing() {
		return nil, nil
	}
	return os.ReadFile(x.dir.Path(x.stream.artifact))
}

func (x *examined) artifactIsMissing() bool { return !x.dir.there(x.stream.artifact) }

// keepUnknown puts the keys back that the projector does not know.
func (x *examined) keepUnknown() error {
	if x.meta.object == nil {
		return nil
	}
	raw, err := x.dir.metaBytes()
	if err != nil {
		return err
	}
	now, err := parseObject(raw)
	if err != nil {
		return err
	}
	known := jsonKeys(reflect.TypeFor[Meta]())
	added := false
	for _, k := range x.meta.object.keys {
		if !slices.Contains(known, k) {
			now.set(k, x.meta.object.values[k])
			added = true
		}
	}
	if !added {
		return nil
	}
	return x.writeObject(now)
}

// flat is a value on one line; nil stays nil.
func flat(v json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if len(v) == 0 || json.Compact(&out, v) != nil {
		return nil
	}
	return out.Bytes()
}
