package pipeline

// PlanVersion is the version of the stored plan. A run keeps the plan it started with; it is never expanded again.
const PlanVersion = 1

// Plan is a definition expanded into numbered steps: what a run will do, in order. It is stored as JSON with the run's inputs.
type Plan struct {
	Version    int         `json:"version"`
	Pipeline   string      `json:"pipeline"`
	ConfigHash string      `json:"config_hash"` // first 16 hex digits of the significant fields' sha-256
	Total      int         `json:"total"`       // numbered passes: those of stages that do not repeat
	Builders   int         `json:"builders"`    // of these, passes that give an artifact or changes
	MaxRounds  int         `json:"max_rounds"`  // of the last repeated stage, 0 without one
	Agents     []Agent     `json:"agents"`
	Budget     Budget      `json:"budget"`
	TimeScale  float64     `json:"time_scale"`
	Artifact   *Artifact   `json:"artifact,omitempty"`
	Workspace  *Workspace  `json:"workspace,omitempty"`
	Snapshots  string      `json:"snapshots,omitempty"`
	Kind       string      `json:"kind,omitempty"`
	Questions  Questions   `json:"questions,omitzero"`
	Notify     []Notify    `json:"notify,omitempty"`
	Delivery   *Delivery   `json:"delivery,omitempty"`
	Notes      []Note      `json:"notes,omitempty"`
	AlwaysRead []File      `json:"always_read,omitempty"`
	Roles      []Role      `json:"roles"`
	Sets       []Set       `json:"sets,omitempty"`
	Stages     []PlanStage `json:"stages"`
}

// PlanStage is one stage. A stage that does not repeat has its rounds written out; a repeated one has a single round as a template.
type PlanStage struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"` // for people: "Corpus integration"
	Kind   string  `json:"kind"`  // each, once or repeat
	Repeat *Repeat `json:"repeat,omitempty"`
	// Checkpoint and Dir are the definition's templates. {n} is filled in when a round starts; {set} already is, in PlanRound.
	Checkpoint string      `json:"checkpoint,omitempty"`
	Dir        string      `json:"dir,omitempty"`
	PauseAfter bool        `json:"pause_after,omitempty"`
	Gate       string      `json:"quality_gate,omitempty"`
	Rounds     []PlanRound `json:"rounds"`
}

// PlanRound is one walk through a stage's steps.
type PlanRound struct {
	Set        string     `json:"set,omitempty"`        // "S5"
	Theme      string     `json:"theme,omitempty"`      // "Grammar + Compositional Rules"
	Checkpoint string     `json:"checkpoint,omitempty"` // "cp-S5"; in a repeated stage still with {n}
	Steps      []PlanStep `json:"steps"`
}

// PlanStep is one step, with everything resolved that can be.
type PlanStep struct {
	// Key names the step within the run and is part of call ids: "035" for a numbered pass, "<stage>/3" in a repeated stage and for what
	// is not a pass in a stage without sets, "<stage>/S2/3" for the latter in a stage with sets.
	Key         string       `json:"key"`
	Number      int          `json:"number,omitempty"`      // 1-based over all stages that do not repeat; 0 in a repeated one
	InRound     int          `json:"in_round"`              // 1-based
	Kind        string       `json:"kind"`                  // role, together, run, screenshots or ask
	Role        string       `json:"role,omitempty"`        // kind role
	Members     []string     `json:"members,omitempty"`     // kind together: role names
	Run         string       `json:"run,omitempty"`         // kind run: a shell command; its value in `until` is ok or failed
	Ask         string       `json:"ask,omitempty"`         // kind ask: the question
	AskType     string       `json:"ask_type,omitempty"`    // kind ask
	Questions   *Questions   `json:"questions,omitempty"`   // kind ask, and role and run that ask when they fail: how long it waits
	IfFailing   string       `json:"if_failing,omitempty"`  // kinds role and run: ask, or empty
	Shots       *Screenshots `json:"shots,omitempty"`       // kind screenshots
	As          string       `json:"as,omitempty"`          // name its result is known under in `until` and `see`
	Order       string       `json:"order,omitempty"`       // "B"
	OrderLabel  string       `json:"order_label,omitempty"` // "Mid files promoted"
	Files       []string     `json:"files,omitempty"`       // labels of the set's files, in reading order
	Gets        []string     `json:"gets,omitempty"`        // parts its prompt is given, see Part…; of a group see Plan.PartsOf
	Sees        string       `json:"sees,omitempty"`        // key of the step whose reply it is given; of a group: all members'. In a repeated stage the step's latest reply, in round 1 maybe none
	SeesStage   string       `json:"sees_stage,omitempty"`  // or a stage: its last reply
	Description string       `json:"description"`           // "[S5] Pass 3/8 — Rotation A (Base ordering) — Builder — Grammar + Compositional Rules"
	LogTitle    string       `json:"log_title"`             // the shorter form of 002 §2.2
	Limits      *Limits      `json:"limits,omitempty"`      // complete, when the step overrides its role's, and for kind run; see Plan.RoleLimits
}

// Parts of a prompt, in the order in which they stand when the template does not place them.
const (
	PartContext    = "context"
	PartReferences = "references"
	PartNotes      = "notes"
	PartReplies    = "replies"  // replies of the steps it sees
	PartPictures   = "pictures" // pictures of this round, or the artifact's source when there are none
	PartArtifact   = "artifact"
	PartFiles      = "files" // the set's files in the step's order
	PartContent    = "content"
	PartTask       = "task"
)
