package view

import (
	"slices"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Record is the task, work, checks, decisions and costs of a run, from its directory alone: the same directory results
// in the same record, byte for byte. It shows no prompts and replies, only their digests and files. Times are UTC as in
// the journal, costs USD.
type Record struct {
	RunID           string             `json:"run_id"`
	Task            string             `json:"task"`
	Pipeline        string             `json:"pipeline"`
	Definition      string             `json:"definition"` // digest
	Parent          *run.Parent        `json:"parent"`     // the run that this one follows up; null: none
	Adopted         *run.Adopted       `json:"adopted"`    // the conversation that its first call continues; null: none
	run.ShownStatus                    // as recorded
	Reason          string             `json:"reason"`
	Limited         *run.Limited       `json:"limited"` // that the run waits for; null: none
	CreatedAt       string             `json:"created_at"`
	StartedAt       string             `json:"started_at"`
	FinishedAt      string             `json:"finished_at"` // "": open
	Epochs          int                `json:"epochs"`
	Build           string             `json:"build"`
	Workspace       *rundir.Workspace  `json:"workspace"` // null: none
	Artifact        *Artifact          `json:"artifact"`  // null: none
	Inputs          []rundir.InputFile `json:"inputs"`
	Phases          []Phase            `json:"phases"`
	Passes          []Pass             `json:"passes"`
	Reverted        int                `json:"reverted_passes"` // not listed
	Failures        []Failure          `json:"failed_attempts"`
	Scores          []Score            `json:"scores"`
	Decisions       []Decision         `json:"decisions"`
	Actions         []Action           `json:"interventions"`
	Spend           Spend              `json:"spend"`
	Delivery        *Delivery          `json:"delivery"` // null: none
	Projects        []run.ProjectState `json:"projects,omitempty"`
	Lanes           []Lane             `json:"lanes,omitempty"` // in the order of the list
	Damaged         int                `json:"damaged_lines"`
	Journal         run.Tail           `json:"journal"` // to compare two directories of a run
	History         History            `json:"-"`
}

// History is what only pages show of a run; the JSON does not contain it.
type History struct {
	Shown   Run
	Start   run.RunStart
	Costs   []Amount // one per call or lane, reverted ones included
	Budgets []Amount // each valid from its time on
	Shots   []Shots
	Backups map[string]string     // digest of an artifact → its backup
	Stages  map[string]StageTitle // by name

	LanesLeft int // items of the current stage whose lanes have not started
}

// Amount is an amount at a time of the journal: the total so far, or a budget.
type Amount struct {
	At  string
	USD float64
}

// Shots are the pictures of one round.
type Shots struct {
	seq int64
	run.Screenshots
}

// StageTitle is the title of a stage.
type StageTitle struct {
	Title   string
	Repeats bool
}

// Artifact is the revised file with its first and last content.
type Artifact struct {
	File string `json:"file"`
	Seed string `json:"seed"` // digest; "": none
	Now  string `json:"now"`
}

// Phase is one completed round of a stage.
type Phase struct {
	Seq     int64  `json:"seq"`
	Name    string `json:"name"`
	Round   int    `json:"round"`
	Outcome string `json:"outcome"`
	EndedAt string `json:"ended_at"`
}

// Pass is one completed call, or one command.
type Pass struct {
	Seq         int64            `json:"seq"`
	Number      int              `json:"number"` // 0 in a repeated stage
	Step        string           `json:"step"`
	Call        string           `json:"call"`
	Stage       string           `json:"stage"`
	Round       int              `json:"round"`
	Role        string           `json:"role"`
	Member      string           `json:"member"`
	Item        string           `json:"item,omitempty"` // of a lane
	Title       string           `json:"title"`
	Outcome     run.Category     `json:"outcome"` // ok, or the error that ended it
	Attempts    int              `json:"attempts"`
	StartedAt   string           `json:"started_at"`
	CompletedAt string           `json:"completed_at"`
	DurationMS  int64            `json:"duration_ms"` // with all attempts
	USD         float64          `json:"cost_usd"`    // of all attempts
	Unknown     int              `json:"unknown_calls"`
	CostKnown   run.CostKnown    `json:"cost_known"`
	CostNote    string           `json:"cost_note"` // why the cost is not fully known; or empty
	Reused      bool             `json:"reused"`
	Modified    bool             `json:"artifact_modified"`
	Changed     int              `json:"files_changed"` // of the workspace
	Files       []run.FileChange `json:"files"`         // the first of them
	Commit      string           `json:"commit"`
	Checks      run.Validation   `json:"checks"`
	Verdict     string           `json:"verdict"`
	Findings    *run.Findings    `json:"findings,omitempty"` // of a structured verdict
	Score       *float64         `json:"score"`
	Value       string           `json:"value"` // of a command: ok or failed
	// protected files that it changed, or that were restored before it; null: none
	Tampered *run.Tampered `json:"tampered"`
	Found    *run.Found    `json:"found"` // about its changes; null: nothing
	Scope    *run.Scope    `json:"scope"` // that it declared; null: none

	Set    string      `json:"-"`
	Turn   int         `json:"-"` // number of the turn; 0: the pass is none
	Tally  []run.Count `json:"-"` // of a verifier
	Prompt string      `json:"-"` // file in the run directory
	Reply  string      `json:"-"` // file; "": the pass was given up
	Frames string      `json:"-"` // file with what the agent reported; it may be missing
	Before string      `json:"-"` // digest of the artifact
	After  string      `json:"-"` // digest; "": the artifact did not change
}

// Failure is an attempt that did not complete its pass.
type Failure struct {
	Seq      int64        `json:"seq"`
	Number   int          `json:"number"`
	Step     string       `json:"step"`
	Round    int          `json:"round"`
	Role     string       `json:"role"`
	Member   string       `json:"member"`
	Item     string       `json:"item,omitempty"` // of a lane
	Attempt  int          `json:"attempt"`
	Category run.Category `json:"category"`
	Message  string       `json:"message"`
	USD      float64      `json:"cost_usd"`

	CostKnown run.CostKnown `json:"cost_known"`
}

// Score is one value of the score that ends a loop.
type Score struct {
	Seq       int64    `json:"seq"`
	Name      string   `json:"name"`
	Round     int      `json:"round"`
	Score     *float64 `json:"score"`
	Threshold *float64 `json:"threshold"`
	Met       bool     `json:"met"`
	Why       string   `json:"why"` // without a score: the cause
}

// Decision is a question and its answer; without an answer the action is "".
type Decision struct {
	Seq      int64  `json:"seq"`
	Kind     string `json:"kind"` // handoff, gate, delivery or review
	ID       string `json:"id"`
	Question string `json:"question"`
	Trigger  string `json:"trigger"`
	Phase    string `json:"phase"`
	Round    int    `json:"round"`
	Judged   string `json:"judged"` // digest of the judged content
	// what the question is about; verdict, change, checks, cost and earlier decisions
	Subject     run.Subject `json:"subject"`
	RequestedAt string      `json:"requested_at"`
	Action      string      `json:"action"`
	Feedback    string      `json:"feedback"`
	Note        string      `json:"note"`
	By          string      `json:"decided_by"`
	DecidedAt   string      `json:"decided_at"`
}

// Action is an intervention: a pause, a resume, a raised budget, a manual edit, a refused message.
type Action struct {
	Seq  int64  `json:"seq"`
	At   string `json:"at"`
	What string `json:"what"`
	By   string `json:"by"`
	Note string `json:"note"`
}

// Spend is the cost of the run.
type Spend struct {
	USD float64 `json:"usd"` // total
	// calls that USD lacks, and what that makes of it
	Unknown   int           `json:"unknown_calls"`
	CostKnown run.CostKnown `json:"cost_known"`
	Sunk      float64       `json:"sunk_usd"` // included, of reverted calls
	CapUSD    float64       `json:"cap_usd"`  // 0: none
	Tokens    run.Tokens    `json:"tokens"`   // of calls that were not reverted
	ByRole    []RoleCost    `json:"by_role"`  // of the total, in the order of their first calls
}

// RoleCost is the cost of the calls of one role, including failed ones.
type RoleCost struct {
	Role  string  `json:"role"`
	Calls int     `json:"calls"`
	USD   float64 `json:"usd"`
	// calls that USD lacks
	Unknown int `json:"unknown_calls"`
}

// Delivery is the result of the delivery.
type Delivery struct {
	Seq int64  `json:"seq"`
	At  string `json:"at"`
	run.DeliveryCompleted
	// whether the work passes in a fresh folder, in words
	Fresh string `json:"fresh_folder"`
}

// ReadRecord returns the record of a run directory.
func ReadRecord(d rundir.Dir) (Record, error) {
	inputs, err := d.Inputs()
	if err != nil {
		return Record{}, err
	}
	c := collector{failed: map[string]run.Totals{}, fold: run.NewFold(run.State{}, run.History{})}
	c.History.Backups, c.History.Stages = map[string]string{}, map[string]StageTitle{}
	for line, err := range d.Lines(0) {
		if err == nil {
			c.Journal = run.Tail{Seq: max(c.Journal.Seq, line.Event.Seq), Chain: line.Chain(c.Journal.Chain)}
		}
		switch {
		case err != nil:
			return Record{}, err
		case line.Err != nil:
			c.Damaged++
		default:
			c.add(line.Event)
		}
	}
	c.dropReverted(c.reverts.InForce())
	c.open(d, c.fold.State())
	c.Inputs = inputs
	c.final(c.fold.State())
	c.fill()
	return c.Record, nil
}

// final copies the final state.
func (c *collector) final(s run.State) {
	c.History.Shown = Recorded(s)
	c.Status, c.Reason, c.StartedAt, c.FinishedAt, c.Epochs = s.Status, s.Reason, s.StartedAt, s.FinishedAt, s.Epoch
	if s.Status == run.WaitingLimit {
		c.Limited = s.Limited
	}
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
	c.Spend.Unknown, c.Spend.CostKnown = s.UnknownCalls(), s.CostKnown()
	c.Projects = s.Projects
}

// fill replaces null by empty lists in the JSON.
func (c *collector) fill() {
	c.Inputs, c.Phases, c.Passes = list(c.Inputs), list(c.Phases), list(c.Passes)
	c.Failures, c.Scores = list(c.Failures), list(c.Scores)
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
