// Package pass composes prompts and reads replies. It is pure: text in, text and results out (requirement 002
// §1.2, §4.3).
//
// Text that goes into a prompt is not expanded again, cannot break out of its fence, and a reply always has the
// same result. The package does not count attempts, store files or decide what follows.
package pass

import "github.com/passbook-run/passbook/run"

// Text is one labelled text of a prompt.
type Text struct {
	Label string
	Body  string
}

// Request contains the parts of a prompt.
type Request struct {
	Template string   // the role's prompt file
	Gets     []string // pipeline.Part…: parts of this step, in addition to those that the template places
	Gives    string   // what to produce
	Schema   string   // of the JSON that the reply ends with; empty: it needs none
	Misfit   string   // why the reply before could not be used
	// text of the JSON Schema, but for that of a review
	SchemaText string
	Vars       Vars
	Wording    run.Wording
	// Empty parts are omitted.
	References []Text   // always-read files except Content
	Content    []Text   // the file labelled Content
	Notes      []Text   // accumulated notes, by name
	Replies    []Text   // of the steps it sees, by role or member
	Files      []Text   // in reading order
	Pictures   []string // paths relative to the working directory; without any, Artifact replaces them
	Artifact   Text     // Label is the file name
	Feedback   string   // the operator's feedback for an extra round
	Steering   []string // instructions that an operator gave the run
	Parent     string   // the run that this one follows up
	Adopted    string   // the conversation that the call continues
	Tampered   string   // protected files that the last pass changed and that were restored
	Fresh      []string // what passes only in the workspace, with the outputs of its commands
	Answers    *Answers // the question that the feedback answers; nil: none
}

// Answers is the question that feedback answers.
type Answers struct {
	Question string
	Verdict  string // that the question was about; empty: none
	Outputs  []Text // that the question was about, by role, as far as they are not among the replies
}

// Vars fill {{name}} in a template.
type Vars struct {
	Task        string // {{task}}: of the run; before the prompt if the template does not place it
	Base        string // {{base}}: base commit of a git workspace
	Description string // {{description}}
	Role        string // {{role}}
	Pass        int    // {{pass}}
	Passes      int    // {{passes}}
	Set         string // {{set}}
	Theme       string // {{theme}}
	Round       int    // {{n}}
	Rounds      int    // {{max}}
	Item        string // {{item}}: of a lane; before the prompt if the template does not place it
	With        []Text // {{with.KEY}}
	Inputs      []Text // {{NAME}}

	Outputs map[string]any // {{ID}}, {{ID.MEMBER}}
}

// Reading is the content of a reply.
type Reading struct {
	run.Reading
	Artifact []byte   // if the role returns an artifact and Outcome is CategoryOK: trimmed, with one newline
	Notes    []Text   // the marked blocks found: Label is the note's name, Body trimmed
	Review   *Review  // a structured verdict
	Data     []byte   // JSON of a role with a schema, on one line
	Scope    []string // paths that the work will change
}
