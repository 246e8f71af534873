package fsck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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
func (x *examined) declared() []string {
	if !x.meta.good() {
		return nil
	}
	all, ok := keyedIn(x.meta.object.Values["projects"])
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
func (x *examined) judgeProjects() {
	if x.parent == nil {
		return
	}
	for _, v := range x.parent.Violations {
		text := string(v.Detail)
		if v.Alias != "" {
			text = fmt.Sprintf("project %s: %s", v.Alias, text)
		}
		x.findCross(CrossParentContradiction, text)
	}
}

// readProjects reads the records of the projects, if there are any.
func (x *examined) readProjects() error {
	declared := x.declared()
	if len(declared) == 0 {
		return nil
	}
	f := run.CrossFacts{
		Declared: declared, Status: x.meta.status(),
		Pending: decisionIn(x.meta.object),
		Checkpoint: run.CrossCheckpoint{Pending: x.cross.pending, ID: x.cross.id, Kind: x.cross.kind,
			Alias: x.cross.alias, Child: x.cross.child},
	}
	inside, _ := keyedIn(object.ObjectIn(x.meta.object, "phases").Values["projects"]) // nothing, if it is not an object
	copied, named := map[string]json.RawMessage{}, map[string]bool{}
	for _, e := range inside {
		copied[e.key] = e.value
	}
	for _, alias := range declared {
		if named[alias] {
			continue
		}
		named[alias] = true
		child, err := x.readChild(alias, copied[alias])
		if err != nil {
			return err
		}
		if !f.Status.Closed() && !f.Pending.Passes(child) {
			child.Pending = nil // it is not forwarded yet: questions of projects are asked one at a time
		}
		f.Children = append(f.Children, child)
	}
	stray, err := x.strayChildren(declared)
	f.Children = append(append(f.Children, x.otherChildren(inside, named)...), stray...)
	p := run.Across(f)
	x.parent = &p
	return err
}

// otherChildren lists undeclared projects in meta.json, and repeated copies of one project.
func (x *examined) otherChildren(inside []keyed, named map[string]bool) []run.ChildFacts {
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
func (x *examined) readChild(alias string, embedded json.RawMessage) (run.ChildFacts, error) {
	f := run.ChildFacts{Alias: alias, Cursor: x.cross.cursor.Text(alias)}
	switch copied, err := object.ParseObject(embedded); {
	case len(embedded) == 0 || string(embedded) == "null":
	case err != nil:
		f.Embedded = run.Malformed
	default:
		f.Embedded, f.Inside = run.Present, copied.Text("status")
	}
	o, found, err := childMeta(x.dir.Dir, alias)
	if f.Own = found; o == nil {
		return f, err
	}
	last := object.ObjectIn(object.ObjectIn(o, "phases"), "final_acceptance")
	f.Status, f.Halted, f.Verdict, f.Pending = o.Text("status"), o.Text("halt_reason"), last.Text("verdict"),
		decisionIn(o)
	var ready *bool
	if json.Unmarshal(last.Values["ship_ready"], &ready) == nil {
		f.ShipReady = ready
	}
	return f, nil
}

// childMeta reads meta.json in the folder of a project; nil: it does not exist, or is not a JSON object. An alias that
// is not a folder name has none.
func childMeta(d rundir.Dir, alias string) (*object.Object, run.Observation, error) {
	if alias == "" || !filepath.IsLocal(alias) || strings.ContainsAny(alias, `/\`) {
		return nil, run.NotFound, nil
	}
	name := path.Join(alias, layout.MetaFile)
	if fi, err := d.Stat(name); err != nil || !fi.Mode().IsRegular() {
		return nil, run.NotFound, nil //nolint:nilerr // what is not a file there is not a record
	}
	raw, err := d.ReadFile(name)
	if err != nil {
		return nil, run.NotFound, err
	}
	o, err := object.ParseObject(raw)
	if err != nil {
		return nil, run.Malformed, nil //nolint:nilerr // it is named as malformed
	}
	return o, run.Present, nil
}

// strayChildren lists folders whose meta.json claims to be a project of a run with another name than that of the
// folder.
func (x *examined) strayChildren(declared []string) ([]run.ChildFacts, error) {
	entries, err := x.dir.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var stray []run.ChildFacts
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		o, _, err := childMeta(x.dir.Dir, e.Name())
		if err != nil {
			return nil, err
		}
		alias := o.Text("project_alias")
		if alias == "" || alias == e.Name() && slices.Contains(declared, alias) {
			continue
		}
		stray = append(stray, run.ChildFacts{Alias: alias})
	}
	return stray, nil
}

// decisionIn is the open question in a meta.json; nil: none with an ID.
func decisionIn(o *object.Object) *run.CrossDecision {
	h := object.ObjectIn(o, "phase_handoff")
	id := h.Text("id")
	if id == "" {
		return nil
	}
	files := object.ObjectIn(h, "artifacts")
	d := &run.CrossDecision{
		ID: id, ParentID: cmp.Or(h.Text("parent_handoff_id"), id), Kind: h.Text("kind"),
		Alias: cmp.Or(h.Text("project_alias"), files.Text("project_alias")),
		Child: cmp.Or(h.Text("child_handoff_id"), files.Text("child_handoff_id")),
	}
	if d.Kind == "" && d.Alias != "" && d.Child != "" {
		d.Kind = "project"
	}
	return d
}
