package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// top is how messages call the outermost mapping.
const top = "the pipeline"

// maxSource bounds a definition: a megabyte of YAML is a mistake, not a pipeline.
const maxSource = 1 << 20

// Parse reads and checks a definition. file is its name, for messages; folder is the folder it is in, where every path it names is
// looked up (an os.Root's FS keeps links inside). With any problem the definition is nil, and all problems are there at once.
// Test them with len: Problems is an error only when it is not empty.
func Parse(file string, src []byte, folder fs.FS) (*Definition, Problems) {
	d := &decoder{file: file, folder: folder, def: &Definition{File: file}}
	d.lines = lines{steps: map[string]int{}, until: map[string]int{}, gate: map[string]int{}}
	if root := d.document(src); root != nil {
		d.definition(root)
	}
	if len(d.found) > 0 {
		return nil, d.found.sorted(file)
	}
	return d.def, nil
}

// document returns the outermost node of the only document, or nil when there is none.
func (d *decoder) document(src []byte) *yaml.Node {
	if len(src) > maxSource {
		d.problemAt(1, "the file has %d bytes; a pipeline has at most %d, keep long texts in files of their own", len(src), maxSource)
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
	return resolve(doc.Content[0])
}

func (d *decoder) definition(root *yaml.Node) {
	o, ok := d.object(root, top, "pipeline", "kind", "agent", "agents", "limits", "budget", "artifact", "workspace", "snapshots", "notes",
		"always_read", "roles", "corpus", "questions", "notify", "delivery", "stages")
	if !ok {
		return
	}
	d.def.Name = o.needText("pipeline", "pipeline: NAME")
	if n := o.values["pipeline"]; n != nil {
		d.checkName(n, "pipeline", d.def.Name)
	}
	if o.has("kind") {
		d.def.Kind = o.oneOf("kind", KindPlanning, KindResearch)
	}
	d.agents(o)
	d.def.Limits = d.limits(o, defaultLimits(), "time_scale")
	d.budget(o)
	d.artifact(o)
	d.workspace(o)
	d.snapshots(o)
	d.notes(o)
	if n := o.values["always_read"]; n != nil {
		d.def.AlwaysRead = d.files(n, "always_read")
	}
	d.roles(o)
	d.corpus(o)
	d.def.Questions = d.questions(o, Questions{})
	d.notify(o)
	d.delivery(o)
	d.stages(o)
}

// named reads a mapping of names to things. Names are checked; each thing is read by read.
func (d *decoder) named(n *yaml.Node, path, what string, read func(key *yaml.Node, value *yaml.Node, path string)) {
	entries, ok := d.mapping(n, path)
	if ok && len(entries) == 0 {
		d.problem(n, "%s is an empty mapping; put something in it or leave the key out", path)
	}
	for _, e := range entries {
		d.checkName(e.key, what, e.key.Value)
		read(e.key, e.value, fmt.Sprintf("%s.%s", path, e.key.Value))
	}
}
