package operations

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/workflows/contract"
)

// hiddenInput redacts the texts in the input of an execution. The originals are not kept: agents get the redacted
// texts too.
func (o Operator) hiddenInput(in contract.Input) contract.Input {
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
	r.Note, r.Reason, r.Overruled = hide(r.Note), hide(r.Reason), slices.Clone(r.Overruled)
	for i := range r.Overruled {
		r.Overruled[i] = hide(r.Overruled[i])
	}
	if r.Amend != nil {
		m := r.Amend.Redacted(hide)
		r.Amend = &m
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

// hidden redacts the texts of a message.
func (o Operator) hidden(m contract.Message) contract.Message { return m.Redacted(o.Redact.Text) }

// notText refuses a message whose texts are not text, such as a file of bytes in place of feedback: an encoder would
// change them, and the signature would not match.
func notText(verb string, m contract.Message) error {
	for _, text := range []string{m.By, m.Note, m.Feedback, m.Reason, m.Text, m.Role, m.Action, m.ID, m.To} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return &RefusedError{Verb: verb, Why: "the message contains bytes that are not UTF-8 text: put them into a " +
				"file and name the file"}
		}
	}
	return nil
}

// secretInputs lists the inputs that contain secrets. They are the user's data and stay unchanged.
func (o Operator) secretInputs(def Definition) []string {
	var lines []string
	look := func(name string, data []byte) {
		if kinds := o.Redact.Kinds(string(data)); len(kinds) > 0 {
			lines = append(lines,
				fmt.Sprintf("%s contains what looks like a secret (%s): the run keeps the file unchanged, in its "+
					"store and under inputs/. "+
					"Logs and reports show it redacted", name, strings.Join(kinds, ", ")))
		}
	}
	look("the definition", def.Source)
	for _, name := range def.files() {
		if data, err := fs.ReadFile(def.Folder, name); err == nil { // storing it reports that it cannot be read
			look(name, data)
		}
	}
	return lines
}
