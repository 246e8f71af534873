package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Row is one run of a list.
type Row struct {
	RunID           string              `json:"run_id"`
	Pipeline        string              `json:"pipeline"`
	Task            string              `json:"task"`      // empty: none, or not known
	ThreadID        string              `json:"thread_id"` // of the first run of its lineage
	EffectiveStatus run.EffectiveStatus `json:"standing"`
	Stage           string              `json:"stage"`
	Settled         int                 `json:"passes_settled"`
	Passes          int                 `json:"passes_total"` // 0: not known, or the pipeline has no numbered passes
	Rounds          int                 `json:"rounds"`
	Progress        string              `json:"progress,omitempty"` // in stages and rounds; empty: in passes
	CostUSD         float64             `json:"cost_usd"`
	Unknown         int                 `json:"unknown_calls"` // calls that cost_usd lacks
	CostKnown       string              `json:"cost_known"`    // exact, at_least or unknown
	Score           *float64            `json:"score"`
	StartedAt       string              `json:"started_at"`
	// done, although its last loop did not meet its condition
	NotApproved bool   `json:"not_approved"`
	Directory   string `json:"directory"` // empty: removed, or on another host; then from Temporal
	// why the directory could not be read, or the damage that the journal records
	Damage string `json:"damage"`

	Limited *run.Limited `json:"limited,omitempty"` // that it waits for

	Question *run.Question `json:"-"` // that is open; nil: none, or it is not known

	Source     string `json:"source_run_id,omitempty"`        // from which this run was made
	Mode       string `json:"mode,omitempty"`                 // replay, fork, follow_up or from_run_plan
	Checkpoint string `json:"source_checkpoint_id,omitempty"` // of the source

	Alias string `json:"project_alias,omitempty"` // of a project's run
	Of    string `json:"parent_run_id,omitempty"` // the run that the project belongs to

	Projects []string `json:"-"` // aliases of its projects, in the order of the definition

	claim run.Claim
	on    string // source of its workspace; empty: it has none
	begun bool   // it has an event
	why   error  // of the damage
}

// WorksOn is the folder or repository that the run works on; empty: none, or not known.
func (r Row) WorksOn() string { return r.on }

// Filter selects runs. A zero field selects all.
type Filter struct {
	Status   []run.Status
	Pipeline string
	Stage    string
	ThreadID string // of the lineage
	Since    time.Time
	Text     string // contained in id, pipeline, task, stage or directory, in any case
}

// Narrow reports whether the filter excludes runs.
func (f Filter) Narrow() bool {
	return len(f.Status) > 0 || f.Pipeline != "" || f.Stage != "" || f.ThreadID != "" || !f.Since.IsZero() || f.Text != ""
}

func (f Filter) wants(r Row) bool {
	named := (len(f.Status) == 0 || slices.Contains(f.Status,
		r.EffectiveStatus.Status)) && (f.Pipeline == "" || f.Pipeline == r.Pipeline) &&
		(f.Stage == "" || f.Stage == r.Stage) && (f.ThreadID == "" || f.ThreadID == r.ThreadID)
	return named && (f.Since.IsZero() || r.StartedAt >= run.Time(f.Since)) && f.matchesText(r)
}

func (f Filter) matchesText(r Row) bool {
	want := strings.ToLower(f.Text)
	return slices.ContainsFunc([]string{r.RunID, r.Pipeline, r.Task, r.Stage, r.Directory},
		func(s string) bool { return strings.Contains(strings.ToLower(s), want) })
}

// Listing is a list of runs, in no order.
type Listing struct {
	Runs      []Row    `json:"runs"`
	Forgotten []string `json:"forgotten"` // runs that this machine has recorded, with neither directory nor workflow
}

// Here returns the runs of this host: those that it has recorded, and those in the folder for runs. lost are the ids
// of recorded runs whose directory is missing or belongs to another run.
func Here(stateDir, runRoot string) (rows []Row, lost []string, err error) {
	return here(stateDir, runRoot, rowOf)
}

