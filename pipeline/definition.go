// Package pipeline turns a pipeline definition (YAML) into a checked Definition and a numbered Plan.
//
// It has no side effects: it gets the bytes of the file and a file system in which to look up names. All problems of a
// definition are reported together, each with file and line (requirement 002, configuration validation).
package pipeline

import "time"

// Definition is one checked pipeline file. Lists keep the order of the file.
type Definition struct {
	Name       string  `yaml:"pipeline"`
	File       string  `yaml:"-"` // name of the file, for messages
	Kind       string  // Kind…: purpose of a run
	Wording    string  // Wording…: the words that its runs are reported in
	Inputs     []Input `yaml:"-"`
	Unattended bool
	Questions  Questions
	Notify     []Notify
	Delivery   *Delivery
	Agents     []Agent `yaml:"-"`
	Limits     Limits
	Budget     Budget
	Artifact   *Artifact
	Workspace  *Workspace
	Snapshots  string    // full: store each turn's tree; empty: store only its manifest
	Notes      []Note    `yaml:"-"`
	AlwaysRead []File    `yaml:"always_read"`
	Roles      []Role    `yaml:"-"`
	Corpus     []Set     `yaml:"-"`
	Projects   []Project `yaml:"-"`
	Stages     []Stage   `yaml:"-"`

	left []output // see outputs
}

// Agent is a program that answers prompts. The default agent has the name "".
type Agent struct {
	Name   string   `json:"name"`
	Use    string   `json:"use,omitempty"` // name of the preset that Run follows from; empty: the definition has the command
	Choice Choice   `json:"-" yaml:",inline"`
	Run    []string `json:"run"`             // argv; a first word "scripted" is Passbook's own offline agent
	Reply  string   `json:"reply"`           // name of an adapter: claude-stream, text
	Price  *Price   `json:"price,omitempty"` // used when a reply has no cost
	Usage  *Usage   `json:"usage,omitempty"` // of replies in plain text
	Env    []string `json:"env,omitempty"`   // names of additional environment variables that it may read
	// who pays for its calls, for limits and costs; empty: found from its program and credentials
	Account string `json:"account,omitempty"`
	// whether a retry of an interrupted call continues its session or restarts; empty: continue, if the agent can
	OnInterrupt string `json:"on_interrupt,omitempty" yaml:"on_interrupt"`

	Confinement `yaml:",inline"`
}

// Confinement restricts the processes of a call on its host.
type Confinement struct {
	Sandbox string  `json:"sandbox,omitempty"` // none, workspace or strict; empty: the default of the host
	Network Network `json:"network,omitempty"` // empty: that of the settings, or none in mode strict
}

// Network is [NetworkNone], or what a call may reach: [NetworkInternet], HOST, HOST:PORT, *.DOMAIN.
type Network []string

// Modes of a sandbox, and networks.
const (
	SandboxNone     = "none"
	NetworkInternet = "internet" // public addresses
	NetworkNone     = "none"
)

// InterruptRestart is the value of on_interrupt with which no session is continued.
const InterruptRestart = "restart"

// SessionContinue is the value of session with which the calls of a role continue one session.
const SessionContinue = "continue"

// Price is in USD per million tokens. Without prices of cached tokens, they cost 0.1 (read) and 1.25 (written) of an
// input token.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read,omitempty" yaml:"cache_read"`
	CacheWrite float64 `json:"cache_write,omitempty" yaml:"cache_write"`
}

// Usage finds what a call used in the output of an agent that replies with plain text.
type Usage struct {
	Find string `json:"find"` // RE2, with groups named as in UsageGroups; the last match counts
}

