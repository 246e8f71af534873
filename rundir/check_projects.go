package rundir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// The record of a run across projects is in several places. The parent's meta.json declares the projects and holds a copy of what became of each; the
// truth of a project is its own meta.json, in the folder of its alias; its phases are in the stream of the parent. Folders that the parent does not
// declare are not looked for, but one that calls itself a project of a run is taken at its word.

// keyed is one member of a JSON object, repeats included.
type keyed struct {
	key   string
	value json.RawMessage
}

// keyedIn reads the members of an object in their order; ok is false for anything else.
func keyedIn(raw []byte) (all []keyed, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		e := keyed{key: fmt.Sprint(key)}
		if dec.Decode(&e.value) != nil {
			return nil, false
		}
		all = append(all, e)
	}
	return all, true
}

// declared are the aliases of the projects that meta.json declares, in their order, repeats included; none: the run is of one project.
func (x *examined) declared() []string {
	if !x.meta.good() {
		return nil
	}
	all, ok := keyedIn(x.meta.object.values["projects"])
	if !ok {
		return nil
	}
	aliases := make([]string, len(all))
	for i, e := range all {
		aliases[i] = e.key
	}
	return aliases
}

// CrossParent says how a run across projects stands, and each project of it; nil: the run is of one project. It only reads.
func (d Dir) CrossParent(ctx context.Context) (*run.CrossParent, error) {
	x := &examined{dir: d}
	if err := x.readMeta(); err != nil || len(x.declared()) == 0 {
		return nil, err
	}
	if err := x.readStream(ctx); err != nil {
		return nil, err
	}
	if err := x.readCross(); err != nil {
		return nil, err
	}
	err := x.readProjects()
	return x.parent, err
}

// judgeProjects compares the records of the parent, of its children and of the checkpoint.
func (x *examined) judgeProjects() {
	if x.parent == nil {
		return
	}
	for _, v := range x.parent.Violations {
		text := violationText(v.Code)
		if v.Alias != "" {
			text = fmt.Sprintf("project %s: %s", v.Alias, text)
		}
		x.find(crossParentCode(v.Code), text)
	}
}

// readProjects reads what is recorded of the projects; nothing, if none is declared.
func (x *examined) readProjects() error {
	declared := x.declared()
	if len(declared) == 0 {
		return nil
	}
	f := run.CrossFacts{
		Declared: declared, Status: x.meta.status(), Working: x.stream.work.Working(""), Pending: decisionIn(x.meta.object),
		Checkpoint: run.CrossCheckpoint{Pending: x.cross.pending, ID: x.cross.id, Kind: x.cross.kind, Alias: x.cross.alias, Child: x.cross.child},
	}
	inside, _ := keyedIn(objectIn(x.meta.object, "phases").values["projects"]) // nothing, if it is no object
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
		f.Children = append(f.Children, child)
	}
	stray, err := x.strayChildren(declared)
	f.Children = append(append(f.Children, x.otherChildren(inside, named)...), stray...)
	p := run.Across(f)
	x.parent = &p
	return err
}

// otherChildren are those that meta.json or the stream names beside the projects that are declared, and copies of one project that are there twice.
func (x *examined) otherChildren(inside []keyed, named map[string]bool) []run.ChildFacts {
	var others []run.ChildFacts
	seen := map[string]bool{}
	for _, e := range inside {
		if seen[e.key] || !named[e.key] {
			others = append(others, run.ChildFacts{Alias: e.key})
		}
		seen[e.key], named[e.key] = true, true
	}
	for _, alias := range x.stream.work.Children() {
		if !named[alias] {
			others = append(others, run.ChildFacts{Alias: alias})
		}
	}
	return others
}

// readChild reads the two records of one project: its own, and the copy in the parent's.
func (x *examined) readChild(alias string, embedded json.RawMessage) (run.ChildFacts, error) {
	f := run.ChildFacts{Alias: alias, Cursor: x.cross.cursor.text(alias), Working: x.stream.work.Working(alias)}
	switch copied, err := parseObject(embedded); {
	case len(embedded) == 0 || string(embedded) == "null":
	case err != nil:
		f.Embedded = run.Malformed
	default:
		f.Embedded, f.Inside = run.Present, copied.text("status")
	}
	o, found, err := x.dir.childMeta(alias)
	if f.Own = found; o == nil {
		return f, err
	}
	last := objectIn(objectIn(o, "phases"), "final_acceptance")
	f.Status, f.Halted, f.Verdict, f.Pending = o.text("status"), o.text("halt_reason"), last.text("verdict"), decisionIn(o)
	var ready *bool
	if json.Unmarshal(last.values["ship_ready"], &ready) == nil {
		f.ShipReady = ready
	}
	return f, nil
}

// childMeta reads meta.json in the folder of a project; nil: there is none, or it is no JSON object. An alias that is no folder name has none.
func (d Dir) childMeta(alias string) (*object, run.Observation, error) {
	if alias == "" || !filepath.IsLocal(alias) || strings.ContainsAny(alias, `/\`) {
		return nil, run.NotFound, nil
	}
	name := d.Path(path.Join(alias, MetaFile))
	if fi, err := os.Stat(name); err != nil || !fi.Mode().IsRegular() {
		return nil, run.NotFound, nil //nolint:nilerr // what is no file there is no record
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, run.NotFound, err
	}
	o, err := parseObject(raw)
	if err != nil {
		return nil, run.Malformed, nil //nolint:nilerr // it is named as malformed
	}
	return o, run.Present, nil
}

// strayChildren are the folders whose meta.json says that they are a project of a run, and that is not the one that the folder is named after.
func (x *examined) strayChildren(declared []string) ([]run.ChildFacts, error) {
	entries, err := os.ReadDir(x.dir.Root)
	if err != nil {
		return nil, err
	}
	var stray []run.ChildFacts
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		o, _, err := x.dir.childMeta(e.Name())
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

// decisionIn is the open question that a meta.json holds; nil: none that has an id.
func decisionIn(o *object) *run.CrossDecision {
	h := objectIn(o, "phase_handoff")
	id := h.text("id")
	if id == "" {
		return nil
	}
	files := objectIn(h, "artifacts")
	d := &run.CrossDecision{
		ID: id, ParentID: cmp.Or(h.text("parent_handoff_id"), id), Kind: h.text("kind"),
		Alias: cmp.Or(h.text("project_alias"), files.text("project_alias")), Child: cmp.Or(h.text("child_handoff_id"), files.text("child_handoff_id")),
	}
	if d.Kind == "" && d.Alias != "" && d.Child != "" {
		d.Kind = "project"
	}
	return d
}