func here(
	stateDir, runRoot string, rowOf func(rundir.Dir) (Row, error),
) (rows []Row, lost []string, err error) {
	byID := map[string]Row{}
	remembered, err := indexed(stateDir)
	if err != nil {
		return nil, nil, err
	}
	for id, dir := range remembered {
		if row, err := rowOf(rundir.At(dir)); err == nil && row.RunID == id {
			byID[id] = row
			continue
		}
		lost = append(lost, id)
	}
	dirs, err := runsIn(runRoot)
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		row, err := rowOf(rundir.At(dir))
		if _, known := byID[row.RunID]; err == nil && !known {
			byID[row.RunID] = row
		}
	}
	lost = slices.DeleteFunc(lost, func(id string) bool { _, there := byID[id]; return there })
	rows = slices.Collect(maps.Values(byID))
	placed(rows, stateDir)
	return rows, lost, nil
}

// runsIn returns the run directories in the folder for runs and in its folders of repositories.
func runsIn(runRoot string) (dirs []string, err error) {
	for _, pattern := range []string{"*", "*/*"} {
		found, err := fs.Glob(os.DirFS(runRoot), pattern+"/"+rundir.ClaimFile)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			dir := filepath.Join(runRoot, filepath.Dir(name))
			if !slices.Contains(dirs, filepath.Dir(dir)) { // a folder in a run
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

// indexed returns the directories that [Index] recorded, by run id.
func indexed(stateDir string) (map[string]string, error) {
	folder := indexEntry(stateDir, "")
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range entries {
		if disk.IsTemp(e.Name()) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		out[e.Name()] = strings.TrimSpace(string(raw))
	}
	return out, nil
}

// Describe returns the row and the folded state of one run directory, with its status as Temporal knows it.
func (o Operator) Describe(ctx context.Context, d rundir.Dir) (Row, run.State, error) {
	var r Row
	again := func() (now rundir.Now, err error) {
		r, now, err = read(d)
		return now, err
	}
	now, s, err := Observe(again, func(recorded run.Status) run.EffectiveStatus {
		return o.EffectiveStatus(ctx, r.claim, recorded)
	})
	if err != nil {
		return Row{}, run.State{}, err
	}
	s.Held, s.NoWorker = o.Held(ctx, r.RunID, s), o.NoWorker(ctx, r.claim, s)
	s.Turn = TurnOf(o.Settings.StateDir, r.RunID, s.Recorded)
	r.setStatus(s)
	return r, now.State, nil
}

// rowOf reads the row of a directory. The error is that of a directory without a run of Passbook.
func rowOf(d rundir.Dir) (Row, error) {
	r, _, err := read(d)
	return r, err
}

func read(d rundir.Dir) (Row, rundir.Now, error) {
	claim, err := d.Claim()
	if err != nil {
		return Row{}, rundir.Now{}, err
	}
	r := Row{RunID: claim.RunID, Pipeline: claim.Pipeline, ThreadID: claim.ThreadID, StartedAt: claim.CreatedAt,
		Directory: d.Root, claim: d.CurrentClaim(claim)}
	r.Source, r.Mode, r.Checkpoint = claim.SourceRun, claim.Mode, claim.SourceCheckpoint
	r.Of, r.Alias, r.Projects = claim.MemberOf.RunID, claim.MemberOf.Alias, claim.Projects
	now, err := d.Now()
	if r.why = err; err == nil {
		r.why = now.Why
	}
	if r.why != nil {
		r.Damage = r.why.Error()
	}
	if len(now.Damage) > 0 && r.Damage == "" {
		words := make([]string, len(now.Damage))
		for i, d := range now.Damage {
			words[i] = d.String()
		}
		r.Damage = strings.Join(words, "; ")
	}
	if w := now.Meta.Workspace; w != nil {
		r.on = w.Source
	}
	if p := now.Meta.Parent; p != nil {
		r.Source, r.Mode = p.RunID, p.Mode
	}
	s := now.State
	r.EffectiveStatus.Recorded, r.begun = s.Status, now.Tail.Seq > 0 || r.Damage != ""
	if s.Task != s.Pipeline {
		r.Task = s.Task
	}
	r.Stage, r.Settled, r.Passes, r.Rounds, r.CostUSD, r.Score = s.Phase, s.Passes.LastSettled, s.Passes.Total,
		s.Rounds, s.Total(), s.Score
	r.NotApproved = s.NotApproved()
	if q, open := s.Asks(); open && !s.Status.Settled() {
		r.Question = &q
	}
	if s.Status == run.WaitingLimit {
		r.Limited = s.Limited
	}
	r.Unknown, r.CostKnown = s.UnknownCalls(), string(s.CostKnown())
	if s.Wording == run.WordingStages {
		r.Progress = s.ShortProgress()
	}
	return r, now, nil
}

// Offline returns the runs of this host from their directories. why is the reason for which Temporal was not asked.
func Offline(rows []Row, lost []string, f Filter, why string) Listing {
	for i, r := range rows {
		rows[i].setStatus(run.NewEffectiveStatus(r.EffectiveStatus.Recorded, run.LiveUnknown, why))
	}
	return chosen(rows, lost, f)
}

// setStatus sets the effective status of a row. A run that is only claimed is pending, whatever Temporal reports. If a
// run is open, a missing meta.json is not damage: it is about to be written.
func (r *Row) setStatus(s run.EffectiveStatus) {
	s.Turn = cmp.Or(s.Turn, r.EffectiveStatus.Turn)
	if r.EffectiveStatus = s; !r.begun {
		r.EffectiveStatus.ShownStatus = run.Pending.Shown()
	}
	if s.Liveness == run.LiveOpen && errors.Is(r.why, fs.ErrNotExist) {
		r.Damage = ""
	}
}

// List combines the runs of this host with those of Temporal, by their ids. Their statuses are those of `starter
// status`.
func (o Operator) List(ctx context.Context, rows []Row, lost []string, f Filter) (Listing, error) {
	there, err := o.executions(ctx, f)
	if err != nil {
		return Listing{}, err
	}
	lost = slices.DeleteFunc(lost, func(id string) bool { _, known := there[id]; return known })
	queues := o.polled()
	for i, r := range rows {
		effective := o.rowStatus(ctx, r, there)
		if effective.Status == run.Interrupted { // it may have ended since it was read
			if again, err := rowOf(rundir.At(r.Directory)); err == nil {
				rows[i], effective = again, o.rowStatus(ctx, again, there)
			}
		}
		pinned := o.pinnedRun(r.RunID)
		if v, listed := there[r.RunID]; listed {
			pinned = listedVersion(v.pinned)
		}
		effective.NoWorker = queues.noWorker(ctx, effective, queuesOf(r.claim), pinned)
		effective.Held = o.failingRun(ctx, r.RunID, effective)
		rows[i].setStatus(effective)
		delete(there, r.RunID)
	}
	for id, v := range there {
		row := elsewhere(id, v)
		row.EffectiveStatus.NoWorker = queues.noWorker(ctx, row.EffectiveStatus,
			[]taskQueue{{v.queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW}}, listedVersion(v.pinned))
		row.EffectiveStatus.Held = o.failingRun(ctx, id, row.EffectiveStatus)
		rows = append(rows, row)
	}
	return chosen(rows, lost, f), nil
}

// rowStatus asks for one run if the list lacks it: the list may be behind, or the filter hides the run.
func (o Operator) rowStatus(ctx context.Context, r Row, there map[string]visible) run.EffectiveStatus {
	recorded := r.EffectiveStatus.Recorded
	if r.claim.Namespace != "" && r.claim.Namespace != o.Namespace {
		return run.NewEffectiveStatus(recorded, run.LiveUnknown,
			fmt.Sprintf("its namespace is %s, and %s was asked", r.claim.Namespace, o.Namespace))
	}
	if v, listed := there[r.RunID]; listed {
		if s := effectiveBy(recorded, v.status, v.shows); s.Status != run.Interrupted {
			return s // otherwise its next epoch may have just begun
		}
	} else if recorded.Closed() {
		return run.NewEffectiveStatus(recorded, run.LiveUnknown, "not asked: it has ended, according to its directory")
	}
	return o.EffectiveStatus(ctx, r.claim, recorded)
}

// elsewhere returns the row of a run without a directory on this host.
func elsewhere(id string, v visible) Row {
	return Row{
		RunID: id, Pipeline: v.pipeline, ThreadID: v.thread, EffectiveStatus: effectiveBy(v.shows, v.status,
			v.shows), Stage: v.stage, CostUSD: v.cost, Score: v.score,
		StartedAt: run.Time(v.started), Source: v.source, Mode: v.mode,
	}
}

// chosen filters rows. A filtered list cannot name forgotten runs.
func chosen(rows []Row, lost []string, f Filter) Listing {
	slices.Sort(lost)
	if lost == nil || f.Narrow() {
		lost = []string{}
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return !f.wants(r) })
	if rows == nil {
		rows = []Row{}
	}
	return Listing{Runs: rows, Forgotten: lost}
}
