package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of the lanes in a state.
const (
	MaxActiveLanes   = 16 // at work at the same time
	MaxWaitingLanes  = 16 // that wait for an operator; no lane starts then
	MaxFinishedLanes = 48 // in the state, that wait for the merge of an earlier one; then the later ones are stored
	NextFinished     = 16 // of them that stay in the state, and that are read again at once
)

// Lanes is the work on the items of a list: one lane for each. Only active lanes have a cursor. Finished ones are
// merged in the order of the list, and then only counted.
type Lanes struct {
	Stage    int            `json:"stage"`  // index in the plan
	Count    int            `json:"count"`  // items of the list
	Digest   string         `json:"digest"` // of the list in the store
	Base     *Blob          `json:"base,omitempty"`
	Begun    int            `json:"begun"`  // the items before this one have a lane
	Merged   int            `json:"merged"` // the lanes before this one are merged
	Done     int            `json:"done"`
	Failed   int            `json:"failed"`
	Doubted  bool           `json:"doubted,omitempty"`  // a merged lane is not approved, or an operator has changed the work
	Active   []Lane         `json:"active,omitempty"`   // in the order of the list
	Finished []FinishedLane `json:"finished,omitempty"` // that are not merged, likewise
	Rows     string         `json:"rows,omitempty"`     // digest of the stored list of other finished lanes
}

