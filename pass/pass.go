// Package pass composes prompts and reads replies. It is pure: text in, text and judgements out (requirement 002 §1.2, §4.3).
//
// It promises that what goes into a prompt is never looked at again, that nothing breaks out of its fence, and that a reply is always
// judged the same way. It does not count attempts, keep files or decide what follows.
package pass

// Text is one labelled text of a prompt.
type Text struct {
	Label string
	Body  string
}

// Request is everything a prompt is made of.
type Request struct {
	Template string   // the role's prompt file
	Gets     []string // pipeline.Part…: what this step is given. What the template places is given in any case
	Gives    string   // pipeline.Gives…: what it is to produce
	Vars     Vars
	// Each is left out of the prompt when empty.
	References []Text   // always-read files but the one labelled Content
	Content    []Text   // the file labelled Content
	Notes      []Text   // accumulated notes so far, by name
	Replies    []Text   // of the steps it sees, by role or member
	Files      []Text   // in reading order
	Pictures   []string // paths the agent can open, relative to its working directory; without any, Artifact stands in
	Artifact   Text     // Label is the file name
	Feedback   string   // the operator's words for an extra round
}

// Vars fill {{name}} in a template.
type Vars struct {
	Task        string // {{task}}: of the run; it stands before the prompt where the template does not place it
	Base        string // {{base}}: the commit that a git workspace began with
	Description string // {{description}}
	Role        string // {{role}}
	Pass        int    // {{pass}}
	Passes      int    // {{passes}}
	Set         string // {{set}}
	Theme       string // {{theme}}
	Round       int    // {{n}}
	Rounds      int    // {{max}}
	With        []Text // {{with.KEY}}
}

// Outcome says how far a reply can be used. The words are the categories of requirement 002 §1.5.
type Outcome string

// Outcomes of reading a reply. Only OK settles a pass, also when checks failed (see Validation); the others ask for another attempt.
const (
	OK               Outcome = "ok"
	OutputEmpty      Outcome = "output-empty"
	OutputTruncated  Outcome = "output-truncated"   // an artifact was begun and not ended: never used
	OutputNoArtifact Outcome = "output-no-artifact" // a role that gives an artifact gave none
	OutputNoSections Outcome = "validation-failed"  // none of the sections it was asked for: structural
	OutputNoVerdict  Outcome = "validation-failed"  // a role that gives a verdict gave none
)

// Reading is what a reply holds.
type Reading struct {
	Outcome    Outcome
	Message    string // for people, when Outcome is not OK
	Artifact   []byte // role gives artifact and Outcome is OK: trimmed, one newline at the end
	Modified   bool   // it differs from the one before, trailing white space aside
	Notes      []Text // the marked blocks found: Label is the note's name, Body trimmed
	Validation Validation
	Tally      []Count
	Score      *float64 // nil: none found, or out of range
	ScoreText  string   // why there is none: "no match", "4.3 is outside 0..4"
	Verdict    string
}

// Count is one tallied heading; nil when the heading is missing.
type Count struct {
	Name  string `json:"name"`
	Count *int   `json:"count"`
}

// Validation is requirement 002's ValidationResult.
type Validation struct {
	Passed   bool     `json:"passed"`
	Checks   []Check  `json:"checks"`
	Warnings []string `json:"warnings"`
}

// Check is the result of one named check.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}
