package rundir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// The record of a run across projects is in several places. The parent's meta.json declares the projects and contains a
// copy of each project's result. The authoritative record of a project is its own meta.json, in the folder of its
// alias. Folders that the parent does not declare are ignored,
// unless their meta.json claims to be a project of a run.

// keyed is one member of a JSON object; keys may repeat.
type keyed struct {
	key   string
	value json.RawMessage
}

// keyedIn reads the members of an object in order; ok is false for other values.
func keyedIn(raw []byte) (all []keyed, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		key, err := dec.Token()
		e := keyed{key: fmt.Sprint(key)}
		if err != nil || dec.Decode(&e.value) != nil {
			return nil, false
		}
		all = append(all, e)
	}
	return all, true
}

// declared lists the aliases of the projects in meta.json in order, with repeats; none: the run has a single project.
func (c *check) declared() []string {
	if !c.good() {
		return nil
	}
	all, ok := keyedIn(c.object["projects"])
	if !ok {
		return nil
	}
	aliases := make([]string, len(all))
	for i, e := range all {
		aliases[i] = e.key
	}
	return aliases
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
		Declared: declared, Status: c.status(),
		Pending: decisionIn(c.object),
		Checkpoint: run.CrossCheckpoint{Pending: c.cross.pending, ID: c.cross.id, Kind: c.cross.kind,
			Alias: c.cross.alias, Child: c.cross.child},
	}
	inside, _ := keyedIn(c.object.in("phases")["projects"]) // nothing, if it is not an object
	copied, named := map[string]json.RawMessage{}, map[string]bool{}
	for _, e := range inside {
		copied[e.key] = e.value
	}
	for _, alias := range declared {
		if named[alias] {
			continue
		}
		named[alias] = true
		child, err := c.readChild(alias, copied[alias])
		if err != nil {
			return err
		}
		if !f.Status.Closed() && !f.Pending.Passes(child) {
			child.Pending = nil // it is not forwarded yet: questions of projects are asked one at a time
		}
		f.Children = append(f.Children, child)
	}
	stray, err := c.strayChildren(declared)
	f.Children = append(append(f.Children, c.otherChildren(inside, named)...), stray...)
	p := run.Across(f)
	c.parent = &p
	return err
}

// otherChildren lists undeclared projects in meta.json, and repeated copies of one project.
func (c *check) otherChildren(inside []keyed, named map[string]bool) []run.ChildFacts {
	var others []run.ChildFacts
	seen := map[string]bool{}
	for _, e := range inside {
		if seen[e.key] || !named[e.key] {
			others = append(others, run.ChildFacts{Alias: e.key})
		}
		seen[e.key], named[e.key] = true, true
	}
	return others
}

// readChild reads the two records of one project: its own, and the copy in the parent's.
func (c *check) readChild(alias string, embedded json.RawMessage) (run.ChildFacts, error) {
	f := run.ChildFacts{Alias: alias, Cursor: c.cross.cursor.text(alias)}
	switch copied, err := objectOf(embedded); {
	case len(embedded) == 0 || string(embedded) == "null":
	case err != nil:
		f.Embedded = run.Malformed
	default:
		f.Embedded, f.Inside = run.Present, copied.text("status")
	}
	o, found, err := childMeta(c.dir, alias)
	if f.Own = found; o == nil {
		return f, err
	}
	last := o.in("phases").in("final_acceptance")
	f.Status, f.Halted, f.Verdict, f.Pending = o.text("status"), o.text("halt_reason"), last.text("verdict"),
		decisionIn(o)
	var ready *bool
	if json.Unmarshal(last["ship_ready"], &ready) == nil {
		f.ShipReady = ready
	}
	return f, nil
}

// childMeta reads meta.json in the folder of a project; nil: it does not exist, or is not a JSON object. An alias that
// is not a folder name has none.
func childMeta(d Dir, alias string) (object, run.Observation, error) {
	if alias == "" || !filepath.IsLocal(alias) || strings.ContainsAny(alias, `/\`) {
		return nil, run.NotFound, nil
	}
	name := path.Join(alias, MetaFile)
	if fi, err := d.Stat(name); err != nil || !fi.Mode().IsRegular() {
		return nil, run.NotFound, nil //nolint:nilerr // what is not a file there is not a record
	}
	raw, err := d.ReadFile(name)
	if err != nil {
		return nil, run.NotFound, err
	}
	o, err := objectOf(raw)
	if err != nil {
		return nil, run.Malformed, nil //nolint:nilerr // it is named as malformed
	}
	return o, run.Present, nil
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
		o, _, err := childMeta(c.dir, e.Name())
		if err != nil {
			return nil, err
		}
		alias := o.text("project_alias")
		if alias == "" || alias == e.Name() && slices.Contains(declared, alias) {
			continue
		}
		stray = append(stray, run.ChildFacts{Alias: alias})
	}
	return stray, nil
}

// decisionIn is the open question in a meta.json; nil: none with an ID.
func decisionIn(o object) *run.CrossDecision {
	h := o.in("phase_handoff")
	id := h.text("id")
	if id == "" {
		return nil
	}
	files := h.in("artifacts")
	d := &run.CrossDecision{
		ID: id, ParentID: cmp.Or(h.text("parent_handoff_id"), id), Kind: h.text("kind"),
		Alias: cmp.Or(h.text("project_alias"), files.text("project_alias")),
		Child: cmp.Or(h.text("child_handoff_id"), files.text("child_handoff_id")),
	}
	if d.Kind == "" && d.Alias != "" && d.Child != "" {
		d.Kind = "project"
	}
	return d
}
