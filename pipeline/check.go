package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/pipeline/expression"
	"github.com/passbook-run/passbook/pipeline/template"
)

func (d *decoder) problem(n *yaml.Node, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	d.found = append(d.found, Problem{File: d.file, Line: max(n.Line, 1), Column: n.Column, What: what})
}

func (d *decoder) problemAt(line int, format string, args ...any) {
	d.found = append(d.found, Problem{File: d.file, Line: max(line, 1), What: fmt.Sprintf(format, args...)})
}

// wrong reports a problem with the value at a location.
func (d *decoder) wrong(at location, format string, args ...any) {
	_, value, _ := d.find(at)
	d.problem(value, "%s "+format, append([]any{d.name(at)}, args...)...)
}

// checks report what neither tags nor rules can express, in this order.
var checks = []struct {
	name  string // of what they are about
	check func(*decoder)
}{
	{"limits", func(d *decoder) { d.ascending(nil, d.def.Limits) }},
	{"artifact", func(d *decoder) { d.existing(location{"artifact", "seed"}) }},
	{"notes", (*decoder).checkNotes},
	{"files", (*decoder).checkFiles},
	{"schemas", (*decoder).checkSchemas}, // prompts have members of outputs, whose types are those of the schemas
	{"roles", (*decoder).checkRoles},
	{"inputs", (*decoder).checkInputs},
	{"projects", (*decoder).checkProjects},
	{"stages", (*decoder).checkStages},
	{"references", (*decoder).checkReferences},
	{"outputs", (*decoder).checkOutputs},
	{"lanes", (*decoder).checkLanes},
	{"commands", (*decoder).checkCommands},
	{"networks", (*decoder).checkNetworks},
	{"usage", (*decoder).checkUsage},
	{"budget", (*decoder).checkBudget},
}

func (d *decoder) checkNotes() {
	files, markers := map[string]string{}, map[string]string{}
	for _, n := range d.def.Notes {
		at := location{"notes", n.Name}
		d.unique(at.key("file"), n.File, n.Name, files)
		d.unique(at.key("marker"), n.Marker, n.Name, markers)
	}
}

func (d *decoder) checkFiles() {
	d.files(location{"always_read"})
	for _, s := range d.def.Corpus {
		d.files(location{"corpus", s.ID, "files"})
	}
}

func (d *decoder) checkRoles() {
	for i := range d.def.Roles {
		d.checkRole(&d.def.Roles[i])
	}
}

// existing checks that the path at a location names a file.
func (d *decoder) existing(at location) (string, bool) {
	n := d.get(at)
	if n == nil || n.Tag != "!!str" || checkLocalPath(n.Value) != nil {
		return "", false // already reported
	}
	clean := path.Clean(n.Value)
	info, err := fs.Stat(d.folder, clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.wrong(at, "names %s, and there is no such file; create it or correct the path", clean)
	case err != nil:
		d.wrong(at, "names %s, which cannot be checked: %v; correct the path or its permissions", clean, err)
	case info.IsDir():
		d.wrong(at, "names %s, which is a folder; name a file", clean)
	case !info.Mode().IsRegular():
		d.wrong(at, "names %s, which is not a regular file; name one", clean)
	default:
		return clean, true
	}
	return clean, false
}

// files checks a list of labelled paths: every file exists and every label is unique.
func (d *decoder) files(at location) {
	lines := map[string]int{}
	for i, item := range d.items(at) {
		if item.Kind != yaml.MappingNode || len(item.Content) != 2 {
			continue
		}
		label := item.Content[0]
		if err := checkLabel(label.Value); err != nil {
			d.problem(label, "%s: label %q %v", d.name(at), label.Value, err)
			continue
		}
		if line, dup := lines[label.Value]; dup {
			d.problem(label, "%s: label %q is there twice, first on line %d; give each file its own", d.name(at),
				label.Value, line)
		}
		lines[label.Value] = label.Line
		d.existing(at.item(i).key(label.Value))
	}
}

