package run

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the lanes in a state.
const (
	MaxActiveLanes = 16 // at work at the same time
	MaxAskedLanes  = 16 // that wait for an operator; no lane starts then
)

// Lanes is the work on the items of a list. Each item has a lane, which is a run below the run. Lanes that work or wait
// have a row; of those that ended, a bit shows whether they are still to be merged. They are merged in the order of the
// list, and then only counted.
type Lanes struct {
	Stage   int    `json:"stage"`  // index in the plan
	Count   int    `json:"count"`  // items of the list
	Digest  string `json:"digest"` // of the list in the store
	Base    *Blob  `json:"base,omitempty"`
	Begun   int    `json:"begun"`  // the items before this one have a lane
	Merged  int    `json:"merged"` // the lanes before this one are merged, or have nothing to merge
	Done    int    `json:"done"`
	Failed  int    `json:"failed"`
	Doubted bool   `json:"doubted,omitempty"` // a merged lane is not approved, or an operator has changed the work
	Active  []Lane `json:"active,omitempty"`  // started, in the order of the list
	Asked   []Lane `json:"asked,omitempty"`   // ended, and an operator decides about them
	Again   []Lane `json:"again,omitempty"`   // stopped with their run: they begin again
	Ended   bits   `json:"ended,omitempty"`   // done, and to be merged
	Left    bits   `json:"left,omitempty"`    // merged, left out, or with nothing to merge
	// names of the runs of lanes that did not begin first, for merges: from an item on, and of single items
	Since  []LaneName `json:"since,omitempty"`
	Others []LaneName `json:"others,omitempty"`
	Given  string     `json:"given,omitempty"` // digest of the stored trees of lanes that ended in another run
}

// Lane is a lane that has not ended, or about which an operator decides.
type Lane struct {
	LanePlace
	Outcome ChildOutcome `json:"outcome,omitempty"` // empty: it works
	Reason  string       `json:"reason,omitempty"`
}

// LanePlace is the place of a lane: its item, its run and what it begins with.
type LanePlace struct {
	Index  int     `json:"index"`            // of the item, from 0
	Key    string  `json:"lane"`             // the start of the item's digest
	Name   string  `json:"name"`             // of the item, for people
	Suffix string  `json:"suffix,omitempty"` // of the name of its run, where that is not the first one
	Tries  int     `json:"tries,omitempty"`  // runs of the lane that have ended since its run went back last
	Slot   int     `json:"slot,omitempty"`   // of the folder that it works in, from 0; free when the lane has ended
	Redo   int     `json:"redo,omitempty"`   // how often its work is done again
	Base   *Blob   `json:"base,omitempty"`   // tree that it begins with; nil: [Lanes.Base]
	Budget *Budget `json:"budget,omitempty"` // its share at the start; nil: there is no budget
}

// LaneName is the end of the name of a lane's run.
type LaneName struct {
	Index  int    `json:"index"`
	Suffix string `json:"suffix"`
}

// LaneTotals counts the lanes of completed stages.
type LaneTotals struct {
	Count  int `json:"count"`
	Failed int `json:"failed,omitempty"`
}

// LaneOf is the lane that a run is, and of which run.
type LaneOf struct {
	RunID     string `json:"run_id"` // the run that started it
	Stage     string `json:"stage"`
	List      string `json:"list"`                // digest
	Calls     string `json:"calls"`               // beginning of its call ids, which its run has too
	Continues bool   `json:"continues,omitempty"` // a failure ends it without a question
	LanePlace
}

// RootOf returns the run that a lane belongs to; the run itself if it is none.
func RootOf(runID string) string { return cmp.Or(OfLane(runID), runID) }

// bits is a set of small numbers.
type bits []byte

// Has reports whether n is in the set.
func (b bits) Has(n int) bool { return n >= 0 && n/8 < len(b) && b[n/8]&(1<<(n%8)) != 0 }

// with returns the set with n, or without it.
func (b bits) with(n int, in bool) bits {
	b = slices.Clone(b)
	for len(b) <= n/8 {
		b = append(b, 0)
	}
	if b[n/8] &^= 1 << (n % 8); in {
		b[n/8] |= 1 << (n % 8)
	}
	return b
}

// leave counts the lanes of a stage that ends.
func (l *Lanes) leave(before *LaneTotals) *LaneTotals {
	if l == nil {
		return before
	}
	t := LaneTotals{}
	if before != nil {
		t = *before
	}
	return &LaneTotals{t.Count + l.Count, t.Failed + l.Failed}
}

