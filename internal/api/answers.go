package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Answers remembers the answers that runs have accepted, until their directories record them. A nil one remembers
// nothing. It is safe for concurrent use.
type Answers struct {
	mu    sync.Mutex
	given map[answered]Given
}

// answered identifies a question. A question that a run asks again has another time.
type answered struct{ run, question, asked string }

// Given is an accepted answer that the directory of its run does not record yet.
type Given struct {
	Action, Feedback string
	By               string // empty: the user of this program
	At               time.Time

	checked time.Time // when its workflow was known to be open
}

// checkAfter is how often the workflow of an accepted answer is looked up.
const checkAfter = 5 * time.Second

func keyOf(runID string, q run.Question) answered { return answered{runID, q.ID, q.RequestedAt} }

// Keep remembers an accepted answer, in place of an earlier one of the run.
func (a *Answers) Keep(runID string, q run.Question, g Given) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given == nil {
		a.given = map[answered]Given{}
	}
	for k := range a.given { // each run has one open question
		if k.run == runID {
			delete(a.given, k)
		}
	}
	a.given[keyOf(runID, q)] = g
}

func (a *Answers) get(runID string, q run.Question) (Given, bool) {
	if a == nil {
		return Given{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g, ok := a.given[keyOf(runID, q)]
	return g, ok
}

func (a *Answers) forget(runID string, q run.Question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.given, keyOf(runID, q))
}

// Answered returns the accepted answer to the open question of a run; false: there is none. An answer whose workflow
// was ended before its directory recorded it is lost, so its question is open again.
func (h Host) Answered(ctx context.Context, d rundir.Dir, s run.State, q run.Question) (Given, bool) {
	g, ok := h.Answers.get(s.RunID, q)
	if !ok || time.Since(g.checked) < checkAfter {
		return g, ok
	}
	if l := h.EffectiveStatus(ctx, d, s.Status).Liveness; l == run.LiveClosed || l == run.LiveGone {
		h.Answers.forget(s.RunID, q)
		return Given{}, false
	}
	g.checked = time.Now()
	h.Answers.Keep(s.RunID, q, g)
	return g, true
}

// Open returns the runs of this host with a question that waits for an answer, the oldest question first. unrecorded
// is the number of questions whose answers were accepted and are not recorded yet.
func (h Host) Open(ctx context.Context) (rows []operations.Row, unrecorded int, err error) {
	rows, _, err = h.Rows.Here(h.Settings.StateDir, h.Settings.RunRoot)
	rows = slices.DeleteFunc(rows, func(r operations.Row) bool {
		if r.Question == nil {
			return true
		}
		if _, ok := h.Answers.get(r.RunID, *r.Question); !ok {
			return false
		}
		_, ok := h.Answered(ctx, rundir.At(r.Directory), run.State{RunID: r.RunID, Status: r.EffectiveStatus.Recorded},
			*r.Question)
		if ok {
			unrecorded++
		}
		return ok
	})
	slices.SortFunc(rows, func(a, b operations.Row) int {
		return cmp.Or(cmp.Compare(a.Question.RequestedAt, b.Question.RequestedAt), cmp.Compare(a.RunID, b.RunID))
	})
	return rows, unrecorded, err
}

// again compares another answer with an accepted one. Nil: it is the same answer.
func (g Given) again(q run.Question, in DecideInput) error {
	if in.Action == g.Action && in.Feedback == g.Feedback {
		return nil
	}
	return &operations.RefusedError{Verb: contract.VerbDecide, FailedPrecondition: true,
		Why: fmt.Sprintf("question %s was answered with %s at %s, and the run has accepted that answer; it waits to be "+
			"recorded in the run directory", q.ID, g.Action, run.Time(g.At))}
}