// Limits bound one pass. Limits of a role or step override those of the definition.
type Limits struct {
	Timeout    time.Duration `json:"timeout"`        // of one attempt; from the third attempt, 1.5 times this
	Idle       time.Duration `json:"idle,omitempty"` // longest time without output of an agent; 0: no limit
	Attempts   int           `json:"attempts"`       // 3: one and two retries
	Structural int           `json:"structural"`     // attempts when a reply has no artifact or no sections: 2
	Backoff    Backoff       `json:"backoff"`
	// at a limit of the provider; see Complete
	Wait         Waits         `json:"wait,omitzero"`                               // rate limit, overload, no connection
	MaxWait      time.Duration `json:"max_wait,omitempty" yaml:"max_wait"`          // sum of these waits
	UnknownReset Waits         `json:"unknown_reset,omitzero" yaml:"unknown_reset"` // usage limit without a reset time
	AfterReset   Span          `json:"after_reset,omitzero" yaml:"after_reset"`     // random addition to a reset time
	Fallback     []string      `json:"fallback,omitempty"`                          // agents to ask at a usage limit
	// of stdout, of stderr and of the artifact file; 0: 32MB, see Complete
	Output Bytes      `json:"output,omitempty"`
	Tree   TreeLimits `json:"tree,omitzero"`
	// calls of all runs of the pipeline on a host at the same time; 0: no bound. Of the pipeline only, as TimeScale.
	AtOnce int `json:"-" yaml:"at_once"`
	// multiplies real waits, not the logged waits; default 1, demos 0.01
	TimeScale float64 `json:"time_scale" yaml:"time_scale"`
}

// Backoff is the wait after attempt n: min(first * factor^(n-1) * (1 + jitter*rand), max).
type Backoff struct {
	First  time.Duration `json:"first"`
	Factor float64       `json:"factor"`
	Max    time.Duration `json:"max"`
	Jitter float64       `json:"jitter"`
}

// Waits are waits for a provider: each is twice the one before.
type Waits struct {
	First time.Duration `json:"first"`
	Max   time.Duration `json:"max"`
}

// Span is a random duration.
type Span struct {
	Min time.Duration `json:"min"`
	Max time.Duration `json:"max"`
}

// TreeLimits bound the workspace that a pass leaves.
type TreeLimits struct {
	Size  Bytes `json:"size,omitempty"`  // apparent size of all files; 0: 2GB
	Files int   `json:"files,omitempty"` // files, symlinks and folders; 0: 100,000
}

// Budget bounds what a run may use. Zero means no bound.
type Budget struct {
	USD     float64 `json:"usd"`
	WarnAt  float64 `json:"warn_at" yaml:"warn_at"` // share of USD, 0.8
	PerPass PerPass `json:"per_pass,omitzero" yaml:"per_pass"`

	Tokens   int64   `json:"tokens,omitempty"` // of all kinds
	Calls    int     `json:"calls,omitempty"`
	Hours    float64 `json:"hours,omitempty"`    // of work, without pauses and questions
	Deadline string  `json:"deadline,omitempty"` // see ParseDeadline
}