// LaneTotals counts the lanes of completed stages.
type LaneTotals struct {
	Count  int `json:"count"`
	Failed int `json:"failed,omitempty"`
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

// Lane is the cursor of an active lane. Texts are in the store.
type Lane struct {
	Index   int        `json:"index"`          // of the item, from 0
	Key     string     `json:"lane"`           // the start of the item's digest
	Name    string     `json:"name"`           // of the item, for people
	Slot    int        `json:"slot,omitempty"` // of the folder that it works in, from 0; free when the lane has ended
	Step    int        `json:"step"`           // next one
	Redo    int        `json:"redo,omitempty"`
	Waived  bool       `json:"waived,omitempty"` // an operator accepted it as it is
	Base    *Blob      `json:"base,omitempty"`   // tree that it began with; nil: [Lanes.Base]
	Tree    *Blob      `json:"tree,omitempty"`   // as it is; nil: the base
	Settled []string   `json:"settled,omitempty"`
	Tries   []Tries    `json:"tries,omitempty"`
	Started []string   `json:"started,omitempty"`
	Replies []Reply    `json:"replies,omitempty"`
	Values  []Value    `json:"values,omitempty"`
	Verdict string     `json:"verdict,omitempty"`
	Judged  *Judged    `json:"judged,omitempty"`
	Tamper  *Tampered  `json:"tampered,omitempty"`
	Waiting *LaneWait  `json:"waiting,omitempty"`
	since   *laneOuter // of the state that it is a view of
}

// LaneWait is why a lane waits for an operator. Lanes ask one after the other; the others continue.
type LaneWait struct {
	Why      string `json:"why"` // failed, check or conflict
	Question string `json:"question"`
	Digest   string `json:"digest,omitempty"` // of what it is about
}

// Reasons why a lane waits.
const (
	LaneFailed   = "failed"   // a pass failed for good
	LaneCheck    = "check"    // a check or a command failed, or a verdict is missing
	LaneConflict = "conflict" // its changes conflict with those of earlier lanes
)

// LaneRows is the stored list of finished lanes. Rows of lanes that are merged or in the state are out of date.
type LaneRows struct {
	Version int            `json:"version"`
	Rows    []FinishedLane `json:"rows"` // in the order of the list
}

// NextStored reports whether the next lane to merge is in the stored list.
func (l Lanes) NextStored() bool {
	return l.Rows != "" && l.Merged < l.Begun && !l.holds(l.Merged)
}

// holds reports whether a lane is active, or finished and in the state.
func (l Lanes) holds(index int) bool {
	return slices.ContainsFunc(l.Active, func(a Lane) bool { return a.Index == index }) ||
		slices.ContainsFunc(l.Finished, func(r FinishedLane) bool { return r.Index == index })
}

// FinishedLane is a lane whose turn to be merged has not come.
type FinishedLane struct {
	Index int    `json:"index"`
	Key   string `json:"lane"`
	Name  string `json:"name"`
	Base  *Blob  `json:"base,omitempty"`
	Tree  *Blob  `json:"tree,omitempty"` // nil: it changed nothing, or failed
	// the last verdict of its roles
	Verdict  string `json:"verdict,omitempty"`
	Approved *bool  `json:"approved,omitempty"`
}

// laneOuter are the fields of a state that each lane has separately.
type laneOuter struct {
	next                     Place
	settled, started         []string
	tries                    []Tries
	replies                  []Reply
	values                   []Value
	verdict, again, feedback string
	approved                 *bool
	judged                   *Judged
	tampered                 *Tampered
	tree, pictures           *Blob
	redone                   []Redone
	limited                  *Limited
	decided                  *Decided
	about                    *About
	changed                  *Place
	set, review              string
	failure                  *Failure
	sessions                 []RoleSession
}

// Lane returns an active lane.
func (s State) Lane(key string) (Lane, bool) {
	if s.Lanes == nil {
		return Lane{}, false
	}
	i := slices.IndexFunc(s.Lanes.Active, func(l Lane) bool { return l.Key == key })
	if i < 0 {
		return Lane{}, false
	}
	return s.Lanes.Active[i], true
}

// InLane returns the state as an active lane sees it: place, tree, replies and values are its own; costs, budgets and
// status are those of the run. Events of the lane are folded into it as those of a run without lanes.
func (s State) InLane(key string) State {
	l, ok := s.Lane(key)
	if !ok {
		return s
	}
	l.since = &laneOuter{
		next: s.Next, settled: s.Settled, started: s.Started, tries: s.Tries, replies: s.Replies, values: s.Values,
		verdict: s.Verdict, again: s.Again, feedback: s.Feedback, approved: s.Approved, judged: s.Judged,
		tampered: s.Tampered, tree: s.Tree, pictures: s.Pictures, redone: s.Redone, limited: s.Limited, decided: s.Decided,
		about: s.About, changed: s.Changed, set: s.Set, review: s.Review, failure: s.Failure, sessions: s.Sessions,
	}
	v := s
	v.lane = &l
	v.Next = Place{Stage: s.Lanes.Stage, Round: 1, Step: l.Step}
	v.Settled, v.Started, v.Tries, v.Values = l.Settled, l.Started, l.Tries, l.Values
	v.Replies = slices.Concat(s.Replies, l.Replies)
	v.Verdict, v.Judged, v.Tampered, v.Approved = l.Verdict, l.Judged, l.Tamper, nil
	if l.Judged != nil && !l.Judged.Outdated {
		v.Approved = l.Judged.Approved
	}
	v.Tree = cmp.Or(l.Tree, l.Base, s.Lanes.Base)
	v.Redone = nil
	if l.Redo > 0 {
		v.Redone = []Redone{{Stage: v.Next.Stage, Until: Place{Stage: v.Next.Stage + 1}, Times: l.Redo}}
	}
	v.Again, v.Feedback, v.Pictures, v.Decided, v.About, v.Changed = "", "", nil, nil, nil, nil
	v.Limited = s.Limited.InLane(key)
	v.Set, v.Review, v.Failure, v.Sessions = "", "", nil, nil
	return v
}

// leaveLane returns the state of the run after an event of the lane that v is a view of.
func (v State) leaveLane() State {
	l := *v.lane
	outer := l.since
	l.since = nil
	l.Step, l.Settled, l.Started, l.Tries, l.Values = v.Next.Step, v.Settled, v.Started, v.Tries, v.Values
	l.Replies = newest(slices.DeleteFunc(slices.Clone(v.Replies), func(r Reply) bool { return r.Phase != v.Phase }),
		keptLaneReplies)
	l.Verdict, l.Judged, l.Tamper = v.Verdict, v.Judged, v.Tampered
	if base := cmp.Or(l.Base, v.Lanes.Base); v.Tree != nil && (base == nil || *v.Tree != *base) {
		l.Tree = v.Tree
	} else {
		l.Tree = nil
	}
	s := v
	s.lane = nil
	s.Next, s.Settled, s.Started, s.Tries, s.Replies = outer.next, outer.settled, outer.started, outer.tries,
		outer.replies
	s.Values, s.Verdict, s.Again, s.Feedback, s.Approved = outer.values, outer.verdict, outer.again, outer.feedback,
		outer.approved
	s.Judged, s.Tampered, s.Tree, s.Pictures, s.Redone = outer.judged, outer.tampered, outer.tree, outer.pictures,
		outer.redone
	s.Limited = outer.limited.outside(l.Key, v.Limited)
	s.Decided, s.About, s.Changed = outer.decided, outer.about, outer.changed
	s.Set, s.Review, s.Failure, s.Sessions = outer.set, outer.review, outer.failure, outer.sessions
	return s.withLane(l)
}

// keptLaneReplies is how many of its replies a lane keeps.
const keptLaneReplies = 4

// withLane returns the state with a lane added or replaced.
func (s State) withLane(l Lane) State {
	lanes := *s.Lanes
	lanes.Active = slices.Clone(lanes.Active)
	i, found := slices.BinarySearchFunc(lanes.Active, l.Index,
		func(a Lane, at int) int { return cmp.Compare(a.Index, at) })
	if found {
		lanes.Active[i] = l
	} else {
		lanes.Active = slices.Insert(lanes.Active, i, l)
	}
	s.Lanes = &lanes
	return s
}

// BaseOf returns the tree that a lane began with.
func (s State) BaseOf(l FinishedLane) Blob {
	if b := cmp.Or(l.Base, s.Lanes.Base); b != nil {
		return *b
	}
	return Blob{}
}

// LaneKey returns the key of the lane that the state is a view of; empty: of the run.
func (s State) LaneKey() string {
	if s.lane == nil {
		return ""
	}
	return s.lane.Key
}

// Waiting counts the lanes that wait for an operator.
func (l Lanes) Waiting() (n int) {
	for _, a := range l.Active {
		if a.Waiting != nil {
			n++
		}
	}
	return n
}

// Text counts the lanes: 120 of 200 lanes done, 8 active, 1 failed, 2 waiting.
func (l Lanes) Text() string {
	text := fmt.Sprintf("%d of %s done", l.Done, Plural(l.Count, "lane"))
	if n := len(l.Active) - l.Waiting(); n > 0 {
		text += fmt.Sprintf(", %d active", n)
	}
	if l.Failed > 0 {
		text += fmt.Sprintf(", %d failed", l.Failed)
	}
	if n := l.Waiting(); n > 0 {
		text += fmt.Sprintf(", %d waiting", n)
	}
	return text
}

// MergedText counts the lanes that are merged: 35 merged.
func (l Lanes) MergedText() string { return fmt.Sprintf("%d merged", l.Merged) }

// ActiveLane is what an active lane does, for people.
type ActiveLane struct {
	Number  int // of the item in the list, from 1
	Name    string
	Does    string // step 2, reviewer
	Since   string // of its oldest call; empty: none runs
	Waiting bool   // for an operator
}

// ActiveLanes describes the active lanes in the order of the list. steps is the number of steps of a lane; 0: unknown.
func (s State) ActiveLanes(steps int) (all []ActiveLane) {
	if s.Lanes == nil {
		return nil
	}
	for _, l := range s.Lanes.Active {
		a := ActiveLane{Number: l.Index + 1, Name: OneLine(l.Name), Waiting: l.Waiting != nil}
		var who []string
		for _, f := range s.InFlight {
			if f.Lane != l.Key || s.Status != Running {
				continue
			}
			name := cmp.Or(f.Member, f.Role)
			if f.Attempt > 1 {
				name += fmt.Sprintf(", attempt %d", f.Attempt)
			}
			who = append(who, name)
			if a.Since == "" || f.StartedAt < a.Since {
				a.Since = f.StartedAt
			}
		}
		switch limited := s.Limited.InLane(l.Key).Calls(); {
		case a.Waiting:
			a.Does = "waits for an operator: " + OneLine(l.Waiting.Question)
		case len(who) > 0:
			a.Does = stepText(l.Step, steps) + strings.Join(who, ", ")
		case len(limited) > 0:
			a.Does = stepText(l.Step, steps) + "waits for a limit"
		case steps > 0 && l.Step >= steps:
			a.Does = "ends"
		default:
			a.Does = strings.TrimSuffix(stepText(l.Step, steps), ", ")
		}
		all = append(all, a)
	}
	return all
}

// stepText is the beginning of a text about a step of a lane: "step 2 of 3, ".
func stepText(step, steps int) string {
	if steps > 0 {
		return fmt.Sprintf("step %d of %d, ", step+1, steps)
	}
	return fmt.Sprintf("step %d, ", step+1)
}
