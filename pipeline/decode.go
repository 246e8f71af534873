package pipeline

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/price"
)

// maxSource bounds a definition: a larger file is a mistake.
const maxSource = 1 << 20

// decoder reads one file. It does not stop at a problem: it records the problem and continues with a zero value.
type decoder struct {
	file   string
	folder fs.FS
	root   *yaml.Node // without aliases and merges
	def    *Definition
	priced []func(model string) bool // any of them knows the price of a model
	found  Problems
	unread []string // errors of the YAML library, which could not decode into the types
}

// Parse reads and checks a definition. file is its name, for messages. folder is the folder that contains it: every
// path in the definition is relative to it (an os.Root's FS keeps links inside). If there is any problem, the
// definition is nil and all problems are returned together. Test them with len: Problems is an error only if it is not
// empty.
//
// The embedded JSON Schema defines keys and values. What it cannot express (files that must exist, names that refer to
// one another, limits against each other) is checked on the decoded definition. Workflow code must not call Parse.
//
// A budget can be kept if the price of a model is known: to priced, or among the list prices if there is no priced.
func Parse(file string, src []byte, folder fs.FS, priced ...func(model string) bool) (*Definition, Problems) {
	d := &decoder{file: file, folder: folder, def: &Definition{File: file}, priced: priced}
	if len(priced) == 0 {
		d.priced = append(priced, price.Known().Has)
	}
	if root := d.document(src); root != nil {
		d.root = d.flatten(root)
		d.desugar()
		left := d.checkShape()
		d.decode()
		d.check()
		if len(d.found) == 0 {
			d.unreadable(left)
		}
	}
	if len(d.found) > 0 {
		return nil, d.found.sorted(file)
	}
	return d.def, nil
}

// document returns the root node of the only document, or nil if there is none.
func (d *decoder) document(src []byte) *yaml.Node {
	if len(src) > maxSource {
		d.problemAt(1, "the file has %d bytes; the maximum is %d, keep long texts in separate files", len(src),
			maxSource)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		d.problemAt(1, "the file is empty; begin with pipeline: NAME")
		return nil
	} else if err != nil {
		d.syntax(err, src)
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		d.problem(&second, "the file holds a second YAML document; keep one pipeline in a file")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, src)
	}
	return doc.Content[0]
}

// read decodes the node at a location, if it exists, over the value in into.
func (d *decoder) read(at location, into any) {
	n := d.get(at)
	if n == nil {
		return
	}
	var wrong *yaml.TypeError
	if err := n.Decode(into); errors.As(err, &wrong) {
		d.unread = append(d.unread, wrong.Errors...)
	} else if err != nil {
		d.unread = append(d.unread, err.Error())
	}
}

// named decodes a mapping of names to values, in the order of the file. Each value starts as a copy of base.
func named[T any](d *decoder, at location, base T, name func(*T) *string) []T {
	var out []T
	for _, key := range d.keys(at) {
		v := base
		d.read(at.key(key), &v)
		*name(&v) = key
		out = append(out, v)
	}
	return out
}

// decode fills the definition from the tree and applies defaults.
func (d *decoder) decode() {
	def := d.def
	def.Limits, def.Budget.WarnAt, def.Questions.Remind = defaultLimits(), 0.8, 8*time.Hour
	d.read(nil, def)
	if def.Wording == "" {
		def.Wording = WordingStages
	}
	if def.Snapshots != "full" {
		def.Snapshots = ""
	}
	if d.get(location{"agent"}) != nil {
		var a Agent
		d.read(location{"agent"}, &a)
		def.Agents = []Agent{a}
	}
	def.Agents = append(def.Agents, named(d, location{"agents"}, Agent{}, func(a *Agent) *string { return &a.Name })...)
	for i, a := range def.Agents {
		if a.Reply == "" && len(a.Run) > 0 && a.Run[0] == Scripted {
			def.Agents[i].Reply = adapter.ClaudeJSON
		}
	}
	d.questions(location{"questions"}, &def.Questions)
	def.Inputs = named(d, location{"inputs"}, Input{}, func(i *Input) *string { return &i.Name })
	def.Notes = named(d, location{"notes"}, Note{}, func(n *Note) *string { return &n.Name })
	def.Corpus = named(d, location{"corpus"}, Set{}, func(s *Set) *string { return &s.ID })
	def.Roles = named(d, location{"roles"}, Role{Limits: def.Limits}, func(r *Role) *string { return &r.Name })
	for i := range def.Roles {
		at := location{"roles", def.Roles[i].Name}
		def.Roles[i].Tally = named(d, at.key("tally"), Tally{}, func(t *Tally) *string { return &t.Name })
		def.Roles[i].With = named(d, at.key("with"), KeyText{}, func(w *KeyText) *string { return &w.Key })
	}
	d.presets()
	def.Projects = named(d, location{"projects"}, Project{}, func(p *Project) *string { return &p.Alias })
	for i := range d.items(location{"stages"}) {
		def.Stages = append(def.Stages, d.stage(location{"stages"}.item(i)))
	}
}

func (d *decoder) stage(at location) Stage {
	var s Stage
	d.read(at, &s)
	if s.Dir != "" {
		s.Dir = path.Clean(s.Dir)
	}
	s.Orders = named(d, at.key("orders"), Order{Den: 1}, func(o *Order) *string { return &o.Name })
	for i, o := range s.Orders {
		if o.Label == "" {
			s.Orders[i].Label = usualLabel(o)
		}
	}
	if s.Each != nil && s.Each.AtOnce == 0 {
		s.Each.AtOnce = defaultLanes
	}
	steps := d.steps(at, s)
	for i := range d.items(steps) {
		s.Steps = append(s.Steps, d.step(steps.item(i)))
	}
	return s
}

// steps returns the location of a stage's steps: the key for its kind if present, else the other key.
func (d *decoder) steps(stage location, s Stage) location {
	keys := []string{"steps", "passes"}
	if s.ForEach != "" {
		slices.Reverse(keys)
	}
	if d.get(stage.key(keys[0])) == nil {
		return stage.key(keys[1])
	}
	return stage.key(keys[0])
}

func (d *decoder) step(at location) Step {
	step := Step{Line: d.get(at).Line}
	d.read(at, &step)
	if ask := at.key(KindAsk); d.get(ask) != nil {
		step.AskType = AskAlways
		if d.get(ask).Kind != yaml.MappingNode {
			d.read(ask, &step.Ask)
		} else {
			d.read(ask.key("question"), &step.Ask)
			d.read(ask.key("type"), &step.AskType)
			step.Questions = new(d.def.Questions)
			d.read(ask, step.Questions)
			d.questions(ask, step.Questions)
		}
	}
	if limits := at.key("limits"); d.get(limits) != nil {
		step.Limits = new(d.def.Limits)
		if r, ok := d.roleNamed(step.Role); ok {
			*step.Limits = r.Limits
		}
		d.read(limits, step.Limits)
	}
	return step
}

// questions fills in how long a question waits.
func (d *decoder) questions(at location, q *Questions) {
	switch {
	case q.Expires > 0 && q.OnExpiry == "":
		q.OnExpiry = "halt"
	case q.Expires == 0 && d.get(at.key("on_expiry")) != nil:
		d.wrong(at.key("on_expiry"), "has no effect without expires; write expires: 72h or leave it out")
	}
}
