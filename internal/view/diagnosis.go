package view

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Available lists the operations that are allowed now. A run that a full disk holds up can be resumed, although its
// directory does not record that it has paused.
func (r Run) Available() []run.Operation {
	all := r.Now.State.Available(r.Effective.Status)
	if h := r.Effective.Held; h != nil && h.DiskFull && !slices.Contains(all, run.Resume) {
		all = append(all, run.Resume)
	}
	return all
}

// Causes lists the causes of a status, from the journal and from Temporal.
func (r Run) Causes() []string {
	s := r.Now.State
	var out []string
	if r.Effective.Status != r.Effective.Recorded {
		out = append(out, fmt.Sprintf("the events record %s since %s, but %s", r.Effective.Recorded, s.TS,
			r.Effective.Detail))
	}
	if h := r.Effective.Held; h != nil {
		out = append(out, h.Cause)
	}
	if p := r.Effective.Pausing; p != "" {
		out = append(out, p)
	}
	if text := r.Limit(); text != "" {
		out = append(out, "the run "+text)
	} else if s.Reason != "" {
		out = append(out, s.Reason)
	}
	if s.Reason == run.SetupFailed && s.Problem != nil {
		out = append(out, run.OneLine(s.Problem.Message))
	}
	if f := s.Failure; f != nil {
		out = append(out, f.Text(s.Wording))
	}
	if q, undecided := s.Asks(); undecided {
		out = append(out, fmt.Sprintf("the question %s (%s) waits for a decision", q.ID, q.Phase))
	}
	if s.NotApproved() {
		out = append(out, "the last loop ended without "+s.Unmet)
	}
	if r.Now.Why != nil {
		out = append(out, r.Now.Why.Error())
	}
	for _, d := range r.Now.Damage {
		out = append(out, "the journal is damaged: "+d.String())
	}
	if len(out) == 0 && s.Status.Class() == run.Live {
		out = append(out, "nothing holds it up")
	}
	return out
}

// Diagnosis is what the status means, its causes, and what to do, in rows.
func (r Run) Diagnosis() []Row {
	var t table
	t.row("Means", "%s", r.Means())
	for _, why := range r.Causes() {
		t.row("Why", "%s", why)
	}
	t.optional("Advice", r.Advice())
	return t
}

// Details are journal, running calls and locations, in rows.
func (r Run) Details() []Row {
	var t table
	s := r.Now.State
	t.row("Epoch", "%d, start %d, generation %d", s.Epoch, s.Starts, s.Generation)
	t.row("Journal", "%d events, chain %.12s, %d not folded into %s yet", r.Now.Tail.Seq, r.Now.Tail.Chain, r.Now.Lag,
		rundir.MetaFile)
	if c := s.Checkpoint; c != nil {
		t.row("Continues at", "%s (event %d, pass %d)", c.ID, c.Seq, c.AtPass)
	}
	for _, f := range s.InFlight {
		t.row("Running", "%s %s attempt %d since %s (%s)", f.Step, f.Role, f.Attempt, f.StartedAt, f.Call)
	}
	t.row("Temporal", "%s; namespace %s, task queue %s, cluster %.8s", r.Effective.Detail, r.Claim.Namespace,
		r.Claim.TaskQueue, r.Cluster)
	t.row("Store", "%s", r.Claim.Store)
	t.row("Host", "%s", r.Claim.Host)
	t.row("Spent", "%s, %s; retries: %d, warnings: %d", run.Plural(s.Spent.Calls, "call"), s.CostText(),
		s.Passes.Retries, s.Passes.Warnings)
	if head := r.Now.Meta.SegmentHead; head != "" {
		t.row("Segments", "%.12s", head)
	}
	return t
}

// LastErrors are lines about the last errors.
func (r Run) LastErrors() []string {
	var out []string
	for _, e := range r.Errors {
		word := "unrecovered"
		if e.Recovered {
			word = "recovered"
		}
		out = append(out, fmt.Sprintf("error %s %s (%s): %s — %s", Minute(e.Timestamp), e.Context, word, e.Category,
			run.OneLine(e.Message)))
	}
	return out
}
