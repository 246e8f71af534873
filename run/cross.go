package run

import (
	"slices"
	"strings"
)

// ParentClass is the state of a run across projects, derived from its own record and those of its children.
type ParentClass string

// Classes of parents.
const (
	ParentRunning      ParentClass = "running"
	ParentAwaiting     ParentClass = "awaiting_operator"
	ParentBlocked      ParentClass = "blocked" // a child is missing, failed, halted or rejected
	ParentReady        ParentClass = "ready"   // all children are done
	ParentSucceeded    ParentClass = "terminal_success"
	ParentFailed       ParentClass = "terminal_failure"
	ParentHalted       ParentClass = "terminal_halted" // or cancelled
	ParentInconsistent ParentClass = "inconsistent"    // the records contradict each other
)

// CrossDetail is a contradiction between the records of a run across projects, as text.
type CrossDetail string

// Contradictions.
const (
	DeclaredAliasDuplicate           CrossDetail = "meta.json declares it more than once"
	UndeclaredChild                  CrossDetail = "it has a record, and meta.json does not declare it"
	DuplicateChildFacts              CrossDetail = "it has more than one record"
	EmbeddedPhysicalStatusConflict   CrossDetail = "the copy in meta.json has another status than its own record"
	PhysicalChildMalformed           CrossDetail = "its own meta.json is not a JSON object"
	EmbeddedChildMalformed           CrossDetail = "the copy in meta.json is not a JSON object"
	EmbeddedWithoutPhysical          CrossDetail = "meta.json has a copy of its record, and the record itself is missing"
	PendingDecisionWithoutPause      CrossDetail = "it holds a hand-off and does not wait for a decision"
	CheckpointSubStatusContradiction CrossDetail = "done in cross_checkpoint.json, but not in its own record"
	MultiplePendingDecisions         CrossDetail = "more than one hand-off is pending in the run and its projects"
	CheckpointPendingWithoutPayload  CrossDetail = "cross_checkpoint.json waits for a hand-off, and " +
		"neither the run nor a project holds one"
	PayloadWithoutCheckpointPending CrossDetail = "a hand-off is pending, and cross_checkpoint.json waits for none"
	CheckpointKindConflict          CrossDetail = "cross_checkpoint.json has another kind for the hand-off than its record"
	CheckpointAliasConflict         CrossDetail = "cross_checkpoint.json has another project for the hand-off than its record"
	CheckpointParentHandoffConflict CrossDetail = "cross_checkpoint.json names another hand-off of the run than its record"
	CheckpointChildHandoffConflict  CrossDetail = "cross_checkpoint.json names another hand-off of the project than its record"
	CheckpointHandoffConflict       CrossDetail = "cross_checkpoint.json names another hand-off than the one that is pending"
	TerminalParentContradiction     CrossDetail = "the run ended, and a hand-off or a project of it did not"
)

// Observation is what was found in place of a child's record.
type Observation int

// Observations.
const (
	NotFound Observation = iota
	Present
	Malformed
)

// CrossFacts are the records of a run across projects.
type CrossFacts struct {
	Declared   []string // aliases of the projects in order, with repeats
	Children   []ChildFacts
	Status     Status // of the parent
	Pending    *CrossDecision
	Checkpoint CrossCheckpoint
}

// ChildFacts are the records of one child. Its own record is authoritative.
type ChildFacts struct {
	Alias     string
	Own       Observation
	Status    string // in its own record
	Embedded  Observation
	Inside    string // status in the record of the parent
	Halted    string // reason of a halt
	Verdict   string // of its final acceptance
	ShipReady *bool
	Pending   *CrossDecision
	Cursor    string // status in the checkpoint of the parent
}

// CrossDecision is a question in a record. An empty field is not recorded.
type CrossDecision struct{ ID, ParentID, Kind, Alias, Child string }

