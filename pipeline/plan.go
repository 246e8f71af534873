package pipeline

// PlanVersion is the version of the stored plan. A run keeps the plan with which it started; it is never expanded
// again.
const PlanVersion = 2

// Plan is a definition expanded into numbered steps, in order. It is stored as JSON with the run's inputs.
type Plan struct {
	Version    int         `json:"version"`
	Pipeline   string      `json:"pipeline"`
	Wording    string      `json:"wording,omitempty"` // empty: of an earlier version, as WordingCorpus
	ConfigHash string      `json:"config_hash"`       // first 16 hex digits of the significant fields' sha-256
	Total      int         `json:"total"`             // numbered passes: those of stages that do not repeat
	Builders   int         `json:"builders"`          // of these, passes that output an artifact or changes
	MaxRounds  int         `json:"max_rounds"`        // of the last repeated stage, 0 without one
	Agents     []Agent     `json:"agents"`
	Budget     Budget      `json:"budget"`
	TimeScale  float64     `json:"time_scale"`
	AtOnce     int         `json:"at_once,omitempty"` // calls of all its runs on a host; 0: no bound
	Artifact   *Artifact   `json:"artifact,omitempty"`
	Workspace  *Workspace  `json:"workspace,omitempty"`
	Snapshots  string      `json:"snapshots,omitempty"`
	Kind       string      `json:"kind,omitempty"`
	Inputs     []Input     `json:"inputs,omitempty"`
	Unattended string      `json:"unattended,omitempty"` // what asked for it: definition or start; empty: nothing
	Questions  Questions   `json:"questions,omitzero"`
	Notify     []Notify    `json:"notify,omitempty"`
	Delivery   *Delivery   `json:"delivery,omitempty"`
	After      *After      `json:"after,omitempty"`
	Notes      []Note      `json:"notes,omitempty"`
	AlwaysRead []File      `json:"always_read,omitempty"`
	Roles      []Role      `json:"roles"`
	Sets       []Set       `json:"sets,omitempty"`
	Projects   []Project   `json:"projects,omitempty"` // those that are needed come first
	Stages     []PlanStage `json:"stages"`
	Kept       []string    `json:"kept,omitempty"` // ids of the outputs that later steps or conditions use
}

// PlanStage is one stage. A stage that does not repeat lists all its rounds; a repeated stage has a single round as a
// template.
type PlanStage struct {
	Name   string    `json:"name"`
	Title  string    `json:"title"` // for display: "Corpus integration"
	Kind   StageKind `json:"kind"`
	Repeat *Repeat   `json:"repeat,omitempty"`
	// Checkpoint and Dir are the definition's templates. {n} is filled in when a round starts; {set} already is, in
	// PlanRound.
	Checkpoint string      `json:"checkpoint,omitempty"`
	Dir        string      `json:"dir,omitempty"`
	PauseAfter bool        `json:"pause_after,omitempty"`
	Gate       string      `json:"quality_gate,omitempty"`
	When       string      `json:"when,omitempty"`
	Needs      []string    `json:"needs,omitempty"`      // of the condition of its loop, see needsOf
	GateNeeds  []string    `json:"gate_needs,omitempty"` // of its quality gate
	Threshold  *float64    `json:"threshold,omitempty"`  // score that ends its loop
	Lanes      *Lanes      `json:"lanes,omitempty"`
	Rounds     []PlanRound `json:"rounds"`
}

// PlanRound is one iteration of a stage's steps.
type PlanRound struct {
	Set        string     `json:"set,omitempty"`        // "S5"
	Theme      string     `json:"theme,omitempty"`      // "Grammar + Compositional Rules"
	Checkpoint string     `json:"checkpoint,omitempty"` // "cp-S5"; in a repeated stage still with {n}
	Steps      []PlanStep `json:"steps"`
	// commands of steps that run once more in a fresh folder
	Fresh []PlanStep `json:"fresh,omitempty"`
}

// StepKind is the kind of a step. Its constants, Kind…, are untyped: each is also the YAML key of the step.
type StepKind string

// PlanStep is one step, resolved as far as possible.
type PlanStep struct {
	// Key identifies the step within the run and is part of call IDs: "035" for a numbered pass; "<stage>/3" in a repeated
	// stage, and for other steps in a stage without sets; "<stage>/S2/3" for other steps in a stage with sets.
	Key string `json:"key"`
	// 1-based over all stages that do not repeat; 0 in a repeated stage
	Number  int      `json:"number,omitempty"`
	InRound int      `json:"in_round"` // 1-based
	Kind    StepKind `json:"kind"`
	Role    string   `json:"role,omitempty"`    // kind role
	Members []string `json:"members,omitempty"` // kind together: role names
	// kind run: a shell command
	Run     string `json:"run,omitempty"`
	Fresh   string `json:"fresh,omitempty"`    // kind run: key of the step whose command it repeats in a fresh folder
	Ask     string `json:"ask,omitempty"`      // kind ask: the question
	AskType string `json:"ask_type,omitempty"` // kind ask
	// kind ask, and kinds role and run that ask on failure: how long the question waits
	Questions  *Questions   `json:"questions,omitempty"`
	IfFailing  string       `json:"if_failing,omitempty"`  // kinds role and run: ask, or empty
	Effect     string       `json:"effect,omitempty"`      // declared class of its external effect; empty: by its kind
	Shots      *Screenshots `json:"shots,omitempty"`       // kind screenshots
	ID         string       `json:"id,omitempty"`          // name of its output in conditions, prompts and see
	When       string       `json:"when,omitempty"`        // condition without which it is skipped
	Order      string       `json:"order,omitempty"`       // "B"
	OrderLabel string       `json:"order_label,omitempty"` // "Mid files promoted"
	Files      []string     `json:"files,omitempty"`       // labels of the set's files, in reading order
	// parts of its prompt, see Part…; for a group see Plan.PartsOf
	Gets []string `json:"gets,omitempty"`
	// key of the step whose reply its prompt includes; for a group, of all members. In a repeated stage it is the step's
	// latest reply; in round 1 there may be none
	Sees      string `json:"sees,omitempty"`
	SeesStage string `json:"sees_stage,omitempty"` // or a stage, for its last reply
	// "[S5] Pass 3/8 — Rotation A (Base ordering) — Builder — Grammar + Compositional Rules"
	Description string `json:"description"`
	LogTitle    string `json:"log_title"` // the shorter form of 002 §2.2
	// complete, if the step overrides its role's, and for kind run; see Plan.RoleLimits
	Limits *Limits  `json:"limits,omitempty"`
	Env    []string `json:"env,omitempty"` // kind run: names of additional environment variables

	Confinement // kind run
}

// ShellArgv returns what a step of kind run executes.
func (s PlanStep) ShellArgv() []string { return []string{Shell, "-c", s.Run} }

// Parts of a prompt, in their order when the template does not place them.
const (
	PartContext    = "context"
	PartReferences = "references"
	PartNotes      = "notes"
	PartReplies    = "replies"  // replies of the steps named by `see`
	PartPictures   = "pictures" // pictures of this round, or the artifact's source without pictures
	PartArtifact   = "artifact"
	PartFiles      = "files" // the set's files in the step's order
	PartContent    = "content"
	PartTask       = "task"
)
