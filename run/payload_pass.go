package run

// Pass says which pass an event is about. All events of one pass carry the same.
type Pass struct {
	Step        string   `json:"step"`             // key in the plan
	Number      int      `json:"number,omitempty"` // 0 in a repeated stage
	InRound     int      `json:"in_round"`
	OfRound     int      `json:"of_round"` // how many steps the round has
	Set         string   `json:"set,omitempty"`
	Round       int      `json:"round"`
	Member      string   `json:"member,omitempty"` // of a group
	Role        string   `json:"role"`
	Gives       string   `json:"gives"`
	Order       string   `json:"order,omitempty"`
	Title       string   `json:"title"`       // short, for logs
	Description string   `json:"description"` // long
	Dir         string   `json:"dir,omitempty"`
	Redo        int      `json:"redo,omitempty"` // how often a decision has sent the run back to it: its evidence lies in a folder of its own
	Files       []string `json:"files,omitempty"`
	References  []string `json:"references,omitempty"`
}

// PassStart is on disk before anything else happens.
type PassStart struct {
	Pass
	Call     string `json:"call"`
	Agent    string `json:"agent"`    // for people: claude -p
	Attempt  int    `json:"attempt"`  // 1-based
	Attempts int    `json:"attempts"` // at most
	Prompt   Blob   `json:"prompt"`
	Before   string `json:"before,omitempty"` // the artifact's digest, backed up when the role gives an artifact
}

// Spend is what one call cost.
type Spend struct {
	Tokens    Tokens  `json:"tokens"`
	USD       float64 `json:"usd"`
	Estimated bool    `json:"estimated,omitempty"`
	Model     string  `json:"model,omitempty"`
}

// PassAttempt is an attempt that did not settle its pass.
type PassAttempt struct {
	Pass
	Call        string `json:"call"`
	Attempt     int    `json:"attempt"`
	Category    string `json:"category"` // one of the 15 of requirement 002, or lost, cancelled
	Message     string `json:"message"`
	ExitCode    int    `json:"exit_code,omitempty"`
	Diagnostics string `json:"diagnostics,omitempty"` // at most 2000 characters
	Output      *Blob  `json:"output,omitempty"`      // what came back, kept as evidence
	Prompt      *Blob  `json:"prompt,omitempty"`      // what was asked, where anything came back
	Envelope    *Blob  `json:"envelope,omitempty"`    // what the agent reported beside its reply
	StartedAt   string `json:"started_at,omitempty"`
	DurationMS  int64  `json:"duration_ms"`
	RetryInMS   int64  `json:"retry_in_ms,omitempty"` // before scaling; 0: no further attempt
	Judged      bool   `json:"judged,omitempty"`      // a result came back: the next attempt is another call
	Spend       *Spend `json:"spend,omitempty"`
	Late        int    `json:"late,omitempty"` // of an answer that came after the one that counts: its number among those of the run
}

// PassEnd settles a pass. It holds the whole record: nothing else is needed to write state.json.
type PassEnd struct {
	Pass
	Call        string     `json:"call"`
	Outcome     string     `json:"outcome"` // ok, or the category that the pass was given up with
	StartedAt   string     `json:"started_at"`
	CompletedAt string     `json:"completed_at"`
	DurationMS  int64      `json:"duration_ms"`
	Attempts    int        `json:"attempts"`
	Reply       *Blob      `json:"reply,omitempty"`
	Envelope    *Blob      `json:"envelope,omitempty"`  // what the agent reported beside it
	Attempted   bool       `json:"attempted,omitempty"` // given up: the evidence of its last call is that of the attempt
	Artifact    *Blob      `json:"artifact,omitempty"`  // nil: the current one stays
	Before      string     `json:"before,omitempty"`
	Modified    bool       `json:"modified,omitempty"`
	Validation  Validation `json:"validation"`
	Notes       []Added    `json:"notes,omitempty"` // what it added to notes files
	Lacks       []string   `json:"lacks,omitempty"` // names of the notes that its role adds to and it did not
	Tally       []Count    `json:"tally,omitempty"`
	Score       *float64   `json:"score,omitempty"`
	Verdict     string     `json:"verdict,omitempty"`
	Approved    *bool      `json:"approved,omitempty"` // of a role that gives a verdict: whether it approves the work; nil: also written by an earlier version
	As          string     `json:"as,omitempty"`       // the name under which until knows Value
	Value       string     `json:"value,omitempty"`    // of a command ok or failed, of a role its score or verdict
	Tree        *Blob      `json:"tree,omitempty"`     // of a pass that gives changes: what it left; nil: the current one stays
	Spend       Spend      `json:"spend"`
	Reused      bool       `json:"reused,omitempty"` // an answer that was there already
	Joined      bool       `json:"joined,omitempty"` // a delivery that waited for a running call
	LastInRound bool       `json:"last_in_round,omitempty"`
	Review      string     `json:"review,omitempty"` // the review that its set wants, and that the run could not wait for: it was cut off with this answer
	Next        *Place     `json:"next,omitempty"`   // nil while other members of the group are out
}

// Turn says that the pass is a turn: one call that was to change the workspace, settled, whatever came of it. Turns are counted from 1 over the
// life of a run, and no number is given twice.
func (p PassEnd) Turn() bool { return p.Gives == "changes" }

// Added is one addition to a notes file.
type Added struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Chars int    `json:"chars"`
}

// Validation is requirement 002's ValidationResult.
type Validation struct {
	Passed   bool     `json:"passed"`
	Checks   []Check  `json:"checks"`
	Warnings []string `json:"warnings"`
}

// Check is one named check.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}

// Count is one tallied heading; nil when the heading is missing.
type Count struct {
	Name  string `json:"name"`
	Count *int   `json:"count"`
}

// StepSkipped says that a step was gone over.
type StepSkipped struct {
	Step string `json:"step"`
	Why  string `json:"why"`
	Next *Place `json:"next"`
}
