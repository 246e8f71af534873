// Package pipeline turns a pipeline definition (YAML) into a checked Definition and a numbered Plan.
//
// It has no side effects: it gets the bytes of the file and a file system in which to look up names. All problems of a
// definition are reported together, each with file and line (requirement 002, configuration validation).
package pipeline

import "time"

// Definition is one checked pipeline file. Lists keep the order of the file.
//
// The tags of its fields, and of the types below, are the table of keys: the decoder, the JSON Schema and the reference
// follow from them, and their comments are the descriptions. The key is that of the JSON form, or the tag yaml; "-" is no key.
// The tag is has words: required; a kind of [kinds], choices a|b, or bounds 1..20; for lists single (one item needs no list),
// unique and min=N; named=X for a mapping of names to values; short for the key that a scalar in place of the mapping means.
// eg is an example, default is set if the key is not there, wants describes the value in messages.
type Definition struct {
	// The pipeline's name: letters, digits, dots, dashes, underscores.
	Name string `yaml:"pipeline" is:"required name" eg:"review"`
	File string `yaml:"-"` // name of the file, for messages
	// planning or research: the result is a plan or a report, and an operator who reviews it ends the run.
	Kind string `is:"planning|research"`
	// The words that its runs are reported in: stages and rounds; or those of the corpus pipeline. stages.
	Wording string `is:"stages|corpus" default:"stages"`
	// Values that a start passes to a run, by name; prompts have them as {{NAME}}. The task is one of every pipeline.
	Inputs []Input `is:"named=input"`
	// Questions are answered at once, without an operator; gates and rejected work still stop the run; false.
	Unattended bool
	Questions  Questions // How long a run waits for an operator.
	// Receivers of a message when a run waits, pauses, fails or ends.
	Notify []Notify
	// Where the changes of a git workspace go when the run is done.
	Delivery *Delivery
	// What a run does with its pull request until that is merged or closed.
	After *After
	// Timeouts and attempts of a pass.
	Limits Limits
	// What a run may spend; it pauses when the budget is used up.
	Budget Budget `wants:"a mapping, such as {usd: 25}"`
	// The agent for roles that do not name another.
	Default *Agent `yaml:"agent" eg:"claude" wants:"claude, codex, gemini, or a mapping with run and reply"`
	// More agents, by name; a role selects one with agent.
	Agents    []Agent    `is:"named=agent" wants:"claude, codex, gemini, or a mapping with run and reply"`
	Artifact  *Artifact  // The one file that the passes revise.
	Workspace *Workspace // The tree that agents change in place, instead of an artifact.
	// What snapshots/ contains of the workspace after each turn: manifests, from which the store restores the files; or full,
	// the files too. manifests.
	Snapshots string `is:"manifests|full"`
	// Append-only files, by name, filled from marked blocks of the replies.
	Notes []Note `is:"named=note"`
	// Files in every prompt with references, each as Label: path.
	AlwaysRead []File `yaml:"always_read"`
	// The kinds of questions, by name.
	Roles []Role `is:"named=role" eg:"{judge: {gives: report, prompt: prompts/judge.md}}"`
	// The sets of files, by name, in the order of a stage with for_each.
	Corpus []Set `is:"named=set"`
	// Projects that have a run each, before the stages; the stages then check all their trees.
	Projects []Project `is:"named=project"`
	// The stages, in order.
	Stages []Stage `is:"required" eg:"[{name: judge, steps: [{role: judge}]}]"`

	left []output // see outputs
}

