package run

import (
	"cmp"
	"fmt"
	"slices"
)

// A child is a run below a run: a lane, or the run of a project. It has its own workflow, journal and directory; the run
// journals that it was started, how it ended, and that what it left was merged or skipped.

// Kinds of events about lanes.
const (
	KindChildrenListed Kind = "children.listed"
	KindChildStarted   Kind = "child.started"
	KindChildEnded     Kind = "child.ended"
	KindChildMerged    Kind = "child.merged"
	KindChildSkipped   Kind = "child.skipped"
)

// ChildOutcome is how a child ended, as its run interprets it.
type ChildOutcome string

// Outcomes of lanes.
const (
	ChildDone     ChildOutcome = "done"
	ChildFailed   ChildOutcome = "failed"
	ChildConflict ChildOutcome = "conflict" // its changes conflict with those of earlier lanes
	ChildStopped  ChildOutcome = "stopped"  // with its run: it begins again
)

// ChildrenListed records the list that a stage works through in lanes.
type ChildrenListed struct {
	Stage  string `json:"stage"`
	Count  int    `json:"count"`
	Digest string `json:"digest"` // of the list in the store
}

// ChildStart records that a lane begins.
type ChildStart struct {
	RunID string `json:"run_id"`
	LanePlace
}

// ChildEnd records how a lane ended, and what it has cost.
type ChildEnd struct {
	RunID string `json:"run_id"`
	LanePlace
	Outcome ChildOutcome `json:"outcome"`
	Status  Status       `json:"status,omitempty"` // in its own record
	Reason  string       `json:"reason,omitempty"`
	Tree    *Blob        `json:"tree,omitempty"` // nil: nothing to merge
	Cost    ChildCost    `json:"cost,omitzero"`
}

// ChildCost is what a lane has cost.
type ChildCost struct {
	Spent  Totals  `json:"spent,omitzero"`
	ByRole []Named `json:"by_role,omitempty"`
	Calls  int     `json:"calls,omitempty"`  // of agents
	Tokens int64   `json:"tokens,omitempty"` // of them
	Means  []Mean  `json:"means,omitempty"`  // what calls of each role cost
}

// ChildMerged records that the changes of a lane are part of the tree of the run.
type ChildMerged struct {
	Index    int          `json:"index"`
	Key      string       `json:"lane"`
	Name     string       `json:"name"`
	Tree     Blob         `json:"tree"`             // with the changes
	Commit   string       `json:"commit,omitempty"` // on the run's branch
	Changed  int          `json:"changed"`          // files
	Files    []FileChange `json:"files,omitempty"`  // the first of them
	List     *Blob        `json:"list,omitempty"`   // all of them, when they are more
	Verdict  string       `json:"verdict,omitempty"`
	Approved *bool        `json:"approved,omitempty"`
}

// ChildSkip records that a lane is left out.
type ChildSkip struct {
	Index  int       `json:"index"`
	Key    string    `json:"lane"`
	Name   string    `json:"name"`
	Reason string    `json:"reason,omitempty"`
	Cost   ChildCost `json:"cost,omitzero"` // of one that had not ended
}

func childKinds() []kindRow {
	started := traits{started: true}
	return []kindRow{
		{
			kind: KindChildrenListed, traits: started, fold: (*folder).listChildren,
			texts: about((*Log).childrenListed, listedHeadline, noStory),
		},
		{
			kind: KindChildStarted, traits: started, fold: (*folder).startChild,
			texts: about((*Log).childStarted, noHeadline, noStory),
		},
		{
			kind: KindChildEnded, traits: started, fold: (*folder).endChild,
			texts: about((*Log).childEnded, childEndedHeadline, noStory),
		},
		{
			kind: KindChildMerged, traits: started, fold: (*folder).mergeChild,
			texts: about((*Log).childMerged, noHeadline, noStory),
		},
		{
			kind: KindChildSkipped, traits: started, fold: (*folder).skipChild,
			texts: about((*Log).childSkipped, childSkippedHeadline, childSkippedStory),
		},
	}
}

// lanes changes the lanes of the run; nothing where it has none.
func (f *folder) lanes(e *Event, change func(*Lanes)) {
	if f.Lanes == nil {
		return
	}
	lanes := *f.Lanes
	change(&lanes)
	for lanes.Left.Has(lanes.Merged) {
		lanes.Merged++
	}
	lanes.Others = slices.DeleteFunc(slices.Clone(lanes.Others), func(n LaneName) bool { return n.Index < lanes.Merged })
	f.Lanes = &lanes
	f.head(e)
}

