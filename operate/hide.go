package operate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// hideStart hides the secrets in the words of a run's first event. Nobody keeps the words as they were: an agent gets the hidden ones, too.
func (o Operator) hideStart(s *run.RunStart) {
	s.Task = o.Redact.Text(s.Task)
	s.Warnings, s.Found = slices.Clone(s.Warnings), slices.Clone(s.Found)
	for i := range s.Warnings {
		s.Warnings[i] = o.Redact.Text(s.Warnings[i])
	}
	for i := range s.Found {
		s.Found[i].Message, s.Found[i].Diagnostics = o.Redact.Text(s.Found[i].Message), o.Redact.Text(s.Found[i].Diagnostics)
	}
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