// Agent is a program that answers prompts. The default agent has the name "".
type Agent struct {
	Name string `json:"name" yaml:"-"`
	// An agent by name: claude, codex, gemini, or one of agents. agent: claude is short for agent: {use: claude}.
	Use    string `json:"use,omitempty" is:"short text" eg:"claude"`
	Choice Choice `json:"-" yaml:",inline"`
	// The command and its arguments; it reads the prompt from standard input. [scripted] is the built-in agent.
	Run []string `json:"run" is:"text" eg:"[claude, -p]"`
	// Format of the output: that of a program, with text, tokens and cost; or text, the whole output is the reply.
	Reply string `json:"reply" is:"claude-stream|claude-json|codex-jsonl|gemini-json|gemini-stream|text"`
	Price *Price `json:"price,omitempty"` // Used only for replies without a cost.
	Usage *Usage `json:"usage,omitempty"` // Finds what a call used in the output of an agent with reply: text.
	// Names of additional environment variables that it may read.
	Env []string `json:"env,omitempty" is:"variable"`
	// Who pays for its calls: a name of your choice. Agents with the same name share usage limits. By default it follows from
	// the program and its credentials.
	Account string `json:"account,omitempty" is:"account" eg:"claude-max"`
	// Whether a retry of an interrupted call continues the agent's session, if it can, or starts anew. continue.
	OnInterrupt string `json:"on_interrupt,omitempty" is:"continue|restart"`

	Confinement
}