func (f *folder) listChildren(e *Event) {
	p := decoded[ChildrenListed](e)
	if f.Lanes != nil {
		return
	}
	f.Lanes = &Lanes{Stage: f.Next.Stage, Count: p.Count, Digest: p.Digest, Base: f.Tree}
	f.head(e)
}

func (f *folder) startChild(e *Event) {
	p := decoded[ChildStart](e)
	f.lanes(e, func(l *Lanes) {
		first := p.Index == l.Begun
		if p.Index < 0 || p.Index >= l.Count || !first && !l.open(p.Index) ||
			first && len(l.Active)+len(l.Asked)+len(l.Again) >= MaxActiveLanes+MaxAskedLanes {
			return
		}
		l.remove(p.Index)
		l.Others = slices.DeleteFunc(slices.Clone(l.Others), func(n LaneName) bool { return n.Index == p.Index })
		if p.Suffix != l.suffix(p.Index) && first {
			l.Since = append(slices.Clone(l.Since), LaneName{p.Index, p.Suffix})
		} else if p.Suffix != l.suffix(p.Index) {
			l.Others = append(l.Others, LaneName{p.Index, p.Suffix})
		}
		l.Active, l.Begun = insert(l.Active, Lane{LanePlace: p.LanePlace}), max(l.Begun, p.Index+1)
	})
	f.forgetAnswer(p.Index)
}

// forgetAnswer forgets the decision about a lane that it was acted on.
func (f *folder) forgetAnswer(index int) {
	if d := f.Decided; d != nil && d.Kind == QuestionGate && d.Round == index+1 && d.Phase == f.Phase {
		f.Decided = nil
	}
}

func (f *folder) endChild(e *Event) {
	p := decoded[ChildEnd](e)
	f.pay(p.Cost, phaseName(e))
	f.lanes(e, func(l *Lanes) {
		_, ok := l.row(p.Index)
		if conflict := p.Outcome == ChildConflict; conflict && !l.Ended.Has(p.Index) || !conflict && !ok {
			return
		}
		row := Lane{LanePlace: p.LanePlace, Outcome: cmp.Or(p.Outcome, ChildFailed), Reason: p.Reason}
		row.Tries++
		l.remove(p.Index)
		switch {
		case p.Outcome == ChildConflict:
			l.Ended, l.Asked = l.Ended.with(p.Index, false), insert(l.Asked, row)
			l.Done--
		case p.Outcome == ChildStopped:
			row.Outcome, row.Reason = "", ""
			l.Again = insert(l.Again, row)
		case p.Outcome != ChildDone:
			l.Asked = insert(l.Asked, row)
		case p.Tree == nil:
			l.Left = l.Left.with(p.Index, true)
			l.Done++
		default:
			l.Ended = l.Ended.with(p.Index, true)
			l.Done++
		}
	})
}

// pay counts what a child has cost.
func (f *folder) pay(c ChildCost, phase string) {
	if c.Spent.Calls == 0 && c.Spent.USD == 0 {
		return
	}
	f.Spent.Merge(c.Spent)
	f.Used.Calls, f.Used.Tokens = f.Used.Calls+c.Calls, f.Used.Tokens+c.Tokens
	f.ByRole, f.ByStage = list(f, f.ByRole), list(f, f.ByStage)
	for _, r := range c.ByRole {
		f.ByRole = merged(f.ByRole, r)
	}
	f.ByStage = merged(f.ByStage, Named{Name: phase, Totals: c.Spent})
	f.Means = list(f, f.Means)
	for _, m := range c.Means {
		f.Means = learned(f.Means, m)
	}
}

// learned takes over what more calls of a role cost.
func learned(all []Mean, m Mean) []Mean {
	for i := range all {
		if all[i].Role == m.Role {
			if m.Calls > all[i].Calls {
				all[i] = m
			}
			return all
		}
	}
	if m.Calls > 0 && len(all) < keptMeans {
		all = append(all, m)
	}
	return all
}

// merged adds totals to the row with their name.
func merged(rows []Named, add Named) []Named {
	for i := range rows {
		if rows[i].Name == add.Name {
			rows[i].Merge(add.Totals)
			return rows
		}
	}
	return append(rows, add)
}

