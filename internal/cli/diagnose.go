package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) diagnose() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diagnose [RUN]", Short: "Explain the state of a run and show the next command",
		Long: `Explain the state of a run, its cause and the next command, from its directory and from Temporal if it can be
reached. Nothing is changed. To find damage in the directory itself, run: starter check`,
	}
	asJSON := jsonFlag(cmd)
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		s, err := a.inspect(ctx, d)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.jsonDiagnosis(s)
		}
		return a.printDiagnosis(s)
	})
}

func (a *app) printDiagnosis(s inspection) error {
	st := s.now.State
	ours := s.claim.RunID != ""
	if ours {
		a.row("Run", "%s in %s", s.claim.RunID, s.dir.Root)
		a.row("Status", "%s%s", describeStatus(s.effective), s.notApproved())
	} else {
		a.printForeign(s)
	}
	a.row("Means", "%s", run.Means(s.effective.Status, st.Reason))
	for _, why := range causes(s) {
		a.row("Why", "%s", why)
	}
	a.advise(s)
	if ours {
		if err := a.printMore(s); err != nil {
			return err
		}
	}
	a.printNext(afterDiagnosis(s))
	return s.urgency()
}

// afterDiagnosis returns the next commands.
func afterDiagnosis(s inspection) []string {
	return slices.DeleteFunc(nextCommands(s), func(c string) bool { return strings.Contains(c, " diagnose ") })
}

// urgency returns the exit code of a diagnosis.
func (s inspection) urgency() error {
	if err := s.attention(); err != nil {
		return err
	}
	if s.effective.Status == run.Interrupted {
		return quiet(exitAttention)
	}
	if s.effective.Status.Class() == run.Live {
		if s.effective.NoWorker != nil || s.effective.Held != nil {
			return quiet(exitAttention)
		}
		return nil
	}
	return outcome(s.now.State)
}

// diagnosis is `diagnose --json`.
type diagnosis struct {
	RunID           string               `json:"run_id"` // empty: another program recorded it
	Directory       string               `json:"directory"`
	EffectiveStatus run.EffectiveStatus  `json:"standing"`
	Means           string               `json:"means"`
	Why             []string             `json:"why"`
	Errors          []rundir.ErrorRecord `json:"errors"` // the last five
	Next            []string             `json:"next"`   // commands, the most likely first
}

func (a *app) jsonDiagnosis(s inspection) error {
	last, err := lastErrors(s.dir)
	if err != nil {
		return err
	}
	d := diagnosis{
		RunID: s.claim.RunID, Directory: s.dir.Root, EffectiveStatus: s.effective,
		Means: run.Means(s.effective.Status, s.now.State.Reason), Why: append([]string{}, causes(s)...),
		Errors: append([]rundir.ErrorRecord{}, last...), Next: append([]string{}, afterDiagnosis(s)...),
	}
	if err := a.json(d); err != nil {
		return err
	}
	return s.urgency()
}

// causes lists the causes of a status, from the journal and from Temporal.
func causes(s inspection) []string {
	st := s.now.State
	var out []string
	if s.effective.Status != s.effective.Recorded {
		out = append(out, fmt.Sprintf("the events record %s since %s, but %s", s.effective.Recorded, st.TS,
			s.effective.Detail))
	}
	if h := s.effective.Held; h != nil {
		out = append(out, h.Cause)
	}
	if text := waiting(s, time.Now()); text != "" {
		out = append(out, "the run "+text)
	} else if st.Reason != "" {
		out = append(out, st.Reason)
	}
	if f := st.Failure; f != nil {
		out = append(out, f.Text(st.Wording))
	}
	if q, undecided := st.Asks(); undecided {
		out = append(out, fmt.Sprintf("the question %s (%s) waits for a decision", q.ID, q.Phase))
	}
	if st.NotApproved() {
		out = append(out, "the last loop ended without "+st.Unmet)
	}
	if s.now.Why != nil {
		out = append(out, s.now.Why.Error())
	}
	for _, d := range s.now.Damage {
		out = append(out, "the journal is damaged: "+d.String())
	}
	if len(out) == 0 && st.Status.Class() == run.Live {
		out = append(out, "nothing holds it up")
	}
	return out
}

// printMore prints what -v adds: journal, running calls, locations and last errors.
func (a *app) printMore(s inspection) error {
	st, m := s.now.State, s.now.Meta
	fmt.Fprintln(a.out)
	a.row("Epoch", "%d, start %d, generation %d", st.Epoch, st.Starts, st.Generation)
	a.row("Journal", "%d events, chain %.12s, %d not folded into %s yet",
		s.now.Tail.Seq, s.now.Tail.Chain, s.now.Lag, layout.MetaFile)
	if st.Checkpoint != nil {
		a.row("Continues at", "%s (event %d, pass %d)", st.Checkpoint.ID, st.Checkpoint.Seq, st.Checkpoint.AtPass)
	}
	for _, f := range st.InFlight {
		a.row("Running", "%s %s attempt %d since %s (%s)", f.Step, f.Role, f.Attempt, f.StartedAt, f.Call)
	}
	if s.claim.RunID != "" {
		a.row("Temporal", "%s; namespace %s, task queue %s, cluster %.8s",
			s.effective.Detail, s.claim.Namespace, s.claim.TaskQueue, s.dir.CurrentClaim(s.claim).Cluster)
		a.row("Store", "%s", s.claim.Store)
		a.row("Host", "%s", s.claim.Host)
	}
	a.row("Spent", "%d calls, %s; %d retries, %d warnings",
		st.Spent.Calls, st.CostText(), st.Passes.Retries, st.Passes.Warnings)
	if m.SegmentHead != "" {
		a.row("Segments", "%.12s", m.SegmentHead)
	}
	last, err := lastErrors(s.dir)
	for _, r := range last {
		word := "unrecovered"
		if r.Recovered {
			word = "recovered"
		}
		fmt.Fprintf(a.out, "  error %s %s (%s): %s — %s\n",
			minute(r.Timestamp), r.Context, word, r.Category, run.OneLine(r.Message))
	}
	return err
}

// lastErrors returns the last rows of errors.jsonl.
func lastErrors(d rundir.Dir) ([]rundir.ErrorRecord, error) {
	const shown = 5
	rows, _, err := rundir.Rows[rundir.ErrorRecord](d, layout.ErrorsLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return rows[max(0, len(rows)-shown):], err
}