// text counts them: 12 lanes, 1 failed.
func (t *LaneTotals) text() string {
	switch {
	case t == nil:
		return ""
	case t.Failed > 0:
		return fmt.Sprintf(", %s, %d failed", Plural(t.Count, "lane"), t.Failed)
	}
	return ", " + Plural(t.Count, "lane")
}

// Text counts the lanes: 120 of 200 lanes done, 8 active, 1 failed, 2 waiting.
func (l Lanes) Text() string {
	text := fmt.Sprintf("%d of %s done", l.Done, Plural(l.Count, "lane"))
	for _, n := range []struct {
		count int
		word  string
	}{{len(l.Active), "active"}, {l.Failed, "failed"}, {len(l.Asked), "waiting"}} {
		if n.count > 0 {
			text += fmt.Sprintf(", %d %s", n.count, n.word)
		}
	}
	return text
}

// MergedText counts the lanes that are merged: 35 merged.
func (l Lanes) MergedText() string { return fmt.Sprintf("%d merged", l.Merged) }

func (l *Lanes) text() string {
	if l == nil {
		return "no lanes"
	}
	return l.Text()
}

// ChildRunID is the run id of a lane.
func (p LanePlace) ChildRunID(runID string, stage int) string {
	return fmt.Sprintf("%s.%d.%s", runID, stage+1, p.Key+p.Suffix)
}

// Dir is the directory of a lane in that of its run.
func (p LanePlace) Dir(stage string) string {
	return path.Join(LanesDir, path.Clean("/"+stage), p.Key+p.Suffix)
}

// LanesDir has the directories of lanes.
const LanesDir = "lanes"

// OfLane returns the run whose lane a run is; empty: it is no lane.
func OfLane(runID string) string {
	if i := strings.IndexByte(runID, '.'); i > 0 {
		return runID[:i]
	}
	return ""
}

// suffix is the end of the name of a lane's last run.
func (l *Lanes) suffix(index int) (suffix string) {
	for _, n := range l.Others {
		if n.Index == index {
			return n.Suffix
		}
	}
	for _, n := range l.Since {
		if n.Index <= index {
			suffix = n.Suffix
		}
	}
	return suffix
}

// Next is the lane that is merged next; false: it has not ended.
func (l *Lanes) Next() (LaneName, bool) {
	return LaneName{l.Merged, l.suffix(l.Merged)}, l.Ended.Has(l.Merged)
}

// begins returns the place of a lane whose earlier runs have ended, in a run that went back a number of times.
func (p LanePlace) begins(generation int) LanePlace {
	p.Suffix = ""
	if generation > 0 {
		p.Suffix = "~g" + strconv.Itoa(generation)
	}
	if p.Tries > 0 {
		p.Suffix += "~" + strconv.Itoa(p.Tries+1)
	}
	return p
}

// NextLane is the place of the lane that starts next: one that begins again, or that of the item, the first without one.
func (s State) NextLane(key, name string) LanePlace {
	p := LanePlace{Index: s.Lanes.Begun, Key: key, Name: name}
	if len(s.Lanes.Again) > 0 {
		p = s.Lanes.Again[0].LanePlace
	}
	return s.newLane(p)
}

// LaneAgain is the place of a lane whose work is done again, on the merged tree where it conflicts with that.
func (s State) LaneAgain(l Lane) LanePlace {
	p := l.LanePlace
	if p.Redo++; l.Outcome == ChildConflict {
		p.Base = s.Tree
	}
	return s.newLane(p)
}

func (s State) newLane(p LanePlace) LanePlace {
	p.Slot, p.Budget = s.Lanes.freeSlot(), nil
	return p.begins(s.Generation)
}

// freeSlot returns the lowest slot that no active lane has.
func (l *Lanes) freeSlot() int {
	for slot := 0; ; slot++ {
		if !slices.ContainsFunc(l.Active, func(a Lane) bool { return a.Slot == slot }) {
			return slot
		}
	}
}

// Given returns what a lane of the run takes over from it.
func (s State) Given(stage int) State {
	return State{
		Version: StateVersion, Next: Place{Stage: stage, Round: 1}, Generation: s.Generation, Artifact: s.Artifact,
		Notes: s.Notes, Replies: s.Replies, Means: s.Means, Scope: s.Scope, Waivers: s.Waivers, Outputs: s.Outputs,
		Markers: Markers{Waiver: s.Markers.Waiver}, Instructions: s.Instructions,
	}
}

// stopped returns the lanes of a run that goes back, or is copied: those that work begin again.
func (l *Lanes) stopped() *Lanes {
	if l == nil || len(l.Active) == 0 {
		return l
	}
	lanes := *l
	for _, a := range l.Active {
		lanes.Again = insert(lanes.Again, a)
	}
	for i := range lanes.Again {
		lanes.Again[i].Tries = 0 // the generation, or the run, is another one
	}
	lanes.Active = nil
	return &lanes
}

