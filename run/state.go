package run

import (
	"cmp"
	"fmt"
	"strings"
)

// StateVersion is the version of State. A reader refuses any other.
const StateVersion = 2

const (
	keptDurations   = 8
	keptCheckpoints = 16
)

// State is the small state: what a run needs to continue, under 64 KiB however long it gets. It is passed to the next
// execution, stored in meta.json, and carried by the events that go back or open an epoch.
type State struct {
	Version    int     `json:"version"`
	RunID      string  `json:"run_id"`
	ThreadID   string  `json:"thread_id"`
	RunKind    string  `json:"run_kind,omitempty"`
	Pipeline   string  `json:"pipeline"`
	Wording    Wording `json:"wording,omitempty"`
	Task       string  `json:"task"`
	Status     Status  `json:"status"`
	Reason     string  `json:"reason,omitempty"`
	Seq        int64   `json:"seq"`
	TS         string  `json:"ts"`
	Epoch      int     `json:"epoch"`
	Generation int     `json:"generation"`
	CreatedAt  string  `json:"created_at,omitempty"`
	StartedAt  string  `json:"started_at,omitempty"`
	FinishedAt string  `json:"finished_at,omitempty"`
	Starts     int     `json:"starts"` // the first start and every resume
	Phase      string  `json:"phase,omitempty"`
	Round      int     `json:"round,omitempty"`
	PhaseOpen  bool    `json:"phase_open,omitempty"`
	Set        string  `json:"set,omitempty"`
	Next       Place   `json:"next"`
	// of the plan; none where an earlier version started the run
	Stages   []StageRef     `json:"stages,omitempty"`
	Unmet    string         `json:"unmet,omitempty"`   // condition of the last loop, which ended without meeting it
	Redone   []Redone       `json:"redone,omitempty"`  // the stages that a decision has sent the run back into
	Settled  []string       `json:"settled,omitempty"` // completed members of the group at Next
	Tries    []Tries        `json:"tries,omitempty"`   // judged calls of the step at Next
	InFlight []InFlightCall `json:"in_flight,omitempty"`
	Artifact *Blob          `json:"artifact,omitempty"`
	Tree     *Blob          `json:"tree,omitempty"`   // manifest of the workspace's tree
	Commit   string         `json:"commit,omitempty"` // of the run's branch
	Notes    []Notes        `json:"notes,omitempty"`
	Pictures *Blob          `json:"pictures,omitempty"` // manifest of this round's pictures; nil: none
	// the last reply of each step of this round and of each stage
	Replies []Reply `json:"replies,omitempty"`
	// of roles that continue their session, in the stage of the last one
	Sessions []RoleSession `json:"sessions,omitempty"`
	Scores   []RoundScore  `json:"scores,omitempty"`  // of the rounds of this loop
	Values   []Value       `json:"values,omitempty"`  // results of this round: verdict, score, commands by their ids
	Outputs  []StepOutput  `json:"outputs,omitempty"` // that conditions and prompts use
	// that were evaluated since something last set a value
	Conditions   []Condition   `json:"conditions,omitempty"`
	LoopProgress *LoopProgress `json:"loop_progress,omitempty"` // of the loop at work
	Verdict      string        `json:"verdict,omitempty"`       // the last one, of any round
	// whether Verdict approves the work as it is; nil: no role was asked, or an earlier version
	Approved    *bool        `json:"approved,omitempty"`
	Passes      PassCount    `json:"passes"`
	Rounds      int          `json:"rounds"`            // completed rounds of the last repeated stage
	Loops       []Loop       `json:"loops,omitempty"`   // the same of each, by stage
	Changed     *Place       `json:"changed,omitempty"` // where a step last changed the work
	Score       *float64     `json:"score"`
	Budget      Budget       `json:"budget"`
	Raised      bool         `json:"budget_raised,omitempty"` // since the pause for it
	Need        *Need        `json:"budget_need,omitempty"`   // of the call that the pause for it is about
	Means       []Mean       `json:"means,omitempty"`         // what calls of each role cost
	Plan        *CurrentPlan `json:"plan,omitempty"`          // nil: an earlier release started the run
	Warned      bool         `json:"warned,omitempty"`
	Spent       Totals       `json:"spent"`    // of the calls in force
	SunkUSD     float64      `json:"sunk_usd"` // of calls that a revert left behind
	SunkUnknown int          `json:"sunk_unknown_calls,omitempty"`
	ListPrice   bool         `json:"list_price,omitempty"` // costs are at list price: a subscription or a gateway pays
	Used        Used         `json:"used,omitzero"`        // what a revert left behind included
	Late        int          `json:"late,omitempty"`       // how many late answers are accounted for
	ByRole      []Named      `json:"by_role,omitempty"`
	ByStage     []Named      `json:"by_stage,omitempty"`
	DurationsMS []int64      `json:"durations_ms,omitempty"` // of the last eight passes, newest last
	Failure     *Failure     `json:"failure,omitempty"`
	// the limit that the run waits for; after the wait, until the call is answered
	Limited     *Limited        `json:"limited,omitempty"`
	Problem     *Problem        `json:"problem,omitempty"`
	Damage      []JournalDamage `json:"damage,omitempty"`      // the last four that the journal names
	Checkpoint  *CheckpointRef  `json:"checkpoint,omitempty"`  // head: where a resume starts from
	Checkpoints []CheckpointRef `json:"checkpoints,omitempty"` // the last sixteen named ones
	// what the run has yet to pause for: it was cut off at the end of a set
	Review    string         `json:"review,omitempty"`
	Decided   *Decided       `json:"decided,omitempty"`
	Decisions []PastDecision `json:"decisions,omitempty"` // the last eight
	Judged    *Judged        `json:"judged,omitempty"`    // the last verdict
	Scope     *Scope         `json:"scope,omitempty"`     // that the last plan declared
	Found     *Found         `json:"found,omitempty"`     // about the changes so far
	Tampered  *Tampered      `json:"tampered,omitempty"`  // by the last pass that changed the workspace
	Commands  []Checked      `json:"commands,omitempty"`  // the last results of commands on the workspace
	Files     []string       `json:"files,omitempty"`     // that the run changed, the first of them
	MoreFiles bool           `json:"more_files,omitempty"`
	Again     string         `json:"again,omitempty"`    // the decision that repeats the step at Next
	Feedback  string         `json:"feedback,omitempty"` // the operator's comment for the round that is done again
	About     *About         `json:"about,omitempty"`    // the question that Feedback answers
	// open, or undecided when the run failed: the newest last, after at most a hand-off
	Questions []Question `json:"questions,omitempty"`
	Gate      *Question  `json:"gate,omitempty"` // open when the run was halted or cancelled: the next epoch asks it again
	Delivery  *Delivered `json:"delivery,omitempty"`
	Waivers   []Waiver   `json:"waivers,omitempty"` // all but the last, at most eight, shortened
	Markers   Markers    `json:"markers,omitzero"`  // they explain the status
	// of a run across projects, in the order of their starts
	Projects []ProjectState `json:"projects,omitempty"`
	Accepted string         `json:"accepted,omitempty"` // digest of all trees that an operator accepted for delivery
	MemberOf *Membership    `json:"member_of,omitempty"`
	LaneOf   *LaneOf        `json:"lane_of,omitempty"` // of a lane
	Reused   int            `json:"reused,omitempty"`  // outside calls that a replay took from the record
	Refused  int            `json:"refused,omitempty"` // messages that could not be acted on
	// of operators, for the next prompts
	Instructions      []Instruction `json:"instructions,omitempty"`
	Lanes             *Lanes        `json:"lanes,omitempty"`
	LaneTotals        *LaneTotals   `json:"lane_totals,omitempty"` // of completed stages
	Started           []string      `json:"started,omitempty"`     // calls of the step at Next that keep their prompt
	InvalidTransition string        `json:"illegal,omitempty"`     // the last event that the table of transitions refuses
	Forge             *ForgeState   `json:"forge,omitempty"`       // its issue and its pull request; nil: none
	Adopted           *Adopted      `json:"adopted,omitempty"`     // the conversation that the first call continues; nil: it begins one
}