// CrossCheckpoint is the open question according to the parent's checkpoint. An empty field is not recorded.
type CrossCheckpoint struct {
	Pending                bool
	ID, Kind, Alias, Child string
}

// CrossParent is the conclusion from the facts.
type CrossParent struct {
	Class      ParentClass      `json:"class"`
	Children   []CrossChild     `json:"children"` // in the order of declaration
	Violations []CrossViolation `json:"violations"`
}

// CrossChild is one project of a run.
type CrossChild struct {
	Alias   string `json:"alias"`
	Status  string `json:"status"`  // status in its own record; empty: no readable record
	Blocker string `json:"blocker"` // why it blocks the parent's release; empty: it does not
}

// CrossViolation is one contradiction.
type CrossViolation struct {
	Detail CrossDetail `json:"detail"`
	Alias  string      `json:"alias"` // empty: not about a single project
}

// Across judges a run across projects. A child that is missing, failed, halted or rejected blocks the release of its
// parent, whatever the parent's record or a checkpoint contains.
func Across(f CrossFacts) CrossParent {
	c := &crossing{facts: f, res: CrossParent{Children: []CrossChild{}, Violations: []CrossViolation{}}}
	c.index()
	for _, alias := range c.declared {
		c.judgeChild(c.byAlias[alias])
	}
	c.judgePending()
	c.judgeEnd()
	c.res.Class = c.class()
	return c.res
}

type crossing struct {
	facts    CrossFacts
	declared []string // each once
	byAlias  map[string]ChildFacts
	res      CrossParent
	pending  *CrossDecision
	live     bool // a child is active according to its record
}

func (c *crossing) find(detail CrossDetail, alias string) {
	c.res.Violations = append(c.res.Violations, CrossViolation{detail, alias})
}

// index finds the facts of each declared project.
func (c *crossing) index() {
	c.byAlias = map[string]ChildFacts{}
	for _, alias := range c.facts.Declared {
		if slices.Contains(c.declared, alias) {
			c.find(DeclaredAliasDuplicate, alias)
			continue
		}
		c.declared = append(c.declared, alias)
		c.byAlias[alias] = ChildFacts{Alias: alias}
	}
	seen := map[string]bool{}
	for _, child := range c.facts.Children {
		switch {
		case !slices.Contains(c.declared, child.Alias):
			c.find(UndeclaredChild, child.Alias)
		case seen[child.Alias]:
			c.find(DuplicateChildFacts, child.Alias)
		default:
			seen[child.Alias], c.byAlias[child.Alias] = true, child
		}
	}
}

func (c *crossing) judgeChild(f ChildFacts) {
	before := len(c.res.Violations)
	switch {
	case f.Own == Malformed:
		c.find(PhysicalChildMalformed, f.Alias)
	case f.Own == NotFound && f.Embedded == Present:
		c.find(EmbeddedWithoutPhysical, f.Alias)
	case f.Own == Present && f.Embedded == Present && f.Inside != "" && f.Inside != f.Status:
		c.find(EmbeddedPhysicalStatusConflict, f.Alias)
	}
	if f.Embedded == Malformed {
		c.find(EmbeddedChildMalformed, f.Alias)
	}
	paused := f.Own == Present && Status(f.Status).Class() == OperatorPause
	if f.Pending != nil && !paused {
		c.find(PendingDecisionWithoutPause, f.Alias)
	}
	blocker := f.blocker(c.ended() != "")
	if f.Cursor == string(Done) && !f.succeeded() && !f.rejected() {
		c.find(CheckpointSubStatusContradiction, f.Alias)
	}
	if blocker == "" && len(c.res.Violations) > before {
		blocker = "contradiction"
	}
	c.live = c.live || f.Own == Present && Status(f.Status).Class() == Live
	c.res.Children = append(c.res.Children, CrossChild{Alias: f.Alias, Status: f.Status, Blocker: blocker})
}

func (f ChildFacts) succeeded() bool { return f.Own == Present && f.Status == string(Done) }