// Confinement restricts the processes of a call on its host.
type Confinement struct {
	// What its processes can reach: none, no restriction; workspace, its directories, tools and build caches; strict, its
	// directories and login. workspace where the host offers it.
	Sandbox string `json:"sandbox,omitempty" is:"none|workspace|strict"`
	// internet: public addresses; none; or a list of addresses HOST, HOST:PORT or *.DOMAIN, which may contain internet. The
	// default is that of the settings (internet), and none with sandbox strict.
	Network Network `json:"network,omitempty" is:"address unique single=internet|none" eg:"[api.example.com:443]"`
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

// Price is in USD per million tokens.
type Price struct {
	// USD per million tokens of the prompt.
	Input float64 `json:"input" is:"required 0..1000000" eg:"15"`
	// USD per million tokens of the reply.
	Output float64 `json:"output" is:"required 0..1000000" eg:"75"`
	// USD per million tokens read from the cache; 0.1 of input.
	CacheRead float64 `json:"cache_read,omitempty" is:"0..1000000" eg:"1.5"`
	// USD per million tokens written to the cache; 1.25 of input.
	CacheWrite float64 `json:"cache_write,omitempty" is:"0..1000000" eg:"18.75"`
}

// Usage finds what a call used in the output of an agent that replies with plain text.
type Usage struct {
	// A regular expression (RE2) with groups named input, output, cache_read, cache_write (tokens) or usd. The last match
	// counts.
	Find string `json:"find" is:"required usage" eg:"tokens: (?P<input>[0-9,]+) in, (?P<output>[0-9,]+) out"`
}

// Limits bound one pass. Limits of a role or step override those of the definition.
type Limits struct {
	// Timeout of one attempt; 1.5 times this from the third attempt. 4h.
	Timeout time.Duration `json:"timeout" default:"4h"`
	// Ends an agent that prints nothing for this time. Default: 1h for replies that are streams, unless a tool runs.
	Idle time.Duration `json:"idle,omitempty"`
	// Number of attempts of a pass; 3.
	Attempts int `json:"attempts" is:"1..20" default:"3"`
	// Attempts if a reply has no artifact or no sections. 2.
	Structural int     `json:"structural" is:"1..20" default:"2"`
	Backoff    Backoff `json:"backoff"` // The waits between attempts.
	// Waits after a rate limit or an overload, or without a connection; each doubles.
	Wait Waits `json:"wait,omitzero"`
	// Sum of these waits for one call, after which the run pauses; 12h.
	MaxWait time.Duration `json:"max_wait,omitempty"`
	// Waits after a usage limit whose reset time is unknown; each doubles.
	UnknownReset Waits `json:"unknown_reset,omitzero"`
	// Random addition to the reset time of a usage limit.
	AfterReset Span `json:"after_reset,omitzero"`
	// Agents that are asked, in this order, while the usage limit of the role's agent is reached.
	Fallback []string `json:"fallback,omitempty" is:"min=0 unique" eg:"[codex]"`
	// Largest stdout, stderr and artifact file of a call; 32MB.
	Output Bytes      `json:"output,omitempty"`
	Tree   TreeLimits `json:"tree,omitzero"` // Largest workspace that a pass leaves.
	// Maximum number of calls of agents that all runs of the pipeline make at the same time on a host; no bound.
	AtOnce int `json:"-" yaml:"at_once" is:"in=limits 1..1000000" eg:"2"`
	// Factor from logged waits to real waits, for demos. 1.
	TimeScale float64 `json:"time_scale" is:"in=limits 0.000001..1000" default:"1"`
}

// Backoff is the wait after attempt n: min(first * factor^(n-1) * (1 + jitter*rand), max).
type Backoff struct {
	First  time.Duration `json:"first" default:"5s"`             // The wait after the first failed attempt; 5s.
	Factor float64       `json:"factor" is:"1..100" default:"2"` // Factor by which each wait exceeds the one before; 2.
	Max    time.Duration `json:"max" default:"2m"`               // The longest wait; 2m.
	Jitter float64       `json:"jitter" is:"0..1" default:"0.2"` // Random addition to a wait, as a share of it; 0.2.
}

// Waits are waits for a provider: each is twice the one before. See Complete for the defaults.
type Waits struct {
	First time.Duration `json:"first"` // The first wait.
	Max   time.Duration `json:"max"`   // The longest wait.
}

// Span is a random duration.
type Span struct {
	Min time.Duration `json:"min"` // The shortest; 10s.
	Max time.Duration `json:"max"` // The longest; 1m.
}

// TreeLimits bound the workspace that a pass leaves.
type TreeLimits struct {
	Size  Bytes `json:"size,omitempty"`                   // Apparent size of all its files; 2GB.
	Files int   `json:"files,omitempty" is:"1..10000000"` // Number of its files, symlinks and folders; 100000.
}

// Budget bounds what a run may use. Zero means no bound.
type Budget struct {
	// What a run may spend, in USD.
	USD float64 `json:"usd" is:"0..1000000000" eg:"20"`
	// Share of usd at which it warns; 0.8.
	WarnAt  float64 `json:"warn_at" is:"0.01..1" default:"0.8"`
	PerPass PerPass `json:"per_pass,omitzero"` // What one call may spend.
	// Tokens of all kinds that a run may use.
	Tokens int64 `json:"tokens,omitempty" is:"1..1000000000000" eg:"20000000"`
	// Calls of agents that a run may make.
	Calls int `json:"calls,omitempty" is:"1..1000000" eg:"40"`
	// Hours that a run may work, without pauses and questions.
	Hours float64 `json:"hours,omitempty" is:"0<..100000" eg:"8"`
	// Time after which a run makes no call: RFC 3339, or a local time with its zone.
	Deadline string `json:"deadline,omitempty" eg:"2026-11-25 18:00 Europe/Berlin"`
}

// PerPass bounds what one call may spend.
type PerPass struct {
	// What one call may spend, in USD; reserved for roles without a settled call.
	USD float64 `json:"usd,omitempty" is:"0<..1000000000" eg:"2"`
	// Tokens that one call may use; reserved for roles without a settled call.
	Tokens int64 `json:"tokens,omitempty" is:"1..1000000000000" eg:"500000"`
}

// Artifact is the one file that the passes revise.
type Artifact struct {
	File string `json:"file" is:"required file" eg:"artifact.html"` // Name in the run directory.
	// The file with the initial content, relative to this file.
	Seed string `json:"seed" is:"required path" eg:"seed/page.html"`
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
	Git string `json:"git,omitempty" is:"=worktree"` // worktree: each run works in a separate checkout.
	Dir string `json:"dir,omitempty" is:"path"`      // A folder relative to this file; each run works on a copy.
	// What to do with uncommitted changes in the source: halt, include them, exclude them, or commit them there; halt.
	Dirty string `json:"dirty,omitempty" is:"halt|include|exclude|commit"`
	// Patterns as in .gitignore, of files outside the tree.
	Ignore []string `json:"ignore,omitempty" is:"text"`
	// skip: leave out files that look like secrets (.env, keys); keep: include them. skip.
	Secrets string `json:"secrets,omitempty" is:"skip|keep" default:"skip"`
	// Paths and globs below the root of the workspace that roles do not change: what they leave there is replaced.
	Protect Paths `json:"protect,omitempty" is:"tree-path"`
	// A shell command, or a list of them, that makes a new workspace usable, such as npm ci; again when a lock file has changed.
	Setup Commands `json:"setup,omitempty" is:"single text" eg:"npm ci"`
	// Names of additional environment variables that setup may read.
	Env  []string `json:"env,omitempty" is:"variable"`
	Keep bool     `json:"keep,omitempty"` // Keep the folder of the workspace when the run has ended; no.

	Bare    bool    `json:"bare,omitempty" yaml:"-"`    // it gets no files of .worktreeinclude; see Plan.Restrict
	Network Network `json:"network,omitempty" yaml:"-"` // of Setup; empty: that of the settings
}

// Commands are shell commands that run one after another; in a definition, one command needs no list.
type Commands []string

// Questions bound how long a run waits for an operator. Zero durations: no reminder, no expiry.
type Questions struct {
	Remind  time.Duration `json:"remind,omitempty" default:"8h"` // Interval between reminders; 8h.
	Expires time.Duration `json:"expires,omitempty"`             // Time after which the question expires.
	// What happens when the question expires: halt, continue, or remind and continue to wait; halt.
	OnExpiry string `json:"on_expiry,omitempty" is:"halt|continue|remind"`
}

// Notify is one receiver of messages about a run: a command or a web address. Secrets are referred to by name and never
// written.
type Notify struct {
	// A command and its arguments; it reads the message as JSON from standard input.
	Run []string `json:"run,omitempty" is:"text" eg:"[notify-send]"`
	// Names of additional environment variables that the command may read.
	Env []string `json:"env,omitempty" is:"variable"`
	// The web address to which the message is posted as JSON.
	Webhook string `json:"webhook,omitempty" is:"web-address"`
	// The name of the environment variable with the address, if the address is a secret.
	WebhookEnv string `json:"webhook_env,omitempty" is:"variable"`
	// The name of the environment variable with the key that signs the message (HMAC with SHA-256).
	SecretEnv string `json:"secret_env,omitempty" is:"variable"`
	// The message has a link to the console with which the question is answered, without a login.
	Link bool `json:"link,omitempty"`
	// The occasions for a message; all of these.
	On []string `json:"on" is:"question|pause|budget|limit|failure|end" default:"[question, pause, budget, limit, failure, end]"`
	// Timeout of one attempt; 30s.
	Timeout time.Duration `json:"timeout" default:"30s"`
	// Time after which no attempt is made; 24h.
	GiveUp time.Duration `json:"give_up" default:"24h"`

	Confinement // of the command
}

// Delivery configures where the changes of a finished run go.
type Delivery struct {
	// branch: one commit on a branch; checkout: applied to the source's checkout; pull_request: the run's branch on the remote.
	To string `json:"to,omitempty" is:"branch|checkout|pull_request"`
	// The branch for the commit; passbook-<first eight characters of the run ID>.
	Branch string `json:"branch,omitempty" is:"branch"`
	Commit bool   `json:"commit,omitempty" default:"true"` // Commit a delivery to the checkout; true.
	// Deliver only changes below these paths.
	Paths   []string `json:"paths,omitempty" is:"path"`
	Message string   `json:"message,omitempty" is:"text"` // Message of the commit.
	// Run the commands that decide once more in a fresh folder; true.
	Fresh *bool `json:"fresh,omitempty"`
	// The branch of the remote that a pull request is for, and at which the run starts; its default branch.
	Base  string `json:"base,omitempty" is:"branch"`
	Draft bool   `json:"draft,omitempty"` // Open a pull request as a draft; false.
	// Accounts that a pull request asks for a review.
	Reviewers []string `json:"reviewers,omitempty" is:"text"`
}

// After is what a run does with its pull request until that is merged or closed.
type After struct {
	// The maximum number of rounds because of checks, comments and conflicts; 5.
	Max int `json:"max" is:"0..100" default:"5"`
	// How long it waits after its last push; 168h.
	Wait time.Duration `json:"wait" default:"168h"`
	// What causes a round; all of them.
	Only []string `json:"only,omitempty" is:"checks|comments|conflicts"`
}

// Causes of a round after a delivery.
const (
	AfterChecks    = "checks"
	AfterComments  = "comments"
	AfterConflicts = "conflicts"
)

// PullRequest is the delivery that opens a pull request.
const PullRequest = "pull_request"

// OpensPull reports whether the changes go into a pull request.
func (d *Delivery) OpensPull() bool { return d != nil && d.To == PullRequest }

// Delivers reports whether changes go anywhere besides the branch of the run.
func (d *Delivery) Delivers() bool { return d != nil && d.To != "" }

// ChecksFresh reports whether the commands that decide about the work run once more in a fresh folder.
func (d *Delivery) ChecksFresh() bool { return d == nil || d.Fresh == nil || *d.Fresh }

// Note is an append-only file filled from marked blocks of replies.
type Note struct {
	Name string `json:"name" yaml:"-"`
	File string `json:"file" is:"required file" eg:"log.md"` // Name in the run directory.
	// The text between <!-- X_START --> and <!-- X_END --> in a reply, with X as the marker.
	Marker string `json:"marker" is:"required marker" eg:"DISCOVERY_LOG"`
}

// File is a labelled input. Its path is relative to the definition's folder and uses forward slashes.
type File struct {
	Label string `json:"label"`
	Path  string `json:"path"`
}

// Set is one group of files. A for_each stage iterates over the sets in order.
type Set struct {
	ID    string `json:"id" yaml:"-"`
	Theme string `json:"theme" is:"required label" eg:"what the set is about"` // Subject of the set.
	// The files of the set in order, each as Label: path.
	Files []File `json:"files" is:"required" eg:"[{Rules: grammar/rules.md}]"`
}

// Project is one project of a run across projects. It has a run, which the definition Pipeline describes.
type Project struct {
	Alias string `json:"alias" yaml:"-"`
	// The repository or folder to work on, relative to this file.
	Source   string `json:"source" is:"required text" eg:"../library"`
	Pipeline string `json:"pipeline" is:"required path" eg:"library.yaml"` // The definition of its run.
	Task     string `json:"task,omitempty" is:"text"`                      // The task of its run; that of this run.
	// Projects that must be done before it starts.
	Needs []string `json:"needs,omitempty" is:"unique" eg:"[library]"`
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
	Name   string `json:"name" yaml:"-"`
	Prompt string `json:"prompt" is:"required path" eg:"prompts/judge.md"` // Path of the prompt file.
	// parts (Part…) that the template places itself and that are therefore always filled in
	Places []string `json:"places,omitempty" yaml:"-"`
	// artifact: the whole artifact; report: text only; changes: changes to the workspace.
	Gives string `json:"gives" is:"required artifact|report|changes"`
	// Checks of a reply; a failed check is recorded and does not stop the run.
	Checks []Check `json:"checks,omitempty"`
	// The notes to which replies may add.
	Notes []string `json:"notes,omitempty" is:"unique text"`
	// Name: HEADING. The list items under each heading are counted.
	Tally   []Tally  `json:"tally,omitempty" is:"named=tally"`
	Score   *Score   `json:"score,omitempty"`   // A number in the reply.
	Verdict *Verdict `json:"verdict,omitempty"` // A word in the reply. A reply without it is retried.
	// The agent that answers; by default the pipeline's agent.
	Agent  string `json:"agent,omitempty" is:"text"`
	Choice Choice `json:"-" yaml:",inline"` // of a preset, instead of that of the agent
	// continue: the calls of the role in a stage are one conversation with the agent. Default: each call begins a new one.
	Session string `json:"session,omitempty" is:"=continue"`
	// false: the role may change the protected paths of the workspace. true.
	Protect *bool `json:"protect,omitempty"`
	// The JSON that the reply ends with: review, plan, or the path of a JSON Schema. Its members are the output of the step. A
	// reply that does not fit is asked for once more.
	Schema     string   `json:"schema,omitempty" is:"path" eg:"review"`
	SchemaText string   `json:"schema_text,omitempty" yaml:"-"`
	Once       bool     `json:"once,omitempty" yaml:"-"` // one step calls it, whose output has its name
	Uses       []string `json:"uses,omitempty" yaml:"-"` // ids of the outputs that its prompt has
	Limits     Limits   `json:"limits"`                  // Override those of the pipeline.
	// Texts for the prompt, inserted at {{with.KEY}}.
	With []KeyText `json:"with,omitempty" is:"named=key"`
}

// Judges reports whether its replies have a verdict.
func (r Role) Judges() bool { return r.Verdict != nil || r.Schema == SchemaReview }

// Protected reports whether the role may not change the protected paths of the workspace.
func (r Role) Protected() bool { return r.Protect == nil || *r.Protect }

// KeyText is one entry of `with`, available to the prompt as {{with.KEY}}; a list is joined with ", ".
type KeyText struct {
	Key  string `json:"key" yaml:"-"`
	Text string `json:"text" is:"short words"`
}

// Names of the built-in checks. Any other name needs `any` or `none`.
const (
	CheckNonEmpty       = "non-empty"
	CheckMinimumLength  = "minimum-length"
	CheckHTMLPresent    = "html-present"
	CheckHTMLComplete   = "html-complete"
	CheckContainerWidth = "container-width"
)

// Check is one named test of a reply. The name determines which fields apply: see [rules].
type Check struct {
	// non-empty, minimum-length, html-present, html-complete, container-width, or any other name with any or none.
	Name string `json:"name" is:"required name" eg:"non-empty"`
	// minimum-length: more characters than this.
	Over int `json:"over,omitempty" is:"0..1000000000" eg:"500"`
	// container-width: the widest max-width, in pixels, from the first number to the second.
	Between []int    `json:"between,omitempty" is:"pair" eg:"[940, 960]"`
	Any     []string `json:"any,omitempty" is:"text"`  // One of these words must occur.
	None    []string `json:"none,omitempty" is:"text"` // None of these words may occur.
}

// Tally counts the top-level list items under a heading.
type Tally struct {
	Name    string `json:"name" yaml:"-"`
	Heading string `json:"heading" is:"short text"`
}

// Score finds a number in a reply. A number that is missing or out of range is not a score.
type Score struct {
	Name string `json:"name" is:"text" default:"score"` // Name of the score; score.
	// A regular expression (RE2) with one group around the number.
	Find string `json:"find" is:"required find" eg:"SCORE: ([0-9.]+)"`
	Take string `json:"take" is:"last|first" default:"last"` // The first or the last match; last.
	// The lowest and the highest allowed number; any other number is not a score.
	Range []float64 `json:"range" is:"required pair" eg:"[0, 4]" default:"[0, 0]"`
}

// Verdict finds a word in a reply. Where the reply has a review, that counts first.
type Verdict struct {
	Find string `json:"find" is:"required find" eg:"VERDICT: (approved|rejected)"` // A regular expression (RE2) with one group.
	// The word, or the words, that approve the work; approved.
	Approves Commands `json:"approves,omitempty" is:"single text" eg:"done"`
}

// Stage is a list of steps that runs once, once for each set, or repeatedly.
type Stage struct {
	Name string `is:"required name" eg:"review"` // The stage's name.
	// corpus: the stage runs once for each set, and its steps are called passes.
	ForEach string `yaml:"for_each" is:"=corpus"`
	// By name, the position in a set's files from which to read, wrapping around.
	Orders []Order `is:"named=order"`
	// The steps of any other stage, in this order.
	Steps []Step `eg:"[{role: judge}]"`
	// The steps of a stage with for_each, in this order.
	Passes []Step  `eg:"[{role: judge}]"`
	Repeat *Repeat // Repeats the stage.
	// Name of the checkpoint after each round, with {set} or {n} where rounds differ.
	Checkpoint string `is:"text"`
	// Folder of a round's evidence in _orchestrator, with {set} or {n} where rounds differ.
	Dir string `is:"path"`
	// Pause for a review after each set or round; false.
	PauseAfter bool `yaml:"pause_after"`
	// A condition like that of repeat.until; if a round does not meet it, the run pauses with reason quality-gate.
	Gate string `yaml:"quality_gate"`
	// The stage is skipped unless this condition is met, such as plan.risk != "none".
	When string `eg:"'plan.risk != \"none\"'"`
	// Runs the steps once for each item of a list, in lanes: several items at the same time.
	Each *Each
	// How the changes of the lanes become one tree.
	Merge *Merge
}

// Each is the list whose items a stage works through in lanes: several at the same time, each with its own tree.
type Each struct {
	// The list: one in the output of an earlier step, such as plan.files; ID.lines of a command; or a glob of files.
	In string `json:"in" is:"required text" eg:"src/**/*.go"`
	// The maximum number of lanes that run at the same time; 4.
	AtOnce int `json:"at_once" is:"1..16" default:"4"`
	// What happens if a lane fails. ask (default): an operator decides; continue: without its changes.
	IfFailing string `json:"if_failing,omitempty" is:"ask|continue"`
}

// Merge is how the changes of lanes become one tree.
type Merge struct {
	// What happens if the changes of a lane conflict with those of earlier ones. ask: an operator decides.
	Conflicts string `json:"conflicts,omitempty" is:"=ask"`
}

// Order is the position in the file list from which to read, wrapping around: len * Num / Den, rounded down.
type Order struct {
	Name  string `yaml:"-"`
	Shift string `is:"required short share" eg:"2/5"` // 0, or a share of the files below one, such as 2/5.
	Num   int    `yaml:"-"`
	Den   int    `yaml:"-"`
	Label string `is:"text"` // Name for display.
}

// Repeat bounds a loop.
type Repeat struct {
	// The maximum number of rounds.
	Max int `json:"max" is:"required 1..1000" eg:"3"`
	// The rounds end when this condition is met, such as score >= 3.5, or approved and tests.ok.
	Until string `json:"until" is:"required" eg:"score >= 3.5"`
	// ask: an operator decides if max is reached and until is not met.
	Otherwise string `json:"otherwise,omitempty" is:"=ask"`
	// Rounds in a row that leave the work as an earlier round left it, after which the rounds end as at max; 0: they do not. 2.
	Stalled int `json:"stalled,omitempty" is:"0..1000" default:"2"`
}

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
	Role string `is:"text" eg:"judge"` // Asks one role.
	// Asks several roles at the same time; all output reports.
	Together []string `is:"unique min=2 text"`
	Run      string   `is:"text"` // Runs a shell command.
	// Takes pictures of the artifact.
	Screenshots *Screenshots
	Ask         *Ask // Asks an operator.
	// ask: an operator decides if a check of the reply, or the command, fails; continue.
	IfFailing string `yaml:"if_failing" is:"continue|ask"`
	// What it changes outside the run: none, read, write (the workspace or the artifact), or external_action, such as a
	// deployment or a message; a command external_action, a report read, other roles write.
	Effect string `is:"none|read|write|external_action"`
	// A name for the output of the step, for conditions, prompts and see; by default its role, if no other step calls it.
	ID string `is:"id" eg:"tests"`
	// The step is skipped unless this condition is met, such as not tests.ok.
	When string `eg:"not tests.ok"`
	// Whose reply is in the prompt: last, the name of a stage, or the id of a step.
	See    string  `is:"text"`
	Order  string  `is:"text"` // One of the stage's orders.
	Limits *Limits // Override those of the role.
	// Names of additional environment variables that the command may read.
	Env []string `is:"variable"`

	Confinement // of run
}

// Ask is a question to an operator.
type Ask struct {
	// The question.
	Question string `is:"required short text" eg:"Is this good enough?"`
	// human_feedback_always; human_feedback_on_reject: only if the last verdict is not approved; human_bypass: likewise, without
	// repeating any step.
	Type string `is:"human_feedback_always|human_feedback_on_reject|human_bypass" default:"human_feedback_always"`

	Questions // instead of those of the pipeline
}

// Screenshots configures which pictures of the artifact to take.
type Screenshots struct {
	// Sizes of the window in pixels, such as 1440x900.
	Sizes []Size `json:"sizes" is:"required unique picture" eg:"[1440x900]"`
	// full: the whole page; viewport: what the window shows; scroll: each further window on the way down. All three.
	Kinds    []string `json:"kinds" is:"unique full|viewport|scroll" default:"[full, viewport, scroll]"`
	Attempts int      `json:"attempts" is:"1..20" default:"3"` // Number of attempts; 3.
	// continue: roles that judge get the source instead; stop: the run pauses. continue.
	IfFailing string   `json:"if_failing" is:"continue|stop" default:"continue"`
	Install   []string `json:"install,omitempty" is:"text"` // A command that installs a browser.
}

// Size is a viewport in CSS pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}
