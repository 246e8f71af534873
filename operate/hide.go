package operate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/workflows"
)

// hiddenInput gives the input of an execution without the secrets in its words. Nobody keeps the words as they were: an agent gets the hidden ones, too.
func (o Operator) hiddenInput(in workflows.Input) workflows.Input {
	hide, s := o.Redact.Text, &in.Start
	s.Task = hide(s.Task)
	s.Warnings, s.Found = slices.Clone(s.Warnings), slices.Clone(s.Found)
	for i := range s.Warnings {
		s.Warnings[i] = hide(s.Warnings[i])
	}
	for i := range s.Found {
		s.Found[i].Message, s.Found[i].Diagnostics = hide(s.Found[i].Message), hide(s.Found[i].Diagnostics)
	}
	if in.Reopen == nil {
		return in
	}
	r := *in.Reopen
	r.Note, r.Why, r.Overruled = hide(r.Note), hide(r.Why), slices.Clone(r.Overruled)
	for i := range r.Overruled {
		r.Overruled[i] = hide(r.Overruled[i])
	}
	if r.Decision != nil {
		d := o.hidden(*r.Decision)
		r.Decision = &d
	}
	if r.Revert != nil {
		v := *r.Revert
		v.Note = hide(v.Note)
		r.Revert = &v
	}
	in.Reopen = &r
	return in
}

// hidden gives a message without the secrets in its words.
func (o Operator) hidden(m workflows.Message) workflows.Message { return m.Hidden(o.Redact.Text) }

// secretInputs names what a run is given and what holds secrets: it is the user's data, and is kept as it is.
func (o Operator) secretInputs(def Definition) []string {
	var said []string
	look := func(name string, data []byte) {
		if kinds := o.Redact.Kinds(string(data)); len(kinds) > 0 {
			said = append(said, fmt.Sprintf("%s holds what looks like a secret (%s): the run keeps the file as it is, in its store and under inputs/. "+
				"What is written about the work shows it hidden", name, strings.Join(kinds, ", ")))
		}
	}
	look("the definition", def.Source)
	for _, name := range def.files() {
		if data, err := fs.ReadFile(def.Folder, name); err == nil { // that it cannot be read is said where it is stored
			look(name, data)
		}
	}
	return said
}
