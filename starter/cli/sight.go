package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// sight is a run as a reading verb sees it: its directory, and Temporal's word if it can be had.
type sight struct {
	dir    rundir.Dir
	claim  run.Claim // zero: a directory that another program wrote
	now    rundir.Now
	stands run.Standing
	starts string // what starts a worker
	lost   error  // no event can be read of a run that has written some

	projects *run.CrossParent // of a run across projects
}

// look reads where a run stands. It changes nothing, and needs no server.
func (a *app) look(ctx context.Context, d rundir.Dir) (sight, error) {
	s := sight{dir: d, starts: a.startsWorker()}
	var err error
	if s.claim, err = d.Claim(); err != nil && !(errors.Is(err, rundir.ErrNoRun) && d.Foreign()) {
		return s, err
	}
	if s.now, err = d.Now(); err != nil {
		return s, err
	}
	if d.Foreign() {
		s.stands = run.Stands(s.now.State.Status, run.LiveUnknown, "no workflow of ours: another program wrote the directory")
		s.projects, err = d.CrossParent(ctx)
		return s, err
	}
	s.stands = a.standing(ctx, d, s.now.State.Status)
	if s.stands.Liveness != run.LiveOpen { // an open run writes its directory again
		s.lost = d.Lost(s.now.State)
	}
	if s.now.Tail.Seq == 0 && s.lost == nil {
		s.stands.Status = run.Pending
	}
	return s, nil
}

// statusReport is `status --json`.
type statusReport struct {
	RunID     string       `json:"run_id"`
	Directory string       `json:"directory"`
	Standing  run.Standing `json:"standing"`
	Snapshot  run.Snapshot `json:"snapshot"` // what the events fold into
	State     run.State    `json:"state"`
	Lag       int64        `json:"lag"` // events that meta.json has not seen
	Next      []string     `json:"next"`

	Damage []run.JournalDamage `json:"damage"` // that the journal records, and whether it has been repaired since

	CrossParent *run.CrossParent `json:"cross_parent"` // of a run across projects; nil: it is of one project
}

func (s sight) report() statusReport {
	next := nextCommands(s)
	if next == nil {
		next = []string{}
	}
	return statusReport{
		RunID: s.claim.RunID, Directory: s.dir.Root, Standing: s.stands, Snapshot: s.now.Snapshot, State: s.now.State, Lag: s.now.Lag, Next: next,
		Damage: append([]run.JournalDamage{}, s.now.Damage...), CrossParent: s.projects,
	}
}

func (a *app) json(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// nextCommands are what to type next, the likeliest first. Damage is repaired before anything else, once nobody writes the directory.
func nextCommands(s sight) []string {
	if s.claim.RunID != "" && unrepaired(s.now.Damage) && s.stands.Liveness != run.LiveOpen {
		return append([]string{fmt.Sprintf("%s repair-state %s --apply", program(), shell.Quote(s.dir.Root))}, nextOf(s)...)
	}
	return nextOf(s)
}

func nextOf(s sight) []string {
	if s.claim.RunID == "" {
		return nil // not ours to go on with
	}
	st, d := s.now.State, s.dir.Root
	say := func(format string, args ...any) string { return program() + " " + shell.Sprintf(format, args...) }
	if h := s.stands.Held; h != nil && h.DiskFull {
		return []string{pauseEnds(run.State{Reason: run.DiskFull}, say, d)}
	}
	switch s.stands.Status {
	case run.Unknown:
		if s.lost != nil {
			return []string{say("rebuild %s --output-dir OTHER", s.claim.RunID)}
		}
		fallthrough
	case run.Pending:
		return []string{say("server status") + ", then " + say("run --config FILE --output-dir %s", d)}
	case run.Running, run.Replaying:
		if s.stands.Liveness == run.LiveUnknown {
			return []string{say("server start") + ", then " + say("watch %s", d)}
		}
		if s.stands.NoWorker != nil {
			return []string{s.starts + ", then " + say("watch %s", d)}
		}
		return []string{say("watch %s", d)}
	case run.Paused:
		return []string{pauseEnds(st, say, d)}
	case run.AwaitingPhaseHandoff, run.AwaitingGateDecision, run.AwaitingHumanReview:
		first := run.ActionContinue
		if q, _ := st.Asks(); len(q.Actions) > 0 {
			first = q.Actions[0]
		}
		flags, keys := "", ""
		if workflows.NeedsWords(first) {
			flags, keys = " --feedback TEXT", `,"feedback":"TEXT"`
		}
		return []string{say("decide %s", d), say("decide %s --action "+first+flags, d), "temporal workflow signal --workflow-id " + s.claim.RunID +
			` --name decide --input '{"action":"` + first + `"` + keys + `}'`}
	case run.Failed, run.Cancelled, run.Interrupted:
		if _, undecided := st.Asks(); undecided {
			return []string{say("diagnose %s", d), say("decide %s", d)}
		}
		return []string{say("diagnose %s", d), say("resume %s", d)}
	case run.Halted:
		return []string{say("resume %s --force --reason TEXT", d)}
	case run.Done:
		return []string{say("cost-report %s", d)}
	}
	return nil
}

// pauseEnds says how to go on after a pause.
func pauseEnds(st run.State, say func(string, ...any) string, d string) string {
	switch st.Reason {
	case run.BudgetThreshold:
		return say("budget %s --usd N", d) + ", then " + say("resume %s", d)
	case run.ConsecutiveFailures:
		return "fix the cause, then " + say("resume %s --force --reason TEXT", d)
	case run.DiskFull:
		return "make room on the disk, then " + say("resume %s", d)
	case run.PassFailed:
		return "mend the cause, then " + say("resume %s", d)
	}
	return say("resume %s", d)
}