// remove takes a lane out of all rows.
func (l *Lanes) remove(index int) {
	other := func(rows []Lane) []Lane {
		return slices.DeleteFunc(slices.Clone(rows), func(r Lane) bool { return r.Index == index })
	}
	l.Active, l.Asked, l.Again = other(l.Active), other(l.Asked), other(l.Again)
}

// Unmerged lists the lanes that are done and not merged.
func (l *Lanes) Unmerged() (all []LaneName) {
	for i := l.Merged; i < l.Begun; i++ {
		if l.Ended.Has(i) {
			all = append(all, LaneName{i, l.suffix(i)})
		}
	}
	return all
}

// Redo makes a lane that is done begin again: what it left is lost.
func (l Lanes) Redo(p LanePlace) *Lanes {
	l.Ended, l.Again, l.Done = l.Ended.with(p.Index, false), insert(l.Again, Lane{LanePlace: p}), l.Done-1
	return &l
}

// row returns a lane that works, or about which an operator decides.
func (l *Lanes) row(index int) (Lane, bool) {
	if l == nil {
		return Lane{}, false
	}
	for _, r := range slices.Concat(l.Active, l.Asked) {
		if r.Index == index {
			return r, true
		}
	}
	return Lane{}, false
}

// insert adds a row in the order of the list.
func insert(rows []Lane, r Lane) []Lane {
	at, _ := slices.BinarySearchFunc(rows, r.Index, func(o Lane, i int) int { return cmp.Compare(o.Index, i) })
	return slices.Insert(slices.Clone(rows), at, r)
}

// Reasons why a lane waits for an operator.
const (
	LaneFailed   = "failed"   // a pass failed for good, or its run ended
	LaneCheck    = "check"    // a check or a command failed, or a verdict does not approve its work
	LaneConflict = "conflict" // its changes conflict with those of earlier lanes
)

// ActiveLane is what a lane does, for people.
type ActiveLane struct {
	Number  int // of the item in the list, from 1
	Name    string
	RunID   string
	Does    string // step 2, reviewer
	Since   string // of its oldest call; empty: none runs
	Waiting bool   // for an operator
}

// LaneNow describes a lane that has not ended, or about which an operator is asked. live is the state in its own record;
// nil: it is not known. steps is the number of steps of a lane; 0: unknown.
func (s State) LaneNow(l Lane, live *State, steps int) ActiveLane {
	a := ActiveLane{Number: l.Index + 1, Name: OneLine(l.Name)}
	if s.Lanes != nil {
		a.RunID = l.ChildRunID(s.RunID, s.Lanes.Stage)
	}
	switch {
	case l.Outcome != "":
		a.Waiting, a.Does = true, "waits for an operator: "+OneLine(l.Reason)
	case live == nil:
		a.Does = "starts"
	default:
		a.Does, a.Since = live.inSteps(steps)
		q, asks := live.Asks()
		switch a.Waiting = live.Status.NeedsOperator(); {
		case a.Waiting && asks:
			a.Does = "waits for an operator: " + OneLine(q.Words())
		case live.Status == Paused && live.Reason == BudgetThreshold:
			a.Does, a.Waiting = "waits for more of the budget", false
		case live.Status == Paused && live.Reason == UserRequested:
			a.Does, a.Waiting = "paused", false
		case a.Waiting:
			a.Does = OneLine("paused: " + cmp.Or(live.Reason, string(live.Status)))
		}
	}
	return a
}

// inSteps describes what a lane does, and since when its oldest call runs.
func (s State) inSteps(steps int) (does, since string) {
	at := fmt.Sprintf("step %d", s.Next.Step+1)
	if steps > 0 {
		at += fmt.Sprintf(" of %d", steps)
	}
	var who []string
	for _, f := range s.InFlight {
		name := cmp.Or(f.Member, f.Role)
		if f.Attempt > 1 {
			name += fmt.Sprintf(", attempt %d", f.Attempt)
		}
		if who = append(who, name); since == "" || f.StartedAt < since {
			since = f.StartedAt
		}
	}
	switch {
	case s.Status == WaitingLimit:
		return at + ", waits for a limit", ""
	case len(who) > 0:
		return at + ", " + strings.Join(who, ", "), since
	case s.Status.Closed() || len(s.Stages) > 0 && s.Next.Stage >= len(s.Stages) || steps > 0 && s.Next.Step >= steps:
		return "ends", ""
	}
	return at, ""
}
