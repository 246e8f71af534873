package rundir

import (
	"github.com/passbook-run/passbook/run"
)

// Causes of versions.
const (
	FromStart = "start" // what the run began with
	FromTurn  = "turn"  // what a turn left
	// an edit of an operator during a pause; a tree that a revert restores has the cause "reverted" and is abandoned
	// at once
	FromEdit = "edited"
)

// Version is a tree that the workspace of a run has had.
type Version struct {
	Cause     string
	Turn      int // number of the turn; of another cause, of the last turn before it
	Seq       int64
	TS        string
	Step      string // of a turn, as the rest
	Round     int
	Role      string
	Call      string
	Outcome   run.Category // ok, or the category of its final error
	USD       float64      // of the turn with all its attempts
	Unknown   int          // calls that USD lacks
	Changed   int          // files and folders
	Tree      string       // digest
	Before    string       // digest of the tree before it
	Abandoned bool         // a revert went back to an earlier one
}

// Versions returns the trees that the workspace of the run has had, oldest first, from events.jsonl alone; none for a
// run without a workspace.
func (d Dir) Versions() ([]Version, error) {
	h := lineage{pending: map[string]run.Totals{}}
	var reverts run.Reverts
	for line, err := range d.Lines(0) {
		if err != nil {
			return nil, err
		}
		e := line.Event.At(line.Number)
		h.take(e)
		reverts.Take(e)
	}
	holds := reverts.InForce()
	for i := range h.all { // undoing a revert restores what it had abandoned
		h.all[i].Abandoned = !holds.Has(h.all[i].Seq)
	}
	return h.all, nil
}

// lineage collects versions, event by event.
type lineage struct {
	all     []Version
	tree    string // as it stands
	turns   int
	wording run.Wording
	pending map[string]run.Totals // of attempts, by the pass that has not ended
}

func (h *lineage) take(e run.Event) {
	switch e.Kind {
	case run.KindRunStart:
		var p run.RunStart
		e.Decode(&p)
		if h.wording = p.Wording; p.Workspace != nil {
			h.add(e, Version{Cause: FromStart, Tree: p.Workspace.Tree.Digest})
		}
	case run.KindPassAttempt:
		var p run.PassAttempt
		e.Decode(&p)
		if p.Spend != nil {
			sum := h.pending[p.Context("")]
			sum.Add(*p.Spend)
			h.pending[p.Context("")] = sum
		}
	case run.KindPassEnd:
		h.pass(e)
	case run.KindWorkspaceUpdated:
		h.update(e)
	case run.KindChildMerged:
		h.merge(e)
	case run.KindRunReverted:
		h.revert(e)
	}
}

func (h *lineage) add(e run.Event, v Version) {
	v.Seq, v.TS, v.Turn, v.Before = e.Seq, e.TS, h.turns, h.tree
	h.tree = v.Tree
	h.all = append(h.all, v)
}

func (h *lineage) pass(e run.Event) {
	var p run.PassEnd
	e.Decode(&p)
	sum := h.pending[p.Context("")]
	sum.Add(p.Spend)
	delete(h.pending, p.Context(""))
	if !p.Turn() || len(h.all) == 0 {
		return
	}
	h.turns++
	v := Version{Cause: FromTurn, Step: p.Step, Round: p.Round, Role: Member(p.Pass), Call: p.Call,
		Outcome: p.Outcome.In(h.wording), USD: sum.USD, Unknown: sum.Unknown, Tree: h.tree}
	if p.Tree != nil {
		v.Tree = p.Tree.Digest
	}
	h.add(e, v)
}

// merge adds the tree with the changes of a lane.
func (h *lineage) merge(e run.Event) {
	var p run.ChildMerged
	if e.Decode(&p); len(h.all) == 0 {
		return
	}
	h.turns++
	h.add(e, Version{Cause: FromTurn, Step: p.Name, Outcome: run.CategoryOK, Changed: p.Changed, Tree: p.Tree.Digest})
}

// update records how much a turn changed, or all of an edit.
func (h *lineage) update(e run.Event) {
	var p run.WorkspaceUpdated
	e.Decode(&p)
	if len(h.all) == 0 {
		return
	}
	if last := &h.all[len(h.all)-1]; last.Cause == FromTurn && last.Call == p.Call {
		last.Changed = p.Changed
		return
	}
	h.add(e, Version{Cause: p.Cause, Tree: p.Tree.Digest, Changed: p.Changed})
}

// revert restores the tree that the carried state has.
func (h *lineage) revert(e run.Event) {
	var p run.RunReverted
	if e.Decode(&p); p.State != nil && p.State.Tree != nil {
		h.tree = p.State.Tree.Digest
	}
}
