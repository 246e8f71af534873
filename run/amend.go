package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// PlanRef names what a run works by: digests of blobs in the store.
type PlanRef struct {
	Definition string `json:"definition"`
	Plan       string `json:"plan"`
	Inputs     string `json:"inputs"`
	Policy     string `json:"policy"`
	ConfigHash string `json:"config_hash"`
}

// PlanTerms are what the workflow and the journal's readers need of a plan besides its digest.
type PlanTerms struct {
	TotalPasses int        `json:"total_passes"`
	MaxRounds   int        `json:"max_rounds"`
	Threshold   *float64   `json:"threshold,omitempty"`
	Judged      bool       `json:"judged,omitempty"`
	Waits       Waits      `json:"waits,omitzero"`
	Receivers   []Receiver `json:"receivers,omitempty"`
	TimeScale   float64    `json:"time_scale,omitempty"`
	Stages      []StageRef `json:"stages,omitempty"`
}

// CurrentPlan is the plan in force: that of the start, or of the last amendment.
type CurrentPlan struct {
	PlanRef
	Seq      int64  `json:"seq,omitempty"`      // of the amendment; 0: the start
	From     *Place `json:"from,omitempty"`     // first step with it; nil: the one after the running step, or the start
	Replayed int    `json:"replayed,omitempty"` // amendments of the source that a replay has repeated
}

// RunAmended is payload of run.amended: another version of the plan is in force for every step that begins from here
// on. A step that is running keeps the version that it was composed with until it begins again.
type RunAmended struct {
	Old         PlanRef     `json:"old"`
	New         PlanRef     `json:"new"`
	Terms       PlanTerms   `json:"terms"`            // of the new plan
	Budget      *Budget     `json:"budget,omitempty"` // only if the definition has another one
	Differences []Amendable `json:"differences"`
	By          string      `json:"by,omitempty"`
	Note        string      `json:"note,omitempty"`
	Running     bool        `json:"running,omitempty"` // a step is running, which keeps its plan
	Source      string      `json:"source,omitempty"`  // of a replay: the run that was amended
}

// Amendable is one value that an amendment changes. Old and New of a file are digests.
type Amendable struct {
	Name string `json:"name"`           // in the definition: budget.usd
	File string `json:"file,omitempty"` // whose content changes
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Amendment is an amendment of the source of a replay, and the step that it came before.
type Amendment struct {
	At Place `json:"at"`
	RunAmended
}

// PlanRef names what the run was started with.
func (s RunStart) PlanRef() PlanRef {
	return PlanRef{Definition: s.Definition, Plan: s.Plan, Inputs: s.Inputs, Policy: s.Policy, ConfigHash: s.ConfigHash}
}

// Under returns the start of a run with another plan. Workflow, fold and views read its receivers, the waits of its
// questions, its thresholds and totals.
func (s RunStart) Under(ref PlanRef, t PlanTerms) RunStart {
	s.Definition, s.Plan, s.Inputs, s.Policy, s.ConfigHash = ref.Definition, ref.Plan, ref.Inputs, ref.Policy,
		ref.ConfigHash
	s.TotalPasses, s.MaxRounds, s.Threshold, s.Judged = t.TotalPasses, t.MaxRounds, t.Threshold, t.Judged
	s.Waits, s.Receivers = t.Waits, t.Receivers
	if len(t.Stages) > 0 { // an earlier release wrote none
		s.Stages = t.Stages
	}
	return s
}

// PlanInForce names the plan in force. A state of an earlier release has only the start's.
func (s State) PlanInForce(start RunStart) PlanRef {
	if s.Plan == nil {
		return start.PlanRef()
	}
	return s.Plan.PlanRef
}

func (f *folder) amend(e *Event) {
	var p RunAmended
	e.Decode(&p)
	next := CurrentPlan{PlanRef: p.New, Seq: e.Seq}
	if f.Plan != nil {
		next.Replayed = f.Plan.Replayed
	}
	if p.Source != "" {
		next.Replayed++
	}
	if !p.Running {
		at := f.Next
		next.From = &at
	}
	f.Plan, f.Passes.Total = &next, p.Terms.TotalPasses
	if f.Stages != nil && len(p.Terms.Stages) > 0 {
		f.Stages = p.Terms.Stages
	}
	if b := p.Budget; b != nil {
		f.setBudget(*b)
	}
	if slices.ContainsFunc(p.Differences, func(d Amendable) bool { return strings.HasPrefix(d.Name, "agent") }) {
		f.Means = nil // other agents have other prices
	}
}

// beginPlan records that the plan in force applies from the step at Next, which begins now.
func (s *State) beginPlan() {
	if s.Plan != nil && s.Plan.Seq > 0 && s.Plan.From == nil {
		next, at := *s.Plan, s.Next
		next.From = &at
		s.Plan = &next
	}
}

// planFrom is the plan in force for a run that goes back to a place, whose steps begin again.
func (s State) planFrom(at Place) *CurrentPlan {
	if s.Plan == nil || s.Plan.Seq == 0 {
		return s.Plan
	}
	next := *s.Plan
	next.From = &at
	return &next
}

// names lists the values that an amendment changes, the first of them.
func (p RunAmended) names() string {
	const most = 5
	var all []string
	for _, d := range p.Differences[:min(most, len(p.Differences))] {
		all = append(all, d.Name)
	}
	if more := len(p.Differences) - most; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

func (l *Log) amended(_ *Entry, p RunAmended) {
	for _, d := range p.Differences {
		l.info("Amended: %s", d)
	}
	l.decide(LogDecision{Decision: "amend", Reason: p.names(), By: p.By})
}

// String is the change in one line.
func (d Amendable) String() string {
	if d.File != "" {
		return fmt.Sprintf("%s (%s)", d.Name, d.File)
	}
	return fmt.Sprintf("%s is %s (was %s)", d.Name, cmp.Or(d.New, "unset"), cmp.Or(d.Old, "unset"))
}

func amendedHeadline(_ *Entry, p RunAmended) string { return "  amended: " + p.names() }

func amendedStory(_ *Entry, p RunAmended) Story {
	return Story{What: "amended: " + p.names(), By: p.By, Note: strings.TrimSpace(p.Note)}
}
