// Package pipeline turns a pipeline definition (YAML) into a checked Definition and a numbered Plan.
//
// It is pure: it is handed the bytes of the file and a file system to look names up in, and touches nothing else. Every problem of a
// definition is reported at once, each with file and line (requirement 002, configuration validation).
package pipeline

import "time"

// Definition is one checked pipeline file. Lists keep the order of the file.
type Definition struct {
	Name       string
	File       string // name it was read under, for messages
	Kind       string // Kind…: what a run is for
	Questions  Questions
	Notify     []Notify
	Delivery   *Delivery
	Agents     []Agent
	Limits     Limits
	Budget     Budget
	Artifact   *Artifact
	Workspace  *Workspace
	Snapshots  string // full: each turn's tree is laid down; empty: only its manifest
	Notes      []Note
	AlwaysRead []File
	Roles      []Role
	Corpus     []Set
	Stages     []Stage
}

// Agent is a program that answers prompts. The default one is named "".
type Agent struct {
	Name  string   `json:"name"`
	Run   []string `json:"run"`             // argv; a first word "scripted" is Passbook's own offline agent
	Reply string   `json:"reply"`           // claude-json or text
	Price *Price   `json:"price,omitempty"` // only used when a reply carries no cost
	Env   []string `json:"env,omitempty"`   // names of environment variables it may see beside the usual ones
}

// Price is in USD per million tokens.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// Limits bound one pass. A role's or step's limits are laid over the definition's.
type Limits struct {
	Timeout    time.Duration `json:"timeout"`    // of one attempt; from the third attempt on 1.5 times this
	Attempts   int           `json:"attempts"`   // 3: one and two retries
	Structural int           `json:"structural"` // attempts when a reply has no artifact or no sections: 2
	Backoff    Backoff       `json:"backoff"`
	RateLimit  RateLimit     `json:"rate_limit"`
	TimeScale  float64       `json:"time_scale"` // multiplies real waits, not the logged ones; 1, demos 0.01
}

// Backoff is the wait after attempt n: min(first * factor^(n-1) * (1 + jitter*rand), max).
type Backoff struct {
	First  time.Duration `json:"first"`
	Factor float64       `json:"factor"`
	Max    time.Duration `json:"max"`
	Jitter float64       `json:"jitter"`
}

// RateLimit replaces attempts, first wait and cap when the provider says it is overloaded.
type RateLimit struct {
	Attempts int           `json:"attempts"`
	First    time.Duration `json:"first"`
	Max      time.Duration `json:"max"`
}

// Budget caps what a run may spend, in USD. Zero means no cap.
type Budget struct {
	USD    float64 `json:"usd"`
	WarnAt float64 `json:"warn_at"` // share of USD, 0.8
}

// Artifact is the one file that the passes revise.
type Artifact struct {
	File string `json:"file"` // its name in the run directory
	Seed string `json:"seed"` // where it starts from, beside the definition
}

// Kinds of pipelines.
const (
	KindWork     = ""         // it ends when its work is done, and delivered where the definition says so
	KindPlanning = "planning" // its result is a plan that a person reviews
	KindResearch = "research" // its result is a report that a person reviews
)

// PlanOnly says that a run's result is read by a person, who ends the run.
func PlanOnly(kind string) bool { return kind == KindPlanning || kind == KindResearch }

// Workspace is the tree that agents change in place: a git worktree or a folder.
type Workspace struct {
	Git     string   `json:"git,omitempty"` // "worktree"
	Dir     string   `json:"dir,omitempty"`
	Dirty   string   `json:"dirty,omitempty"`   // with git, of a source with changes of its own: halt, include, exclude or commit
	Ignore  []string `json:"ignore,omitempty"`  // patterns as in .gitignore, of what is not part of the tree
	Secrets string   `json:"secrets,omitempty"` // files that look like secrets: skip or keep
}

// Questions say how long a run waits for a person. Zero durations: no reminder, no expiry.
type Questions struct {
	Remind   time.Duration `json:"remind,omitempty"`    // between reminders
	Expires  time.Duration `json:"expires,omitempty"`   // after that it is settled without an answer
	OnExpiry string        `json:"on_expiry,omitempty"` // halt, continue or remind
}

// Notify is one receiver of messages about a run: a command, or an address of the web. What is secret is named, never written.
type Notify struct {
	Run        []string      `json:"run,omitempty"`         // argv; it gets the message on standard input
	Env        []string      `json:"env,omitempty"`         // names of environment variables that the command may see beside the usual ones
	Webhook    string        `json:"webhook,omitempty"`     // address that the message is posted to
	WebhookEnv string        `json:"webhook_env,omitempty"` // or the name of the variable that has it
	SecretEnv  string        `json:"secret_env,omitempty"`  // name of the variable with the key that the message is signed with
	On         []string      `json:"on"`                    // On…
	Timeout    time.Duration `json:"timeout"`               // of one try
	GiveUp     time.Duration `json:"give_up"`               // after this long of tries
}

