package pipeline

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"reflect"

	"go.yaml.in/yaml/v3"

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
}

// Parse reads and checks a definition. file is its name, for messages. folder is the folder that contains it: every
// path in the definition is relative to it (an os.Root's FS keeps links inside). If there is any problem, the
// definition is nil and all problems are returned together. Test them with len: Problems is an error only if it is not
// empty.
//
// The tags of the types define keys and values, and [rules] which keys go together; the JSON Schema has the same. What these
// cannot express (files that must exist, names that refer to one another, limits against each other) is checked on the decoded
// definition, see [checks]. Workflow code must not call Parse.
//
// A budget can be kept if the price of a model is known: to priced, or among the list prices if there is no priced.
func Parse(file string, src []byte, folder fs.FS, priced ...func(model string) bool) (*Definition, Problems) {
	d := &decoder{file: file, folder: folder, def: &Definition{}, priced: priced}
	if len(priced) == 0 {
		d.priced = append(priced, price.Known().Has)
	}
	if root := d.document(src); root != nil {
		d.root = d.flatten(root)
		setDefaults(reflect.ValueOf(d.def).Elem())
		d.def.File = file
		d.mapping(nil, d.root, reflect.ValueOf(d.def).Elem(), key{})
		d.presets()
		for _, c := range checks {
			c.check(d)
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