// rejected reports whether a child ended and its work was rejected.
func (f ChildFacts) rejected() bool {
	return f.Own == Present && f.Status == string(Halted) && f.Halted == ReasonRejected &&
		strings.EqualFold(f.Verdict, "rejected") && f.ShipReady != nil && !*f.ShipReady
}

// blocker returns why a child blocks the release of its parent, or "". An active child blocks only a parent that ended.
func (f ChildFacts) blocker(ended bool) string {
	switch {
	case f.Own == NotFound:
		return "child_missing"
	case f.Own == Malformed:
		return "child_unreadable"
	case f.rejected():
		return "release_rejected"
	case f.succeeded() || Status(f.Status).Class() == Live && !ended:
		return ""
	case f.Status == "":
		return "status_missing"
	}
	return "status:" + f.Status
}

// judgePending compares the open question of the parent with those of its children and with the checkpoint.
func (c *crossing) judgePending() {
	c.pending = c.facts.Pending
	others := 0
	for _, alias := range c.declared {
		child := c.byAlias[alias]
		if child.Pending == nil || c.facts.Pending.Passes(child) {
			continue
		}
		if others++; c.pending == nil {
			c.pending = child.Pending
		}
	}
	if c.facts.Pending != nil && others > 0 || others > 1 {
		c.find(MultiplePendingDecisions, "")
	}
	p, at := c.pending, c.facts.Checkpoint
	switch {
	case p == nil && at.Pending:
		c.find(CheckpointPendingWithoutPayload, "")
	case p != nil && !at.Pending:
		c.find(PayloadWithoutCheckpointPending, p.Alias)
	}
	if p != nil {
		c.compare(*p, at)
	}
}

// Passes reports whether the parent asks the question of this child: both are the same question.
func (p *CrossDecision) Passes(child ChildFacts) bool {
	return p != nil && child.Pending != nil && p.Alias == child.Alias && p.Child != "" && p.Child == child.Pending.ID
}

// compare reports differences between the checkpoint and the open question. A missing value is not a difference.
func (c *crossing) compare(p CrossDecision, at CrossCheckpoint) {
	for _, pair := range []struct {
		detail    CrossDetail
		asked, at string
	}{
		{CheckpointKindConflict, p.Kind, at.Kind},
		{CheckpointAliasConflict, p.Alias, at.Alias},
		{CheckpointParentHandoffConflict, p.ParentID, at.ID},
		{CheckpointChildHandoffConflict, p.Child, at.Child},
		{CheckpointHandoffConflict, p.ID, at.ID},
	} {
		if pair.asked != "" && pair.at != "" && pair.asked != pair.at {
			c.find(pair.detail, p.Alias)
		}
	}
}

// judgeEnd compares the end of the parent with what is open. A failed or halted parent may have stopped children; only
// success requires that all of them are done.
func (c *crossing) judgeEnd() {
	if c.ended() == "" {
		return
	}
	wrong := c.pending != nil
	for _, child := range c.res.Children {
		wrong = wrong || c.ended() == ParentSucceeded && child.Blocker != ""
	}
	if wrong {
		c.find(TerminalParentContradiction, "")
	}
}

// ended is the class of a parent that ended, or "" if it did not.
func (c *crossing) ended() ParentClass {
	switch s := c.facts.Status; {
	case s == Done:
		return ParentSucceeded
	case s == Failed:
		return ParentFailed
	case s == Halted || s == Cancelled:
		return ParentHalted
	}
	return ""
}

func (c *crossing) class() ParentClass {
	blocked := slices.ContainsFunc(c.res.Children, func(child CrossChild) bool { return child.Blocker != "" })
	switch {
	case len(c.res.Violations) > 0:
		return ParentInconsistent
	case c.ended() != "":
		return c.ended()
	case c.pending != nil:
		return ParentAwaiting
	case c.live:
		return ParentRunning
	case blocked:
		return ParentBlocked
	}
	return ParentReady
}