// Delivery says where the changes of a run go when it is through.
type Delivery struct {
	To      string   `json:"to"`               // branch or checkout
	Branch  string   `json:"branch,omitempty"` // of a delivery to a branch; empty: passbook-<first eight of the run's id>
	Commit  bool     `json:"commit,omitempty"` // a delivery to the checkout is committed there
	Paths   []string `json:"paths,omitempty"`  // only changes below these are delivered; empty: all
	Message string   `json:"message,omitempty"`
}

// Note is an append-only file filled from marked blocks of replies.
type Note struct {
	Name   string `json:"name"`   // "conviction"
	File   string `json:"file"`   // "conviction-layer.md"
	Marker string `json:"marker"` // "CONVICTION_ADDITION": <!-- CONVICTION_ADDITION_START --> … <!-- CONVICTION_ADDITION_END -->
}

// File is a labelled input, its path relative to the definition's folder, with slashes.
type File struct {
	Label string `json:"label"`
	Path  string `json:"path"`
}

// Set is one group of files; a for_each stage walks the sets in order.
type Set struct {
	ID    string `json:"id"`
	Theme string `json:"theme"`
	Files []File `json:"files"`
}

// Role says what an agent is asked and what is taken from its reply.
type Role struct {
	Name    string    `json:"name"`
	Prompt  string    `json:"prompt"`           // path of the template
	Places  []string  `json:"places,omitempty"` // Part…: what the template places itself, and so is always given
	Gives   string    `json:"gives"`            // artifact, report or changes
	Checks  []Check   `json:"checks,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
	Tally   []Tally   `json:"tally,omitempty"`
	Score   *Score    `json:"score,omitempty"`
	Verdict *Verdict  `json:"verdict,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Limits  Limits    `json:"limits"` // complete: laid over the definition's
	With    []KeyText `json:"with,omitempty"`
}

// KeyText is one entry of `with`, given to the prompt as {{with.KEY}}; a list is joined with ", ".
type KeyText struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Check is one named test of a reply. Which fields count depends on the name: non-empty; minimum-length (over, characters);
// html-present; html-complete; container-width (between); any name with any (one of these must occur) or none (none may).
type Check struct {
	Name    string   `json:"name"`
	Over    int      `json:"over,omitempty"`
	Between []int    `json:"between,omitempty"` // two numbers, both allowed
	Any     []string `json:"any,omitempty"`
	None    []string `json:"none,omitempty"`
}

// Tally counts the top-level list items under a heading.
type Tally struct {
	Name    string `json:"name"`
	Heading string `json:"heading"`
}

// Score finds a number in a reply. Out of range or absent is no score, never a guess.
type Score struct {
	Name  string    `json:"name"`
	Find  string    `json:"find"` // RE2, one group
	Take  string    `json:"take"` // first or last
	Range []float64 `json:"range"`
}

// Verdict finds a word in a reply.
type Verdict struct {
	Find string `json:"find"` // RE2, one group
}

// Stage is a list of steps: once, for each set, or repeated.
type Stage struct {
	Name       string
	ForEach    string // "corpus" or ""
	Orders     []Order
	Steps      []Step // `passes` of a for_each stage are steps too
	Repeat     *Repeat
	Checkpoint string // name with {set} or {n}
	Dir        string // folder of the evidence, with {n}
	PauseAfter bool   // rest for a review after each round
	Gate       string // condition on what a round gave, see ParseUntil; a round that does not meet it rests the run
}

// Order is how far along the file list to start reading, wrapping round: floor(len * Num / Den).
type Order struct {
	Name  string
	Num   int
	Den   int
	Label string
}

// Repeat bounds a loop.
type Repeat struct {
	Max       int    `json:"max"`
	Until     string `json:"until"`               // checked source, see ParseUntil
	Otherwise string `json:"otherwise,omitempty"` // ask or "": what happens when Max is reached and Until does not hold
}

// Step is one line of a stage. Exactly one of Role, Together, Run, Screenshots, Ask is set.
type Step struct {
	Line        int
	Role        string
	Together    []string
	Run         string
	Screenshots *Screenshots
	Ask         string
	AskType     string     // of an ask: one of the hand-off types
	Questions   *Questions // of an ask: laid over the pipeline's
	IfFailing   string     // of role and run: continue or ask, when a check or the command fails
	As          string
	See         string // last, a stage's or step's name, or ""
	Order       string
	Limits      *Limits
}

// Screenshots says which pictures of the artifact to take.
type Screenshots struct {
	Sizes     []Size   `json:"sizes"`
	Kinds     []string `json:"kinds"` // full, viewport, scroll
	Attempts  int      `json:"attempts"`
	IfFailing string   `json:"if_failing"` // continue or stop
	Install   []string `json:"install,omitempty"`
}

// Size is a viewport in CSS pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}
