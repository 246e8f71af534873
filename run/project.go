package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// RunKindCross is the kind of a run across projects. It has a run for each of its projects, whose directory is the
// folder of the project's alias.
const RunKindCross = "cross_project"

// Causes of a tree or an artifact that no call has made.
const (
	CauseEdited   = "edited"   // by an operator
	CauseBase     = "base"     // the base of the pull request was merged into it
	CauseProjects = "projects" // the tree that has a folder for each project
)

// Phases of the questions that a run across projects asks itself. Hand-off ids begin with them.
const (
	PhaseAcceptance = "cfa"
	phaseOfProject  = "project:" // and the alias
)

// PhaseOfProject is the phase of a project's question in the run across projects.
func PhaseOfProject(alias string) string { return phaseOfProject + alias }

// Reasons of the ends of runs across projects (requirement 001).
const (
	ReasonContractAborted = "cross_gate_aborted:contract_check"
	ReasonDeliveryPartial = "cross_delivery_partial"
	ReasonDeliveryFailed  = "cross_delivery_failed"
)

// ProjectRef declares a project of a run.
type ProjectRef struct {
	Alias  string   `json:"alias"`
	RunID  string   `json:"run_id"`
	Source string   `json:"source"` // repository or folder
	Needs  []string `json:"needs,omitempty"`
	Input  string   `json:"input,omitempty"` // digest of the input of its run
}

// Membership is the run across projects that a project's run belongs to.
type Membership struct {
	RunID string `json:"run_id"`
	Alias string `json:"project_alias"`
}

