// Package evidence puts together what a run was asked, did, checked, decided and spent, from its run directory alone. The same directory
// gives the same evidence, byte for byte. It judges nothing, and shows no prompts and replies: their digests and files are in the directory.
package evidence

import (
	"slices"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Evidence is a run as one looks back on it. Times are UTC as the journal has them, costs USD.
type Evidence struct {
	RunID      string             `json:"run_id"`
	Task       string             `json:"task"`
	Pipeline   string             `json:"pipeline"`
	Definition string             `json:"definition"` // digest
	Parent     *run.Parent        `json:"parent"`     // the run that this one follows up; null: none
	Status     run.Status         `json:"status"`     // as recorded
	Reason     string             `json:"reason"`
	CreatedAt  string             `json:"created_at"`
	StartedAt  string             `json:"started_at"`
	FinishedAt string             `json:"finished_at"` // "": not over
	Epochs     int                `json:"epochs"`
	Build      string             `json:"build"`
	Workspace  *rundir.Workspace  `json:"workspace"` // null: none
	Artifact   *Artifact          `json:"artifact"`  // null: none
	Inputs     []rundir.InputFile `json:"inputs"`
	Phases     []Phase            `json:"phases"`
	Passes     []Pass             `json:"passes"`
	Reverted   int                `json:"reverted_passes"` // that going back has left behind; they are not listed
	Failures   []Failure          `json:"failed_attempts"`
	Scores     []Score            `json:"scores"`
	Decisions  []Decision         `json:"decisions"`
	Actions    []Action           `json:"interventions"`
	Spend      Spend              `json:"spend"`
	Delivery   *Delivery          `json:"delivery"` // null: none
	Damaged    int                `json:"damaged_lines"`
}

// Artifact says which file was revised, from which content to which.
type Artifact struct {
	File string `json:"file"`
	Seed string `json:"seed"` // digest; "": there was none
	Now  string `json:"now"`
}

// Phase is one round of a stage that has ended.
type Phase struct {
	Seq     int64  `json:"seq"`
	Name    string `json:"name"`
	Round   int    `json:"round"`
	Outcome string `json:"outcome"`
	EndedAt string `json:"ended_at"`
}

// Pass is one settled call, or one command.
type Pass struct {
	Seq         int64            `json:"seq"`
	Number      int              `json:"number"` // 0 in a repeated stage
	Step        string           `json:"step"`
	Call        string           `json:"call"`
	Stage       string           `json:"stage"`
	Round       int              `json:"round"`
	Role        string           `json:"role"`
	Member      string           `json:"member"`
	Title       string           `json:"title"`
	Outcome     string           `json:"outcome"` // ok, or what it was given up with
	Attempts    int              `json:"attempts"`
	StartedAt   string           `json:"started_at"`
	CompletedAt string           `json:"completed_at"`
	DurationMS  int64            `json:"duration_ms"` // of the attempt that settled it
	USD         float64          `json:"cost_usd"`    // of all attempts
	Reused      bool             `json:"reused"`
	Modified    bool             `json:"artifact_modified"`
	Changed     int              `json:"files_changed"` // of the workspace
	Files       []run.FileChange `json:"files"`         // the first of them
	Commit      string           `json:"commit"`
	Checks      run.Validation   `json:"checks"`
	Verdict     string           `json:"verdict"`
	Score       *float64         `json:"score"`
	Value       string           `json:"value"` // of a command: ok or failed
}

// Failure is an attempt that did not settle its pass, whatever became of that.
type Failure struct {
	Seq      int64   `json:"seq"`
	Number   int     `json:"number"`
	Step     string  `json:"step"`
	Round    int     `json:"round"`
	Role     string  `json:"role"`
	Member   string  `json:"member"`
	Attempt  int     `json:"attempt"`
	Category string  `json:"category"`
	Message  string  `json:"message"`
	USD      float64 `json:"cost_usd"`
}

// Score is one reading of the score that a loop waits for.
type Score struct {
	Seq       int64    `json:"seq"`
	Name      string   `json:"name"`
	Round     int      `json:"round"`
	Score     *float64 `json:"score"`
	Threshold *float64 `json:"threshold"`
	Met       bool     `json:"met"`
	Why       string   `json:"why"` // when there is none
}

// Decision is a question and its answer; the action is "" while nobody has answered.
type Decision struct {
	Seq         int64  `json:"seq"`
	Kind        string `json:"kind"` // handoff, gate, delivery or review
	ID          string `json:"id"`
	Question    string `json:"question"`
	Trigger     string `json:"trigger"`
	Phase       string `json:"phase"`
	Round       int    `json:"round"`
	Judged      string `json:"judged"` // digest of what it was about
	RequestedAt string `json:"requested_at"`
	Action      string `json:"action"`
	Feedback    string `json:"feedback"`
	Note        string `json:"note"`
	By          string `json:"decided_by"`
	DecidedAt   string `json:"decided_at"`
}

// Action is what somebody or something else did to the run: a pause, a resume, a raised budget, an edit by hand, a refused message.
type Action struct {
	Seq  int64  `json:"seq"`
	At   string `json:"at"`
	What string `json:"what"`
	By   string `json:"by"`
	Note string `json:"note"`
}

// Spend is what the run has cost.
type Spend struct {
	USD    float64    `json:"usd"`      // all of it
	Sunk   float64    `json:"sunk_usd"` // of it, of calls that going back has left behind
	CapUSD float64    `json:"cap_usd"`  // 0: none
	Tokens run.Tokens `json:"tokens"`   // of the calls in force
	ByRole []RoleCost `json:"by_role"`  // of all of it, in the order of their first calls
}

// RoleCost is what the calls of one role have cost, failed ones included.
type RoleCost struct {
	Role  string  `json:"role"`
	Calls int     `json:"calls"`
	USD   float64 `json:"usd"`
}

// Delivery is what became of the work.
type Delivery struct {
	Seq int64  `json:"seq"`
	At  string `json:"at"`
	run.DeliveryCompleted
}

// Read puts the evidence of a run directory together.
func Read(d rundir.Dir) (Evidence, error) {
	events, damaged, err := d.Events()
	if err != nil {
		return Evidence{}, err
	}
	return Of(d, events, damaged)
}

// Of is Read for a caller that has read the events, and how many lines of them are damaged.
func Of(d rundir.Dir, events []run.Event, damaged int) (Evidence, error) {
	inputs, err := d.Inputs()
	if err != nil {
		return Evidence{}, err
	}
	decided, err := d.Decisions()
	if err != nil {
		return Evidence{}, err
	}
	c := collector{failed: map[string]float64{}, state: d.Blank()}
	for _, e := range events {
		c.add(e)
	}
	for _, a := range decided { // another program keeps them in files only
		c.answer(a)
	}
	c.Inputs, c.Damaged = inputs, damaged
	if d.Foreign() { // decisions beside the stream count for the status too
		now, err := d.Now()
		if err != nil {
			return Evidence{}, err
		}
		c.state.Status = now.State.Status
	}
	c.stand(c.state)
	c.fill()
	return c.Evidence, nil
}

// stand copies what the run has come to.
func (c *collector) stand(s run.State) {
	c.Status, c.Reason, c.StartedAt, c.FinishedAt, c.Epochs = s.Status, s.Reason, s.StartedAt, s.FinishedAt, s.Epoch
	if c.Task == "" {
		c.Task = s.Task
	}
	if c.Artifact != nil && s.Artifact != nil {
		c.Artifact.Now = s.Artifact.Digest
	}
	if c.Workspace != nil && s.Tree != nil {
		c.Workspace.Commit, c.Workspace.Tree = s.Commit, s.Tree.Digest
	}
	c.Spend.USD, c.Spend.Sunk, c.Spend.CapUSD, c.Spend.Tokens = s.Total(), s.SunkUSD, s.Budget.CapUSD, s.Spent.Tokens
}

// fill keeps null out of the JSON.
func (c *collector) fill() {
	c.Inputs, c.Phases, c.Passes, c.Failures, c.Scores = list(c.Inputs), list(c.Phases), list(c.Passes), list(c.Failures), list(c.Scores)
	c.Decisions, c.Actions, c.Spend.ByRole = list(c.Decisions), list(c.Actions), list(c.Spend.ByRole)
	for i := range c.Passes {
		p := &c.Passes[i]
		p.Files, p.Checks.Checks, p.Checks.Warnings = list(p.Files), list(p.Checks.Checks), list(p.Checks.Warnings)
	}
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return slices.Clip(l)
}
