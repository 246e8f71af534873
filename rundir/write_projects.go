package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// The record of a run across projects is in several places. The parent's meta.json declares the projects and contains a
// copy of each project's result. The authoritative record of a project is its own meta.json, in the folder of its
// alias. Folders that the parent does not declare are ignored,
// unless their meta.json claims to be a project of a run.

// declared lists the aliases of the projects in meta.json in order, with repeats; none: the run has a single project.
func (c *check) declared() (aliases []string) {
	var meta struct {
		Projects json.RawMessage `json:"projects"`
	}
	if !c.good() || json.Unmarshal(c.raw, &meta) != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(meta.Projects))
	for n := 0; ; n++ { // the names and values of one object of texts
		t, err := dec.Token()
		if err != nil {
			return aliases
		}
		if name, is := t.(string); is && n%2 == 1 {
			aliases = append(aliases, name)
		}
	}
}

// judgeProjects compares the records of the parent, of its children and of the checkpoint.
func (c *check) judgeProjects() {
	if c.parent == nil {
		return
	}
	for _, v := range c.parent.Violations {
		text := string(v.Detail)
		if v.Alias != "" {
			text = fmt.Sprintf("project %s: %s", v.Alias, text)
		}
		c.findCross(CrossInconsistent, text)
	}
}

// readProjects reads the records of the projects, if there are any.
func (c *check) readProjects() error {
	declared := c.declared()
	if len(declared) == 0 {
		return nil
	}
	f := run.CrossFacts{
		Declared: declared, Status: c.status(), Pending: decisionIn(c.meta),
		Checkpoint: run.CrossCheckpoint{Pending: c.cross.Pending, ID: c.cross.ID, Kind: c.cross.Kind,
			Alias: c.cross.Alias, Child: c.cross.Child},
	}
	copies := map[string]EmbeddedProject{}
	if p := c.meta.Phases; p != nil {
		copies = p.Projects
	}
	for _, alias := range slices.Compact(slices.Sorted(slices.Values(declared))) {
		child, err := c.readChild(alias, copies)
		if err != nil {
			return err
		}
		if !f.Status.Closed() && !f.Pending.Passes(child) {
			child.Pending = nil // it is not forwarded yet: questions of projects are asked one at a time
		}
		f.Children = append(f.Children, child)
	}
	for _, alias := range sortedNames(copies) {
		if !slices.Contains(declared, alias) {
			f.Children = append(f.Children, run.ChildFacts{Alias: alias})
		}
	}
	stray, err := c.strayChildren(declared)
	f.Children = append(f.Children, stray...)
	p := run.Across(f)
	c.parent = &p
	return err
}

// readChild reads the two records of one project: its own, and the copy in the parent's.
func (c *check) readChild(alias string, copies map[string]EmbeddedProject) (run.ChildFacts, error) {
	f := run.ChildFacts{Alias: alias, Cursor: c.cross.SubStatus[alias]}
	if copied, there := copies[alias]; there {
		f.Embedded, f.Inside = run.Present, copied.Status
	}
	meta, found, err := childMeta(c.dir, alias)
	if f.Own = found; found != run.Present {
		return f, err
	}
	f.Status, f.Halted, f.Pending = meta.Status, meta.HaltReason, decisionIn(meta)
	if p := meta.Phases; p != nil && p.FinalAcceptance != nil {
		f.Verdict, f.ShipReady = p.FinalAcceptance.Verdict, &p.FinalAcceptance.ShipReady
	}
	return f, nil
}

// childMeta reads meta.json in the folder of a project. An alias that is not a folder name has none.
func childMeta(d Dir, alias string) (meta Meta, found run.Observation, err error) {
	if alias == "" || !filepath.IsLocal(alias) || strings.ContainsAny(alias, `/\`) {
		return meta, run.NotFound, nil
	}
	name := path.Join(alias, MetaFile)
	if fi, err := d.Stat(name); err != nil || !fi.Mode().IsRegular() {
		return meta, run.NotFound, nil //nolint:nilerr // what is not a file there is not a record
	}
	switch err = d.ReadJSON(name, &meta); {
	case errors.Is(err, disk.ErrDamaged):
		return meta, run.Malformed, nil
	case err != nil:
		return meta, run.NotFound, err
	}
	return meta, run.Present, nil
}

// strayChildren lists folders whose meta.json claims to be a project of a run with another name than that of the
// folder.
func (c *check) strayChildren(declared []string) ([]run.ChildFacts, error) {
	entries, err := c.dir.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var stray []run.ChildFacts
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		meta, _, err := childMeta(c.dir, e.Name())
		if err != nil {
			return nil, err
		}
		alias := meta.ProjectAlias
		if alias == "" || alias == e.Name() && slices.Contains(declared, alias) {
			continue
		}
		stray = append(stray, run.ChildFacts{Alias: alias})
	}
	return stray, nil
}

// decisionIn is the open question in a meta.json; nil: none with an ID.
func decisionIn(m Meta) *run.CrossDecision {
	h := m.PhaseHandoff
	if h == nil || h.ID == "" {
		return nil
	}
	d := &run.CrossDecision{ID: h.ID, ParentID: h.ID, Kind: h.Kind, Alias: h.Alias, Child: h.Child}
	if d.Kind == "" && d.Alias != "" && d.Child != "" {
		d.Kind = "project"
	}
	return d
}