// PerPass bounds what one call may spend.
type PerPass struct {
	USD    float64 `json:"usd,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
}

// Artifact is the one file that the passes revise.
type Artifact struct {
	File string `json:"file"` // name in the run directory
	Seed string `json:"seed"` // initial content, relative to the definition
}

// Words that runs are reported in.
const (
	WordingStages = "stages" // the default
	WordingCorpus = "corpus" // those of requirement 002, for the corpus pipeline
)

// Kinds of pipelines.
const (
	KindWork     = ""         // ends when its work is done and, if requested, delivered
	KindPlanning = "planning" // its result is a plan that an operator reviews
	KindResearch = "research" // its result is a report that an operator reviews
)

// PlanOnly reports whether an operator reads a run's result and ends the run.
func PlanOnly(kind string) bool { return kind == KindPlanning || kind == KindResearch }

// Workspace is the tree that agents change in place: a git worktree or a folder.
type Workspace struct {
	Git string `json:"git,omitempty"` // "worktree"
	Dir string `json:"dir,omitempty"`
	// with git, for a source with uncommitted changes: halt, include, exclude or commit
	Dirty   string   `json:"dirty,omitempty"`
	Ignore  []string `json:"ignore,omitempty"`  // patterns as in .gitignore, of files outside the tree
	Secrets string   `json:"secrets,omitempty"` // files that look like secrets: skip or keep
	Protect Paths    `json:"protect,omitempty"` // that no role may change; see Role.Protect
	Setup   Commands `json:"setup,omitempty"`   // of a new workspace, before its first call
	Env     []string `json:"env,omitempty"`     // names of additional environment variables of Setup
	Keep    bool     `json:"keep,omitempty"`    // the folder of the workspace stays when the run has ended
}

// Commands are shell commands that run one after another; in a definition, one command needs no list.
type Commands []string

// Questions bound how long a run waits for an operator. Zero durations: no reminder, no expiry.
type Questions struct {
	Remind   time.Duration `json:"remind,omitempty"`                     // between reminders
	Expires  time.Duration `json:"expires,omitempty"`                    // then it is settled without an answer
	OnExpiry string        `json:"on_expiry,omitempty" yaml:"on_expiry"` // halt, continue or remind
}

// Notify is one receiver of messages about a run: a command or a web address. Secrets are referred to by name and never
// written.
type Notify struct {
	// argv; the command reads the message from standard input
	Run []string `json:"run,omitempty"`
	// names of additional environment variables that the command may read
	Env     []string `json:"env,omitempty"`
	Webhook string   `json:"webhook,omitempty"` // address to which the message is posted
	// or the name of the environment variable that contains the address
	WebhookEnv string `json:"webhook_env,omitempty" yaml:"webhook_env"`
	// name of the environment variable with the key that signs the message
	SecretEnv string `json:"secret_env,omitempty" yaml:"secret_env"`
	// the message has a link that answers the question; who has the link can answer
	Link    bool          `json:"link,omitempty"`
	On      []string      `json:"on"`                     // On…
	Timeout time.Duration `json:"timeout"`                // of one attempt
	GiveUp  time.Duration `json:"give_up" yaml:"give_up"` // total duration of the attempts

	Confinement `yaml:",inline"` // of the command
}

// Delivery configures where the changes of a finished run go.
type Delivery struct {
	To string `json:"to,omitempty"` // branch or checkout; empty: nowhere
	// for a delivery to a branch; empty: passbook-<first eight characters of the run ID>
	Branch  string   `json:"branch,omitempty"`
	Commit  bool     `json:"commit,omitempty"` // commit a delivery to the checkout
	Paths   []string `json:"paths,omitempty"`  // deliver only changes below these paths; empty: all
	Message string   `json:"message,omitempty"`
	// false: the commands that decide do not run once more in a fresh folder
	Fresh *bool `json:"fresh,omitempty"`
}

// Delivers reports whether changes go anywhere besides the branch of the run.
func (d *Delivery) Delivers() bool { return d != nil && d.To != "" }

// ChecksFresh reports whether the commands that decide about the work run once more in a fresh folder.
func (d *Delivery) ChecksFresh() bool { return d == nil || d.Fresh == nil || *d.Fresh }

// Note is an append-only file filled from marked blocks of replies.
type Note struct {
	Name string `json:"name"` // "conviction"
	File string `json:"file"` // "conviction-layer.md"
	// "CONVICTION_ADDITION": <!-- CONVICTION_ADDITION_START --> … <!-- CONVICTION_ADDITION_END -->
	Marker string `json:"marker"`
}

// File is a labelled input. Its path is relative to the definition's folder and uses forward slashes.
type File struct {
	Label string `json:"label"`
	Path  string `json:"path"`
}

// Set is one group of files. A for_each stage iterates over the sets in order.
type Set struct {
	ID    string `json:"id"`
	Theme string `json:"theme"`
	Files []File `json:"files"`
}

// Project is one project of a run across projects. It has a run, which the definition Pipeline describes.
type Project struct {
	Alias    string   `json:"alias" yaml:"-"`
	Source   string   `json:"source"`   // repository or folder, relative to the definition
	Pipeline string   `json:"pipeline"` // path of its definition
	Task     string   `json:"task,omitempty"`
	Needs    []string `json:"needs,omitempty"` // projects that must be done before it starts
}

// What a role outputs.
const (
	GivesArtifact = "artifact" // the whole artifact, in the reply or as the file it changed
	GivesReport   = "report"   // text only
	GivesChanges  = "changes"  // changes to the workspace
	GivesOutcome  = "outcome"  // of a command: ok or failed; not for roles
)

// CommandRole is the name under which commands are counted.
const CommandRole = "command"

// Role configures a prompt for an agent and what is extracted from its reply.
type Role struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"` // path of the prompt template
	// parts (Part…) that the template places itself and that are therefore always filled in
	Places  []string `json:"places,omitempty" yaml:"-"`
	Gives   string   `json:"gives"` // artifact, report or changes
	Checks  []Check  `json:"checks,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Tally   []Tally  `json:"tally,omitempty" yaml:"-"`
	Score   *Score   `json:"score,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"`
	Agent   string   `json:"agent,omitempty"`
	Choice  Choice   `json:"-" yaml:",inline"` // of a preset, instead of that of the agent
	// continue: its calls in a stage are one conversation with the agent; empty: each call begins a new one
	Session string `json:"session,omitempty"`
	// false: it may change the protected paths of the workspace
	Protect *bool `json:"protect,omitempty"`
	// of the JSON that its reply ends with: SchemaReview, SchemaPlan or the path of a JSON Schema; empty: it needs none
	Schema     string    `json:"schema,omitempty"`
	SchemaText string    `json:"schema_text,omitempty" yaml:"-"`
	Once       bool      `json:"once,omitempty" yaml:"-"` // one step calls it, whose output has its name
	Uses       []string  `json:"uses,omitempty" yaml:"-"` // ids of the outputs that its prompt has
	Limits     Limits    `json:"limits"`                  // complete: merged over those of the definition
	With       []KeyText `json:"with,omitempty" yaml:"-"`
}

// Judges reports whether its replies have a verdict.
func (r Role) Judges() bool { return r.Verdict != nil || r.Schema == SchemaReview }

// Protected reports whether the role may not change the protected paths of the workspace.
func (r Role) Protected() bool { return r.Protect == nil || *r.Protect }

// KeyText is one entry of `with`, available to the prompt as {{with.KEY}}; a list is joined with ", ".
type KeyText struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Names of the built-in checks. Any other name needs `any` or `none`.
const (
	CheckNonEmpty       = "non-empty"
	CheckMinimumLength  = "minimum-length"
	CheckHTMLPresent    = "html-present"
	CheckHTMLComplete   = "html-complete"
	CheckContainerWidth = "container-width"
)

// Check is one named test of a reply. The name determines which fields apply: non-empty; minimum-length (over,
// characters); html-present; html-complete; container-width (between); any other name with any (at least one of these
// must occur) or none (none may occur).
type Check struct {
	Name    string   `json:"name"`
	Over    int      `json:"over,omitempty"`
	Between []int    `json:"between,omitempty" yaml:"-"` // two numbers, inclusive
	Any     []string `json:"any,omitempty"`
	None    []string `json:"none,omitempty"`
}

// Tally counts the top-level list items under a heading.
type Tally struct {
	Name    string `json:"name"`
	Heading string `json:"heading"`
}

// Score finds a number in a reply. A number that is missing or out of range is not a score.
type Score struct {
	Name  string    `json:"name"`
	Find  string    `json:"find"` // RE2, one group
	Take  string    `json:"take"` // first or last
	Range []float64 `json:"range"`
}

// Verdict finds a word in a reply. Where the reply has a review, that counts first.
type Verdict struct {
	Find     string   `json:"find"`               // RE2, one group
	Approves Commands `json:"approves,omitempty"` // words that approve the work; empty: approved
}

// Stage is a list of steps that runs once, once for each set, or repeatedly.
type Stage struct {
	Name       string
	ForEach    string  `yaml:"for_each"` // "corpus" or ""
	Orders     []Order `yaml:"-"`
	Steps      []Step  `yaml:"-"` // `passes` of a for_each stage are steps too
	Repeat     *Repeat
	Checkpoint string // name with {set} or {n}
	Dir        string // folder for evidence, with {n}
	PauseAfter bool   `yaml:"pause_after"` // pause for a review after each round
	// condition on the result of a round; if a round does not meet it, the run pauses
	Gate  string `yaml:"quality_gate"`
	When  string // condition without which the stage is skipped
	Each  *Each  // the stage runs once for each item of a list
	Merge *Merge // of the changes of its lanes
}

// Each is the list whose items a stage works through in lanes: several at the same time, each with its own tree.
type Each struct {
	In        string `json:"in"` // ID, ID.MEMBER, ID.lines of a command, or a glob
	AtOnce    int    `json:"at_once" yaml:"at_once"`
	IfFailing string `json:"if_failing,omitempty" yaml:"if_failing"` // continue, or empty: ask
}

// Merge is how the changes of lanes become one tree.
type Merge struct {
	Conflicts string `json:"conflicts,omitempty"` // ask, the default
}

// Order is the position in the file list from which to read, wrapping around: len * Num / Den, rounded down.
type Order struct {
	Name  string
	Num   int
	Den   int
	Label string
}

// Repeat bounds a loop.
type Repeat struct {
	Max       int    `json:"max"`
	Until     string `json:"until"`               // condition with which it ends
	Otherwise string `json:"otherwise,omitempty"` // ask or "": what to do if Max is reached and Until is not met
	Stalled   int    `json:"stalled,omitempty"`   // rounds in a row without progress that end it; 0: they do not
}

// usualStalled is how many rounds without progress end a loop.
const usualStalled = 2

// Kinds of a step, named after its YAML key.
const (
	KindRole        = "role"
	KindTogether    = "together"
	KindRun         = "run"
	KindScreenshots = "screenshots"
	KindAsk         = "ask"
)

// Types of an ask, the same as those of hand-offs in package run.
const (
	AskAlways   = "human_feedback_always"
	AskOnReject = "human_feedback_on_reject" // only if the last verdict is not approved
	AskBypass   = "human_bypass"             // likewise, without repeating the step before it
)

// Step is one line of a stage. Exactly one of Role, Together, Run, Screenshots, Ask is set.
type Step struct {
	Line        int `yaml:"-"`
	Role        string
	Together    []string
	Run         string
	Screenshots *Screenshots
	Ask         string     `yaml:"-"`
	AskType     string     `yaml:"-"`          // of an ask: one of the hand-off types
	Questions   *Questions `yaml:"-"`          // of an ask: overrides those of the pipeline
	IfFailing   string     `yaml:"if_failing"` // of role and run: continue or ask, if a check or the command fails
	Effect      string     // of role, together and run: the class of its external effect, see run.Effect…
	ID          string     // name of its output in conditions, prompts and see
	When        string     // condition without which it is skipped
	See         string     // last, a stage's name, a step's id, or ""
	Order       string
	Limits      *Limits  `yaml:"-"`
	Env         []string // of run: names of additional environment variables that the command may read

	Confinement `yaml:",inline"` // of run
}

// Screenshots configures which pictures of the artifact to take.
type Screenshots struct {
	Sizes     []Size   `json:"sizes"`
	Kinds     []string `json:"kinds"` // full, viewport, scroll
	Attempts  int      `json:"attempts"`
	IfFailing string   `json:"if_failing" yaml:"if_failing"` // continue or stop
	Install   []string `json:"install,omitempty"`
}

// Size is a viewport in CSS pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}
