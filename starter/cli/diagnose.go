package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) diagnose() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "diagnose [RUN]", Short: "What state a run is in, why, and what to type next",
		Long: `What state a run is in, why, and what to type next: from its directory, beside what Temporal says if a server can be reached. It changes nothing.
For damage to the directory itself see check.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		s, err := a.look(cmd.Context(), d)
		if err != nil {
			return err
		}
		if asJSON {
			return a.jsonDiagnosis(s)
		}
		return a.printDiagnosis(s)
	}
	return cmd
}

func (a *app) printDiagnosis(s sight) error {
	st := s.now.State
	ours := s.claim.RunID != ""
	if ours {
		a.row("Run", "%s in %s", s.claim.RunID, s.dir.Root)
		a.row("Status", "%s", standingWords(s.stands))
	} else {
		a.printForeign(s)
	}
	a.row("Means", "%s", run.Means(s.stands.Status, st.Reason))
	for _, why := range causes(s) {
		a.row("Why", "%s", why)
	}
	if ours {
		if err := a.printMore(s); err != nil {
			return err
		}
	}
	a.printNext(afterDiagnosis(s))
	return s.urgency()
}

// afterDiagnosis are the commands that come next.
func afterDiagnosis(s sight) []string {
	return slices.DeleteFunc(nextCommands(s), func(c string) bool { return strings.Contains(c, " diagnose ") })
}

// urgency is the exit code of a diagnosis.
func (s sight) urgency() error {
	if err := s.undecided(); err != nil {
		return err
	}
	if s.stands.Status == run.Interrupted || unrepaired(s.now.Damage) {
		return quiet(exitAttention)
	}
	return outcome(s.now.State)
}

// diagnosis is `diagnose --json`.
type diagnosis struct {
	RunID     string               `json:"run_id"` // empty: another program recorded it
	Directory string               `json:"directory"`
	Standing  run.Standing         `json:"standing"`
	Means     string               `json:"means"`
	Why       []string             `json:"why"`
	Errors    []rundir.ErrorRecord `json:"errors"` // the last five
	Next      []string             `json:"next"`   // what to type, the likeliest first
}

func (a *app) jsonDiagnosis(s sight) error {
	last, err := lastErrors(s.dir)
	if err != nil {
		return err
	}
	d := diagnosis{
		RunID: s.claim.RunID, Directory: s.dir.Root, Standing: s.stands, Means: run.Means(s.stands.Status, s.now.State.Reason), Why: append([]string{}, causes(s)...),
		Errors: append([]rundir.ErrorRecord{}, last...), Next: append([]string{}, afterDiagnosis(s)...),
	}
	if err := a.json(d); err != nil {
		return err
	}
	return s.urgency()
}

// causes are what the journal and Temporal say of how it came to this.
func causes(s sight) []string {
	st := s.now.State
	var out []string
	if s.stands.Status != s.stands.Recorded {
		out = append(out, fmt.Sprintf("the events say %s since %s, but %s", s.stands.Recorded, st.TS, s.stands.Detail))
	}
	if h := s.stands.Held; h != nil {
		out = append(out, h.Cause)
	}
	if st.Reason != "" {
		out = append(out, st.Reason)
	}
	if f := st.Failure; f != nil {
		out = append(out, fmt.Sprintf("%s failed in %d starts, last with %s: %s", f.Step, f.Starts, f.Category, f.Message))
	}
	if q, undecided := st.Asks(); undecided {
		out = append(out, fmt.Sprintf("the question %s (%s) waits for a decision", q.ID, q.Phase))
	}
	if s.now.Why != nil {
		out = append(out, s.now.Why.Error())
	}
	for _, d := range s.now.Damage {
		out = append(out, "the journal is damaged: "+d.String())
	}
	if len(out) == 0 && st.Status.Class() == run.Live {
		out = append(out, "nothing stands in its way")
	}
	return out
}

// printMore is what -v adds: the journal, the calls that are out, where everything lies, the last errors.
func (a *app) printMore(s sight) error {
	st, m := s.now.State, s.now.Meta
	fmt.Fprintln(a.out)
	a.row("Epoch", "%d, start %d, generation %d", st.Epoch, st.Starts, st.Generation)
	a.row("Journal", "%d events, chain %.12s, %d not folded into %s yet", s.now.Tail.Seq, s.now.Tail.Chain, s.now.Lag, rundir.MetaFile)
	if st.Checkpoint != nil {
		a.row("Goes on from", "%s (event %d, pass %d)", st.Checkpoint.ID, st.Checkpoint.Seq, st.Checkpoint.AtPass)
	}
	for _, f := range st.InFlight {
		a.row("Call out", "%s %s attempt %d since %s (%s)", f.Step, f.Role, f.Attempt, f.StartedAt, f.Call)
	}
	if s.claim.RunID != "" {
		a.row("Temporal", "%s; namespace %s, task queue %s, cluster %.8s", s.stands.Detail, s.claim.Namespace, s.claim.TaskQueue, s.dir.Seat(s.claim).Cluster)
		a.row("Store", "%s", s.claim.Store)
		a.row("Host", "%s", s.claim.Host)
	}
	a.row("Spent", "%d calls, %s; %d retries, %d warnings", st.Spent.Calls, usd(st.Total()), st.Passes.Retries, st.Passes.Warnings)
	if m.SegmentHead != "" {
		a.row("Segments", "%.12s", m.SegmentHead)
	}
	last, err := lastErrors(s.dir)
	for _, r := range last {
		word := "unrecovered"
		if r.Recovered {
			word = "recovered"
		}
		fmt.Fprintf(a.out, "  error %s %s (%s): %s — %s\n", minute(r.Timestamp), r.Context, word, r.Category, run.OneLine(r.Message))
	}
	return err
}

// lastErrors gives the end of errors.jsonl.
func lastErrors(d rundir.Dir) ([]rundir.ErrorRecord, error) {
	const shown = 5
	rows, _, err := rundir.Rows[rundir.ErrorRecord](d, rundir.ErrorsLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return rows[max(0, len(rows)-shown):], err
}