// ProjectState is a project as the run across projects last saw it. The record of the project is authoritative.
type ProjectState struct {
	ProjectRef
	Outcome  ProjectOutcome `json:"outcome"`
	Status   Status         `json:"status,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Tree     *Blob          `json:"tree,omitempty"`   // of a project that is done
	Commit   string         `json:"commit,omitempty"` // likewise
	USD      float64        `json:"usd,omitempty"`
	Unknown  int            `json:"unknown_calls,omitempty"` // that USD lacks
	Delivery *Delivered     `json:"delivery,omitempty"`
}

// ProjectOutcome is a project's record as the run across projects interprets it.
type ProjectOutcome string

// Outcomes of projects.
const (
	ProjectPending     ProjectOutcome = "pending"
	ProjectRunning     ProjectOutcome = "running"
	ProjectAsks        ProjectOutcome = "asks"
	ProjectPaused      ProjectOutcome = "paused"
	ProjectDone        ProjectOutcome = "done"
	ProjectRejected    ProjectOutcome = "rejected"
	ProjectHalted      ProjectOutcome = "halted"
	ProjectFailed      ProjectOutcome = "failed"
	ProjectCancelled   ProjectOutcome = ProjectOutcome(Cancelled)
	ProjectInterrupted ProjectOutcome = "interrupted"
	ProjectMissing     ProjectOutcome = "missing"
	ProjectUnreadable  ProjectOutcome = "unreadable"
	ProjectSkipped     ProjectOutcome = "skipped"
)

// ProjectRule is a row of the table of outcomes (requirement 001): what an outcome of a project does to the run across
// projects. A project that blocks keeps the others from being delivered, and no answer overrides it.
type ProjectRule struct {
	Outcome ProjectOutcome
	Ends    bool   // the run waits no longer: it journals project.ended or project.skipped
	Blocks  bool   // nothing is delivered as long as the project stays so
	Parent  Status // of the run across projects meanwhile
	Meaning string // for docs/run-state.md
	Then    string // what happens next
}

var projectRules = []ProjectRule{
	{ProjectPending, false, false, Running, "not started: a project that it needs is not done", "it starts later"},
	{ProjectRunning, false, false, Running, "its run is live, however slow", "the run waits, without a limit"},
	{ProjectAsks, false, false, AwaitingPhaseHandoff, "its run asks a question",
		"the run forwards the question; the answer goes to the project"},
	{ProjectPaused, false, false, Running, "its run is paused or waits for a limit",
		"the run waits; resume the project"},
	{ProjectDone, true, false, Running, "its run is done", "projects that need it start"},
	{ProjectRejected, true, true, AwaitingGateDecision, "its final acceptance rejected the work",
		"resume the project with force, or halt"},
	{ProjectHalted, true, true, AwaitingGateDecision, "an operator or a policy halted it",
		"resume the project with force, or halt"},
	{ProjectFailed, true, true, AwaitingGateDecision, "its run failed", "resume the project, or halt"},
	{ProjectCancelled, true, true, AwaitingGateDecision, "its run was cancelled", "resume the project, or halt"},
	{ProjectInterrupted, true, true, AwaitingGateDecision, "its workflow ended without an end of the run",
		"resume the project, or halt"},
	{ProjectMissing, true, true, AwaitingGateDecision, "its directory has no meta.json",
		"repair the project, or rebuild its folder, then retry, or halt"},
	{ProjectUnreadable, true, true, AwaitingGateDecision, "its meta.json cannot be read",
		"repair the project, then retry, or halt"},
	{ProjectSkipped, true, true, AwaitingGateDecision, "a project that it needs is not done",
		"it starts when that project is done"},
}

// ProjectRules is the table of outcomes.
func ProjectRules() []ProjectRule { return slices.Clone(projectRules) }

// Rule is the row of an outcome; unknown outcomes block.
func (o ProjectOutcome) Rule() ProjectRule {
	for _, r := range projectRules {
		if r.Outcome == o {
			return r
		}
	}
	return ProjectRule{Outcome: o, Blocks: true, Parent: Running}
}

// ProjectFacts are what was found of a project: its own record, and whether its workflow is open.
type ProjectFacts struct {
	Found  Observation
	Status Status
	Reason string
	Closed bool // Temporal has no open workflow of it
	Begun  bool // it was started
}

// Outcome is the outcome of a project. Its record decides, not what its workflow returned.
func (f ProjectFacts) Outcome() ProjectOutcome {
	switch {
	case f.Found == Malformed:
		return ProjectUnreadable
	case f.Found == NotFound && !f.Begun:
		return ProjectPending
	case f.Found == NotFound && f.Closed:
		return ProjectMissing
	case f.Found == NotFound:
		return ProjectRunning // its first event is not on disk yet
	}
	switch f.Status {
	case Done:
		return ProjectDone
	case Halted:
		if f.Reason == ReasonRejected || f.Reason == ReasonNoDiff {
			return ProjectRejected
		}
		return ProjectHalted
	case Failed:
		return ProjectFailed
	case Cancelled:
		return ProjectCancelled
	case Interrupted:
		return ProjectInterrupted
	}
	switch {
	case f.Closed:
		return ProjectInterrupted
	case f.Status == Paused || f.Status == WaitingLimit:
		return ProjectPaused
	case f.Status.Class() == OperatorPause:
		return ProjectAsks
	}
	return ProjectRunning
}

// ProjectStart records that a project's run was started, or that one that had ended is live again.
type ProjectStart struct {
	Alias string `json:"project_alias"`
	RunID string `json:"run_id"`
}

// ProjectEnd records how a project's run ended.
type ProjectEnd struct {
	Alias   string         `json:"project_alias"`
	RunID   string         `json:"run_id"`
	Outcome ProjectOutcome `json:"outcome"`
	Status  Status         `json:"status,omitempty"` // in its own record; empty: it has none
	Reason  string         `json:"reason,omitempty"`
	Tree    *Blob          `json:"tree,omitempty"`
	Commit  string         `json:"commit,omitempty"`
	USD     float64        `json:"usd"`
	Unknown int            `json:"unknown_calls,omitempty"` // that USD lacks
}

// ProjectSkip records that a project is not started because others are not done.
type ProjectSkip struct {
	Alias string   `json:"project_alias"`
	Needs []string `json:"needs"` // those that are not done
}

// ProjectDelivery records what became of a project's changes.
type ProjectDelivery struct {
	Alias string `json:"project_alias"`
	DeliveryCompleted
}

// AskedBy is the question of a project that a run across projects forwards.
type AskedBy struct {
	Alias string       `json:"project_alias"`
	ID    string       `json:"child_handoff_id"`
	Kind  QuestionKind `json:"kind"`
}

// Project returns a project of the run.
func (s State) Project(alias string) (ProjectState, bool) {
	i := s.projectIndex(alias)
	if i < 0 {
		return ProjectState{}, false
	}
	return s.Projects[i], true
}

func (s *State) projectIndex(alias string) int {
	return slices.IndexFunc(s.Projects, func(p ProjectState) bool { return p.Alias == alias })
}

// Blocked lists the projects that keep the run from being delivered, those that are not done yet included.
func (s State) Blocked() []ProjectState {
	return slices.DeleteFunc(slices.Clone(s.Projects), func(p ProjectState) bool { return p.Outcome == ProjectDone })
}

// ProjectsUSD is what the ended projects have cost.
func (s State) ProjectsUSD() float64 {
	sum := 0.0
	for _, p := range s.Projects {
		sum += p.USD
	}
	return Cents(sum)
}

// Text is a project in a few words: billing failed (tests do not pass).
func (p ProjectState) Text() string {
	text := p.Alias + " " + string(cmp.Or(p.Outcome, ProjectPending))
	if p.Reason != "" {
		text += " (" + OneLine(p.Reason) + ")"
	}
	return text
}

// withCosts returns the projects of a checkpoint with what they have cost until now: a revert of the run reverts none.
func withCosts(all []ProjectState, now State) []ProjectState {
	all = slices.Clone(all)
	for i, p := range all {
		if later, ok := now.Project(p.Alias); ok {
			all[i].USD, all[i].Unknown = later.USD, later.Unknown
		}
	}
	return all
}

// Line describes a project: its outcome or status, its cost, and what became of its changes. live is the state in its
// own record; nil: it was not read.
func (p ProjectState) Line(live *State) string {
	p.Outcome = cmp.Or(p.Outcome, ProjectPending)
	word, usd, unknown := string(p.Outcome), p.USD, p.Unknown
	if p.Reason != "" {
		word += " (" + OneLine(p.Reason) + ")"
	}
	if live != nil && !p.Outcome.Rule().Ends && p.Outcome != ProjectPending {
		word, usd, unknown = live.StatusText(live.Status), live.Total(), live.UnknownCalls()
		if text := live.Progress(); text != "" && live.Status.Class() == Live {
			word += ", " + text
		}
	}
	if usd > 0 || unknown > 0 {
		word += ", " + CostPhrase(usd, unknown)
	}
	switch {
	case p.Outcome == ProjectPending && len(p.Needs) > 0:
		word += ", needs " + strings.Join(p.Needs, ", ")
	case p.Outcome.Rule().Blocks:
		word += ", blocks the delivery"
	case p.Delivery != nil && p.Delivery.Delivered:
		word += fmt.Sprintf(", delivered to %s %s", p.Delivery.To, p.Delivery.Target)
	case p.Delivery != nil:
		word += ", not delivered: " + OneLine(p.Delivery.Message)
	}
	return word
}

// ProjectsDone describes how many projects of a run are done: 1 of 3 done.
func (s State) ProjectsDone() string {
	return fmt.Sprintf("%d of %d done", len(s.Projects)-len(s.Blocked()), len(s.Projects))
}

// onProject folds an event about a project. One that the run did not declare changes nothing.
func (f *folder) onProject(alias string, change func(*ProjectState)) {
	if i := f.projectIndex(alias); i >= 0 {
		f.Projects = list(f, f.Projects)
		change(&f.Projects[i])
	}
}

func (f *folder) startProject(e *Event) {
	p := decoded[ProjectStart](e)
	f.onProject(p.Alias, func(s *ProjectState) {
		s.Outcome, s.Status, s.Reason = ProjectRunning, Running, ""
	})
}

func (f *folder) endProject(e *Event) {
	p := decoded[ProjectEnd](e)
	f.onProject(p.Alias, func(s *ProjectState) {
		s.Outcome, s.Status, s.Reason, s.Tree, s.Commit = p.Outcome, p.Status, p.Reason, p.Tree, p.Commit
		s.USD, s.Unknown = p.USD, p.Unknown
	})
	f.head(e)
}

func (f *folder) skipProject(e *Event) {
	p := decoded[ProjectSkip](e)
	f.onProject(p.Alias, func(s *ProjectState) {
		s.Outcome, s.Reason = ProjectSkipped, p.reason()
	})
	f.head(e)
}

func (f *folder) deliverProject(e *Event) {
	p := decoded[ProjectDelivery](e)
	f.onProject(p.Alias, func(s *ProjectState) {
		s.Delivery = &Delivered{Delivered: p.Delivered, To: p.To, Target: p.Target, Commit: p.Commit, Files: p.Files,
			Message: p.Message}
	})
}

// endsAcross is the reason of the end of a run across projects whose question is halted (requirement 001); empty: the
// run is halted, as others are.
func (s *State) endsAcross(kind QuestionKind) string {
	q, _ := s.Open(kind)
	switch {
	case len(s.Projects) == 0:
		return ""
	case kind == QuestionGate && q.Trigger != TriggerBlocked:
		return ReasonContractAborted
	case q.Trigger != TriggerUnprepared:
		return ""
	}
	if slices.ContainsFunc(s.Projects, func(p ProjectState) bool { return p.Delivery != nil && p.Delivery.Delivered }) {
		return ReasonDeliveryPartial
	}
	return ReasonDeliveryFailed
}

func (s State) endAcross(reason, at string) (State, error) {
	if reason == ReasonContractAborted {
		return settle(s, Cancelled, reason, at)
	}
	return MarkRunFailed(s, reason, "", at)
}

// endedAcross reports whether the decision of a question has ended a run across projects: like a halt, it is its
// decision and one run.end.
func (s *State) endedAcross(p RunEnd) bool {
	return s.Status == p.Status && s.Reason == p.Reason &&
		slices.Contains([]string{ReasonContractAborted, ReasonDeliveryPartial, ReasonDeliveryFailed}, p.Reason)
}