func (f *folder) mergeChild(e *Event) {
	p := decoded[ChildMerged](e)
	if f.Lanes == nil || !f.Lanes.Ended.Has(p.Index) {
		return
	}
	if f.Tree = &p.Tree; p.Commit != "" {
		f.Commit = p.Commit
	}
	f.touch(p.Files, p.Changed)
	f.outdate()
	f.Verdict, f.Approved = "", nil
	at := f.Next
	f.Changed = &at
	f.lanes(e, func(l *Lanes) {
		l.Ended, l.Left = l.Ended.with(p.Index, false), l.Left.with(p.Index, true)
		if p.Approved != nil { // the work is approved if the verdicts of all merged lanes approve it
			l.Doubted = l.Doubted || !*p.Approved
			yes := !l.Doubted
			f.Verdict, f.Approved = p.Verdict, &yes
			f.Judged = &Judged{Word: p.Verdict, Approved: &yes, Phase: f.Phase, Round: 1}
		}
	})
}

func (f *folder) skipChild(e *Event) {
	p := decoded[ChildSkip](e)
	f.pay(p.Cost, phaseName(e))
	f.lanes(e, func(l *Lanes) {
		if !l.open(p.Index) {
			return
		}
		l.Failed++
		l.remove(p.Index)
		l.Ended, l.Left = l.Ended.with(p.Index, false), l.Left.with(p.Index, true)
	})
	f.forgetAnswer(p.Index)
}

func (l *Log) childrenListed(_ *Entry, p ChildrenListed) {
	l.info("  %s: %s", p.Stage, Plural(p.Count, "lane"))
}

func (l *Log) childStarted(_ *Entry, p ChildStart) { l.info("  Lane %d, %s", p.Index+1, p.Name) }

func (l *Log) childEnded(e *Entry, p ChildEnd) {
	if p.Outcome == ChildDone || p.Outcome == ChildStopped {
		l.info("  Lane %d, %s, %s (%s)", p.Index+1, p.Name, p.Outcome, e.After.Lanes.text())
		return
	}
	l.warn("  Lane %d, %s, %s (%s)", p.Index+1, p.Name, p.text(), e.After.Lanes.text())
}

func (p ChildEnd) text() string {
	if p.Reason == "" {
		return string(p.Outcome)
	}
	return string(p.Outcome) + ": " + p.Reason
}

func (l *Log) childMerged(_ *Entry, p ChildMerged) {
	l.info("  Lane %d, %s, merged: %s changed", p.Index+1, p.Name, Plural(p.Changed, "file"))
}

func (l *Log) childSkipped(e *Entry, p ChildSkip) {
	l.warn("  Lane %d, %s, left out: %s (%s)", p.Index+1, p.Name, p.Reason, e.After.Lanes.text())
	l.decide(LogDecision{Decision: "leave-out-lane", Reason: p.Reason, Context: p.Name})
}

func listedHeadline(_ *Entry, p ChildrenListed) string {
	return fmt.Sprintf("  %s", Plural(p.Count, "lane"))
}

// childEndedHeadline is empty for a lane that is asked about, or left out, next.
func childEndedHeadline(e *Entry, p ChildEnd) string {
	if p.Outcome != ChildDone {
		return ""
	}
	return fmt.Sprintf("  ✓ lane %s (%s)", p.Name, e.After.Lanes.text())
}

func childSkippedHeadline(e *Entry, p ChildSkip) string {
	return fmt.Sprintf("  ✗ lane %s: %s (%s)", p.Name, p.Reason, e.After.Lanes.text())
}

func childSkippedStory(_ *Entry, p ChildSkip) Story {
	return Story{What: fmt.Sprintf("lane %d, %s, left out", p.Index+1, p.Name), Note: p.Reason}
}

// ChildCost is what the run has cost, for the run that started it.
func (s State) ChildCost() *ChildCost {
	spent := s.Spent
	spent.USD = Cents(spent.USD + s.SunkUSD)
	spent.Unknown += s.SunkUnknown
	return &ChildCost{Spent: spent, ByRole: s.ByRole, Calls: s.Used.Calls, Tokens: s.Used.Tokens, Means: s.Means}
}

func (l *Lanes) open(index int) bool {
	for _, r := range slices.Concat(l.Active, l.Asked, l.Again) {
		if r.Index == index {
			return true
		}
	}
	return false
}
