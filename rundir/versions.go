package rundir

import (
	"github.com/passbook-run/passbook/run"
)

// Causes of versions.
const (
	FromStart = "start"  // what the run began with
	FromTurn  = "turn"   // what a turn left
	FromEdit  = "edited" // what somebody changed by hand while the run rested; beside these there is what a revert put back, "reverted", which it abandons at once
)

// Version is one tree that a run's workspace has had.
type Version struct {
	Cause     string
	Turn      int // number of the turn; of another cause, of the last turn before it
	Seq       int64
	TS        string
	Step      string // of a turn, as the rest
	Round     int
	Role      string
	Call      string
	Outcome   string  // ok, or the category that it was given up with
	USD       float64 // of the turn with all its attempts
	Changed   int     // files and folders
	Tree      string  // digest
	Before    string  // digest of the tree before it
	Abandoned bool    // a revert went back behind it
}

// Versions gives the trees that the run's workspace has had, oldest first, from events.jsonl alone; none of a run without a workspace.
func (d Dir) Versions() ([]Version, error) {
	s, err := d.readStream(0)
	if err != nil {
		return nil, err
	}
	h := lineage{pending: map[string]float64{}}
	for i, line := range s.lines {
		e := lenient(line)
		e.Seq = int64(i + 1)
		h.take(e)
	}
	holds := seqs(inForce(s.lines, int64(len(s.lines))))
	for i := range h.all { // a revert that is taken back makes what it had left behind hold again
		h.all[i].Abandoned = !holds[h.all[i].Seq]
	}
	return h.all, nil
}

// lineage collects versions, event by event.
type lineage struct {
	all     []Version
	tree    string // as it stands
	turns   int
	pending map[string]float64 // USD of attempts, by the pass that has not ended
}

func (h *lineage) take(e run.Event) {
	switch e.Kind {
	case run.KindRunStart:
		var p run.RunStart
		e.Decode(&p)
		if p.Workspace != nil {
			h.add(e, Version{Cause: FromStart, Tree: p.Workspace.Tree.Digest})
		}
	case run.KindPassAttempt:
		var p run.PassAttempt
		e.Decode(&p)
		if p.Spend != nil {
			h.pending[p.Context()] += p.Spend.USD
		}
	case run.KindPassEnd:
		h.pass(e)
	case run.KindWorkspaceUpdated:
		h.update(e)
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
	usd := run.Cents(p.Spend.USD + h.pending[p.Context()])
	delete(h.pending, p.Context())
	if !p.Turn() || len(h.all) == 0 {
		return
	}
	h.turns++
	v := Version{Cause: FromTurn, Step: p.Step, Round: p.Round, Role: member(p.Pass), Call: p.Call, Outcome: p.Outcome, USD: usd, Tree: h.tree}
	if p.Tree != nil {
		v.Tree = p.Tree.Digest
	}
	h.add(e, v)
}

// update tells of a turn how much it changed, and of an edit all there is.
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

// revert goes back to the tree that the carried state has.
func (h *lineage) revert(e run.Event) {
	var p run.RunReverted
	if e.Decode(&p); p.State != nil && p.State.Tree != nil {
		h.tree = p.State.Tree.Digest
	}
}