// SetText describes which set the run is at: S5, or S5 completed, S6 pending. Empty: it works through no sets.
func (s State) SetText() string {
	if s.Set != "" || s.Next.Stage < 0 || s.Next.Stage >= len(s.Stages) {
		return s.Set
	}
	sets := s.Stages[s.Next.Stage].Sets
	var texts []string
	if done := s.Next.Round - 2; done >= 0 && done < len(sets) {
		texts = append(texts, sets[done]+" completed")
	}
	if next := s.Next.Round - 1; next >= 0 && next < len(sets) {
		texts = append(texts, sets[next]+" pending")
	}
	return strings.Join(texts, ", ")
}

// Delivered is what became of the delivery.
type Delivered struct {
	Delivered bool   `json:"delivered"`
	To        string `json:"to,omitempty"`
	Target    string `json:"target,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Files     int    `json:"files,omitempty"`
	Message   string `json:"message,omitempty"`
	Pull      int    `json:"pull,omitempty"` // number of the pull request
}

// noChange is why nothing was delivered, where no reason is recorded.
const noChange = "the run changed no file"

// Text describes the result of a run, and how a user takes it.
func (d Delivered) Text() string {
	switch files := Plural(d.Files, "file"); {
	case !d.Delivered:
		return "nothing was delivered: " + cmp.Or(d.Message, noChange)
	case d.Pull > 0:
		return fmt.Sprintf("%s in pull request #%d: %s", files, d.Pull, d.Target)
	case d.To == "branch":
		return fmt.Sprintf("%s on branch %s; to take the result: git merge %s", files, d.Target, d.Target)
	case d.Commit != "":
		return fmt.Sprintf("%s in %s, commit %.12s", files, d.Target, d.Commit)
	default:
		return fmt.Sprintf("%s in %s, not committed", files, d.Target)
	}
}

// InFlightCall is a call that has started and not settled.
type InFlightCall struct {
	Step      string `json:"step"`
	Member    string `json:"member,omitempty"`
	Role      string `json:"role"`
	Call      string `json:"call"`
	Attempt   int    `json:"attempt"`
	StartedAt string `json:"started_at"`
}

// Tries counts the calls of one step, or of one member of a group, that were judged. The next call has this number plus
// one.
type Tries struct {
	Member string `json:"member,omitempty"`
	Judged int    `json:"judged"`
}

// Notes is the current content of an append-only notes file.
type Notes struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	Entries int    `json:"entries"`
	Whole   Blob   `json:"whole"`
}

// Reply is the last accepted reply of a step.
type Reply struct {
	Step   string `json:"step"`
	Member string `json:"member,omitempty"`
	Role   string `json:"role"`
	Phase  string `json:"phase"`
	Reply  Blob   `json:"reply"`
	Judges bool   `json:"judges,omitempty"` // it contains a verdict or a score
}

// ReplyOf returns the last reply of a step; nil: none is kept.
func (s State) ReplyOf(step string) *Blob {
	for _, r := range s.Replies {
		if r.Step == step {
			return &r.Reply
		}
	}
	return nil
}

// RoleSession is the session that the next call of a role in a stage continues.
type RoleSession struct {
	Phase string `json:"phase"`
	Role  string `json:"role"`
	KeptSession
}

// Value is one result of a round, for people.
type Value struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Loop counts the rounds of a repeated stage.
type Loop struct {
	Stage  int `json:"stage"` // index in the plan
	Rounds int `json:"rounds"`
}

// LoopRounds counts the completed rounds of a repeated stage.
func (s State) LoopRounds(stage int) int {
	for _, l := range s.Loops {
		if l.Stage == stage {
			return l.Rounds
		}
	}
	return 0
}

// PassCount counts numbered passes.
type PassCount struct {
	Total       int `json:"total"`
	LastSettled int `json:"last_settled"`
	Invalid     int `json:"invalid"` // settled with failed validation
	InRow       int `json:"in_row"`  // given up one after another
	Unmodified  int `json:"unmodified"`
	Retries     int `json:"retries"`
	Warnings    int `json:"warnings"`
}

// Failure counts the starts in which the same pass failed.
type Failure struct {
	FailedPass
	Message string `json:"message"`
	Starts  int    `json:"starts"`
}

// Text describes the failure in the words of a pipeline.
func (f Failure) Text(w Wording) string {
	text := fmt.Sprintf("%s (%s)", f.Message, f.Category.In(w))
	if f.Starts > 1 {
		return fmt.Sprintf("failed in %d starts, the last time: %s", f.Starts, text)
	}
	return text
}

// Same reports whether another failure is of the same pass.
func (f Failure) Same(other FailedPass) bool { return f.Step == other.Step && f.Member == other.Member }

// CheckpointRef names a place to go back to.
type CheckpointRef struct {
	ID       string   `json:"id"`
	Seq      int64    `json:"seq"`
	TS       string   `json:"ts"`
	AtPass   int      `json:"at_pass"`
	AtRound  int      `json:"at_round"`
	Artifact string   `json:"artifact,omitempty"`
	USD      float64  `json:"usd"`
	Score    *float64 `json:"score"`
}

// Total is what the run has cost, what a revert left behind and its projects included.
func (s State) Total() float64 { return Cents(s.Spent.USD + s.SunkUSD + s.ProjectsUSD()) }

// NotApproved reports that a run is done although its last loop did not meet its condition, and that nothing was
// delivered and no operator accepted the work.
func (s State) NotApproved() bool { return s.Status == Done && s.Unmet != "" && s.Delivery == nil }

// StatusText is a status of the run for people: "done, not approved".
func (s State) StatusText(stands Status) string {
	if stands == Done && s.NotApproved() {
		return string(stands) + ", not approved"
	}
	return string(stands)
}

// UnknownCalls counts the calls whose cost Total lacks.
func (s State) UnknownCalls() int {
	unknown := s.Spent.Unknown + s.SunkUnknown
	for _, p := range s.Projects {
		unknown += p.Unknown
	}
	return unknown
}

// CostText writes the total: $1.20, "≥ $1.20 (2 calls not fully known)", "≈ $1.20 at list price", unknown.
func (s State) CostText() string {
	text := CostText(s.Total(), s.UnknownCalls())
	if !s.ListPrice || s.Total() == 0 {
		return text
	}
	if s.UnknownCalls() <= 0 {
		text = "≈ " + text
	}
	return text + " at list price"
}

// CostWords is CostText in a sentence: cost unknown.
func (s State) CostWords() string {
	if s.CostKnown() == CostUnknown {
		return "cost unknown"
	}
	return s.CostText()
}

// CostKnown reports whether Total is all that was spent.
func (s State) CostKnown() CostKnown { return KnownOf(s.Total(), s.UnknownCalls()) }

// Value looks up a result of this round.
func (s State) Value(name string) (string, bool) {
	for _, v := range s.Values {
		if v.Name == name {
			return v.Text, true
		}
	}
	return "", false
}

// Try is the number of the next call of a member of the step at Next; member is empty outside groups.
func (s State) Try(member string) int {
	for _, t := range s.Tries {
		if t.Member == member {
			return t.Judged + 1
		}
	}
	return 1
}

// Note returns one notes file.
func (s State) Note(name string) (Notes, bool) {
	for _, n := range s.Notes {
		if n.Name == name {
			return n, true
		}
	}
	return Notes{}, false
}