// unique reports a value that is already used by another owner.
func (d *decoder) unique(at location, value, owner string, owners map[string]string) {
	if other, dup := owners[value]; dup && value != "" {
		d.wrong(at, "is %s, the same as in %s; choose another", value, other)
	}
	owners[value] = owner
}

// ascending checks the waits in the limits at a location.
func (d *decoder) ascending(at location, l Limits) {
	check := func(key string, first, most time.Duration) {
		if at := at.key("limits").key(key); d.get(at) != nil && first > most {
			d.wrong(at, "waits %s first and at most %s; write a max that is not below first", first, most)
		}
	}
	check("backoff", l.Backoff.First, l.Backoff.Max)
	c := l.Complete()
	check("wait", c.Wait.First, c.Wait.Max)
	check("unknown_reset", c.UnknownReset.First, c.UnknownReset.Max)
	check("after_reset", c.AfterReset.Min, c.AfterReset.Max)
	agents := d.keys(location{"agents"})
	for _, n := range d.items(at.key("limits").key("fallback")) {
		if n.Tag == "!!str" && !slices.Contains(agents, n.Value) {
			d.problem(n, "%s has %q, not one of agents; %s", d.name(at.key("limits").key("fallback")), n.Value,
				suggest(n.Value, agents))
		}
	}
	if at := at.key("limits").key("idle"); d.get(at) != nil && l.Idle >= l.Timeout {
		d.wrong(at, "is %s, and timeout is %s; write a shorter idle, or leave it out", l.Idle, l.Timeout)
	}
}

func (d *decoder) checkRole(r *Role) {
	at := location{"roles", r.Name}
	notes := make([]string, len(d.def.Notes))
	for i, n := range d.def.Notes {
		notes[i] = n.Name
	}
	for _, n := range d.items(at.key("notes")) {
		if n.Tag == "!!str" && !slices.Contains(notes, n.Value) {
			d.problem(n, "%s has %q, not a note of this pipeline; %s", d.name(at.key("notes")), n.Value,
				suggest(n.Value, notes))
		}
	}
	if r.Agent != "" && !slices.ContainsFunc(d.def.Agents, func(a Agent) bool { return a.Name == r.Agent }) {
		d.wrong(at.key("agent"), "is %q, not one of agents; %s", r.Agent,
			suggest(r.Agent, append(d.keys(location{"agents"}), presetNames()...)))
	}
	lines := map[string]int{}
	for i, item := range d.items(at.key("checks")) {
		name := d.get(at.key("checks").item(i).key("name"))
		if name == nil || name.Tag != "!!str" {
			continue
		}
		if line, dup := lines[name.Value]; dup {
			d.wrong(at.key("checks").item(i), "%q is there twice, first on line %d; keep one of them", name.Value, line)
		}
		lines[name.Value] = item.Line
	}
	d.ascending(at, r.Limits)
	d.checkSession(at.key("session"), *r)
	d.checkGuard(at, *r)
	d.checkPrompt(at.key("prompt"), r)
	d.checkApproves(at.key("verdict"), *r)
	r.Once = d.def.calls(r.Name) == 1 && !d.def.taken(r.Name) && expression.Name(r.Name)
}

// checkSession reports a role whose agent cannot continue sessions.
func (d *decoder) checkSession(at location, r Role) {
	i := slices.IndexFunc(d.def.Agents, func(a Agent) bool { return a.Name == r.Agent })
	if r.Session != SessionContinue || i < 0 || d.def.Agents[i].Sessions() {
		return
	}
	d.wrong(at, "is %s, and its agent cannot continue sessions; use an agent with the command of claude, codex or "+
		"gemini that selects no session, or remove the key", r.Session)
}

// checkGuard reports keys about a workspace that have no effect.
func (d *decoder) checkGuard(at location, r Role) {
	if !r.Protected() && d.def.Workspace == nil {
		d.wrong(at.key("protect"), "is false, and the pipeline has no workspace; leave it out")
	}
}

