package contract

import "github.com/passbook-run/passbook/run"

// StepContext is the state that a step gets.
type StepContext struct {
	Artifact *run.Blob     `json:"artifact,omitempty"`
	Notes    []run.Notes   `json:"notes,omitempty"`
	Replies  []run.Reply   `json:"replies,omitempty"`
	Pictures *run.Blob     `json:"pictures,omitempty"`
	Tampered *run.Tampered `json:"tampered,omitempty"` // by the last pass that changed the workspace
	Fresh    []run.Blob    `json:"fresh,omitempty"`    // what passes only in the workspace: both outputs
	Feedback string        `json:"feedback,omitempty"` // the operator's feedback for a repeated round
	About    *run.About    `json:"about,omitempty"`    // the question that it answers
	Waiver   *run.Waiver   `json:"waiver,omitempty"`   // accepted by an operator; shown to later reviews
	Waivers  []run.Waiver  `json:"waivers,omitempty"`  // earlier ones
	Task     string        `json:"task,omitempty"`     // of the run
	Base     string        `json:"base,omitempty"`     // base commit of the workspace
	Steering []string      `json:"steering,omitempty"` // instructions of operators
	Misfit   string        `json:"misfit,omitempty"`   // why the reply before could not be used

	Outputs  []run.StepOutput `json:"outputs,omitempty"`  // that its prompt has
	Parent   *run.Blob        `json:"parent,omitempty"`   // the brief of the run that this one follows up
	Adopted  *run.Blob        `json:"adopted,omitempty"`  // about the conversation that the call continues
	Item     *ItemUse         `json:"item,omitempty"`     // of a lane
	Recorded *run.Blob        `json:"recorded,omitempty"` // those of a replay's source
}

// ComposeResult is the stored prompt and what it was composed of.
type ComposeResult struct {
	Prompt     run.Blob `json:"prompt"`
	Files      []string `json:"files,omitempty"`
	References []string `json:"references,omitempty"`
}
