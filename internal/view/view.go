// Package view is the read model of a run: what every face shows of it. [Run] is its status at one moment, [Figures] its
// numbers, [Record] its work, decisions and costs. It only computes: a caller reads the run directory and asks Temporal
// first. It prints nothing; a face arranges what it needs.
package view

import (
	"strings"

	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Run is a run at one moment: what its directory records, and what Temporal and the host report where a view asks them.
type Run struct {
	Directory string // how commands name the run: its directory, or its id
	Claim     run.Claim
	Now       rundir.Now
	Effective run.EffectiveStatus
	Worker    []string             // arguments of starter that start a worker
	Lost      error                // no event can be read of a run that has written some
	Members   []rundir.Project     // projects of the run
	Errors    []rundir.ErrorRecord // the last ones
	Cluster   string               // of the current claim
	Received  bool                 // this machine has not recorded the run: its directory may come from elsewhere

	Today string // use of the budget of the day; "": there is none
	Calls []Row  // running calls
	Clock run.Clock
}

// Recorded is a run as its directory alone records it.
func Recorded(s run.State) Run {
	return Run{Now: rundir.Now{State: s}, Effective: run.EffectiveStatus{ShownStatus: s.Status.Shown(), Recorded: s.Status}}
}

// Row is one named value. A row without a name continues the one before it.
type Row struct{ Name, Value string }

// Words is the status in plain words, and that the work of a finished run is not approved.
func (r Run) Words() string {
	s := r.Effective.Status
	return s.Words() + strings.TrimPrefix(r.StatusText(), string(s))
}

// StatusText is the status as the disk has it, and that the work of a finished run is not approved.
func (r Run) StatusText() string { return r.Now.State.StatusText(r.Effective.Status) }

// Means is what the status means, in a sentence.
func (r Run) Means() string { return run.Means(r.Effective.Status, r.Now.State.Reason) }

// Advice is what to do about the error that paused the run; "" for any other run.
func (r Run) Advice() string {
	if r.Effective.Status != run.Paused || r.Now.State.StoppedBy() == "" {
		return ""
	}
	return r.Now.State.Advice()
}

// Limit describes the wait for a limit; "": the run does not wait for one.
func (r Run) Limit() string {
	if r.Effective.Status != run.WaitingLimit {
		return ""
	}
	text := r.Now.State.LimitText(r.Clock) + Countdown(r.Now.State.Limited, r.Clock)
	if t := r.Effective.Turn; t != nil {
		text += fmt.Sprintf("; number %d of %d in the queue", t.Place, t.Of)
	}
	return text
}

// Countdown is the rest of the wait for a limit: ", in 2h 13m". A view that does not know the time shows none.
func Countdown(l *run.Limited, c run.Clock) string {
	if c.Now.IsZero() || l.Kind == run.LimitAtOnce {
		return ""
	}
	if rest := l.Rest(c.Now); rest > 0 {
		return ", in " + Duration(rest)
	}
	return ""
}

// Unrepaired reports whether damage that the journal records has not been repaired.
func Unrepaired(all []run.JournalDamage) bool {
	return slices.ContainsFunc(all, func(d run.JournalDamage) bool { return !d.Repaired })
}

// Damaged reports whether the directory lacks or contradicts something, as far as reading it shows.
func (r Run) Damaged() bool { return r.Now.Why != nil || r.Lost != nil || Unrepaired(r.Now.Damage) }

// Next returns the next commands, the most likely first.
func (r Run) Next() []run.Command {
	s := r.Now.State
	s.RunID = r.Claim.RunID
	return run.NextCommands(s, run.Situation{
		EffectiveStatus: r.Effective, Dir: r.Directory, Worker: r.Worker, Unread: r.Lost != nil,
		Damaged: r.Lost == nil && r.Damaged(), Paused: r.pausedProjects(),
	})
}

// pausedProjects lists the aliases of the paused projects. The run records that they work.
func (r Run) pausedProjects() (aliases []string) {
	for _, p := range r.Members {
		if p.Paused() {
			aliases = append(aliases, p.Alias)
		}
	}
	return aliases
}