// checkPrompt checks a role's prompt file and records which parts of the prompt it places itself. Problems inside the
// file are reported with its name and line.
func (d *decoder) checkPrompt(at location, r *Role) {
	p, ok := d.existing(at)
	r.Prompt = p
	if !ok {
		return
	}
	src, err := fs.ReadFile(d.folder, p)
	if err != nil {
		d.wrong(at, "names %s, which cannot be read: %v; correct the path or its permissions", p, err)
		return
	}
	if strings.TrimSpace(string(src)) == "" {
		d.wrong(at, "names %s, which is blank; write what the role is asked", p)
	}
	keys := make([]string, len(r.With))
	for i, w := range r.With {
		keys[i] = w.Key
	}
	d.def.takeIssue(string(src))
	known := slices.Concat(template.Reserved(), d.def.promptNames(), issueInputs)
	for _, piece := range template.Unknown(string(src), keys, known) {
		if d.def.namesOutput(piece.Name) {
			continue // its members are checked with the steps
		}
		what := fmt.Sprintf("%s is not a placeholder; %s (the text itself is written \\%[1]s)", piece.Text,
			suggest(piece.Name, known))
		if key, with := template.WithKey(piece.Name); with {
			what = fmt.Sprintf("%s has no value; write with: {%s: ...} in the role, or drop it here", piece.Text, key)
		}
		d.found = append(d.found, Problem{File: p, Line: piece.Line, What: what})
	}
	r.Places, r.Uses = template.Placed(string(src)), d.def.usedBy(string(src))
}

func (d *decoder) checkStages() {
	lines := map[string]int{}
	checkpoints, folders := map[string]string{}, map[string]string{}
	for i, s := range d.def.Stages {
		at := location{"stages"}.item(i)
		key, _, _ := d.find(at.key("name"))
		if line, dup := lines[s.Name]; dup && s.Name != "" {
			d.problem(key, "stage %q is there twice, first on line %d; give each stage its own name", s.Name, line)
		} else if s.Name == FreshStage {
			d.problem(key, "stage %q has the name of the last check in a fresh folder; choose another name", s.Name)
		}
		lines[s.Name] = key.Line
		d.checkSlots(at.key("checkpoint"), s.Checkpoint, s)
		d.checkSlots(at.key("dir"), s.Dir, s)
		d.unique(at.key("checkpoint"), s.Checkpoint, "stage "+s.Name, checkpoints)
		d.unique(at.key("dir"), s.Dir, "stage "+s.Name, folders)
		for j, step := range s.Steps {
			d.checkStep(d.steps(at, s).item(j), step, s)
		}
	}
}

func (d *decoder) checkStep(at location, step Step, s Stage) {
	orders := make([]string, len(s.Orders))
	for i, o := range s.Orders {
		orders[i] = o.Name
	}
	if step.Order != "" && !slices.Contains(orders, step.Order) {
		d.wrong(at.key("order"), "is %q, not one of the stage's orders; %s", step.Order, suggest(step.Order, orders))
	}
	if step.Limits != nil {
		d.ascending(at, *step.Limits)
	}
}

var (
	slot     = lazyregexp.New(`\{[^{}]*\}`)
	filledIn = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)
)

// checkSlots checks a checkpoint or dir: a name with the slot {set} or {n}, which distinguishes the rounds of the
// stage.
func (d *decoder) checkSlots(at location, text string, s Stage) {
	if text == "" {
		return
	}
	if at[len(at)-1] == "checkpoint" && strings.Contains(text, "/") {
		d.wrong(at, "is %q; write a name without folders", text)
	}
	if !filledIn.MatchString(slot.ReplaceAllString(text, "x")) {
		d.wrong(at, "is %q; use letters, digits, dots, dashes and underscores, and {set} or {n}", text)
	}
	want, advice := "", "the stage has one round, so drop it"
	switch {
	case s.ForEach != "":
		want = "{set}"
	case s.Repeat != nil:
		want = "{n}"
	}
	if want != "" {
		advice = "write " + want + " where the rounds differ"
	}
	for _, found := range slot.FindAllString(text, -1) {
		if found != want {
			d.wrong(at, "has %s, which has no value here; %s", found, advice)
		}
	}
	if !strings.Contains(text, cmp.Or(want, text)) {
		d.wrong(at, "is %q for every round; %s", text, advice)
	}
}
