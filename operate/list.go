package operate

import (
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

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Row is one run of a list.
type Row struct {
	RunID     string       `json:"run_id"`
	Pipeline  string       `json:"pipeline"`
	Task      string       `json:"task"`      // empty: none was given, or it is not known
	ThreadID  string       `json:"thread_id"` // of the first run of its lineage
	Standing  run.Standing `json:"standing"`
	Stage     string       `json:"stage"`
	Settled   int          `json:"passes_settled"`
	Passes    int          `json:"passes_total"` // 0: not known, or the pipeline has no numbered passes
	Rounds    int          `json:"rounds"`
	CostUSD   float64      `json:"cost_usd"`
	Score     *float64     `json:"score"`
	StartedAt string       `json:"started_at"`
	Directory string       `json:"directory"` // empty: gone, or on another host; what is shown is then Temporal's
	Damage    string       `json:"damage"`    // why the directory could not be read as it should, or what the journal records of damage

	Source     string `json:"source_run_id,omitempty"`        // the run that it comes of
	Mode       string `json:"mode,omitempty"`                 // replay, fork, follow_up or from_run_plan
	Checkpoint string `json:"source_checkpoint_id,omitempty"` // of the source
	Schedule   string `json:"schedule,omitempty"`             // that started it

	claim run.Claim
	begun bool  // an event is there
	why   error // of the damage
}

// Filter says which runs are wanted. An empty part wants all.
type Filter struct {
	Status   []run.Status
	Pipeline string
	Stage    string
	Thread   string // of the lineage
	Since    time.Time
	Least    *float64 // score
	Most     *float64
	Text     string // somewhere in id, pipeline, task, stage or directory, in whatever case
}

// Narrow says that the filter does not want all runs.
func (f Filter) Narrow() bool {
	return len(f.Status) > 0 || f.Pipeline != "" || f.Stage != "" || f.Thread != "" || !f.Since.IsZero() || f.Least != nil || f.Most != nil || f.Text != ""
}

func (f Filter) wants(r Row) bool {
	named := (len(f.Status) == 0 || slices.Contains(f.Status, r.Standing.Status)) && (f.Pipeline == "" || f.Pipeline == r.Pipeline) &&
		(f.Stage == "" || f.Stage == r.Stage) && (f.Thread == "" || f.Thread == r.ThreadID)
	return named && f.wantsScore(r.Score) && (f.Since.IsZero() || r.StartedAt >= run.Time(f.Since)) && f.says(r)
}

// wantsScore: a run without a score is none that anybody wants who asks for one.
func (f Filter) wantsScore(score *float64) bool {
	if f.Least == nil && f.Most == nil {
		return true
	}
	return score != nil && (f.Least == nil || *score >= *f.Least) && (f.Most == nil || *score <= *f.Most)
}

func (f Filter) says(r Row) bool {
	want := strings.ToLower(f.Text)
	return slices.ContainsFunc([]string{r.RunID, r.Pipeline, r.Task, r.Stage, r.Directory}, func(s string) bool { return strings.Contains(strings.ToLower(s), want) })
}

// Listing is a list of runs, in no order.
type Listing struct {
	Runs      []Row    `json:"runs"`
	Forgotten []string `json:"forgotten"` // runs that this machine remembers, and of which neither directory nor workflow is found
}

// Here are the runs of this host: those that it remembers, and those in the folder for runs. lost are the ids of remembered ones whose
// directory is gone, or is another run's by now.
func Here(stateDir, runRoot string) (rows []Row, lost []string, err error) {
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
	folders, err := os.ReadDir(runRoot)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range folders {
		dir := filepath.Join(runRoot, e.Name())
		row, err := rowOf(rundir.At(dir))
		if _, known := byID[row.RunID]; err == nil && !known {
			byID[row.RunID] = row
		}
	}
	lost = slices.DeleteFunc(lost, func(id string) bool { _, there := byID[id]; return there })
	return slices.Collect(maps.Values(byID)), lost, nil
}

// indexed gives the directories that [Index] remembers, by run id.
func indexed(stateDir string) (map[string]string, error) {
	folder := filepath.Join(stateDir, "runs")
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range entries {
		if durable.IsTemp(e.Name()) {
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

// rowOf reads a directory. The error says that it holds no run of ours.
func rowOf(d rundir.Dir) (Row, error) {
	claim, err := d.Claim()
	if err != nil {
		return Row{}, err
	}
	r := Row{RunID: claim.RunID, Pipeline: claim.Pipeline, ThreadID: claim.ThreadID, StartedAt: claim.CreatedAt, Directory: d.Root, claim: d.Seat(claim)}
	r.Source, r.Mode, r.Checkpoint = claim.SourceRun, claim.Mode, claim.SourceCheckpoint
	r.Schedule = claim.Schedule.Name
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
	if p := now.Meta.Parent; p != nil {
		r.Source, r.Mode = p.RunID, p.Mode
	}
	s := now.State
	r.Standing.Recorded, r.begun = s.Status, now.Tail.Seq > 0 || r.Damage != ""
	if s.Task != s.Pipeline {
		r.Task = s.Task
	}
	r.Stage, r.Settled, r.Passes, r.Rounds, r.CostUSD, r.Score = s.Phase, s.Passes.LastSettled, s.Passes.Total, s.Rounds, s.Total(), s.Score
	return r, nil
}

// Offline are the runs of this host as their directories say; why there is nobody to ask stands beside them.
func Offline(rows []Row, lost []string, f Filter, why string) Listing {
	for i, r := range rows {
		rows[i].stand(run.Stands(r.Standing.Recorded, run.LiveUnknown, why))
	}
	return chosen(rows, lost, f)
}

// stand takes a standing over. A run that has only been claimed is pending, whatever Temporal says. An open one without meta.json is no damage: it is
// about to be written.
func (r *Row) stand(s run.Standing) {
	if r.Standing = s; !r.begun {
		r.Standing.Status = run.Pending
	}
	if s.Liveness == run.LiveOpen && errors.Is(r.why, fs.ErrNotExist) {
		r.Damage = ""
	}
}

// List puts the runs of this host together with those that Temporal has, by their ids. Where they stand is what `starter status` says too.
func (o Operator) List(ctx context.Context, rows []Row, lost []string, f Filter) (Listing, error) {
	there, err := o.executions(ctx, f)
	if err != nil {
		return Listing{}, err
	}
	lost = slices.DeleteFunc(lost, func(id string) bool { _, known := there[id]; return known })
	queues := o.polled()
	for i, r := range rows {
		stands := o.rowStands(ctx, r, there)
		stands.NoWorker = queues.noWorker(ctx, stands, queuesOf(r.claim))
		rows[i].stand(stands)
		delete(there, r.RunID)
	}
	for id, v := range there {
		row := elsewhere(id, v)
		row.Standing.NoWorker = queues.noWorker(ctx, row.Standing, []taskQueue{{v.queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW}})
		rows = append(rows, row)
	}
	return chosen(rows, lost, f), nil
}

// rowStands asks about a run on its own where the list says nothing of it: the list may be behind, or does not show what it filters by.
func (o Operator) rowStands(ctx context.Context, r Row, there map[string]visible) run.Standing {
	recorded := r.Standing.Recorded
	if r.claim.Namespace != "" && r.claim.Namespace != o.Namespace {
		return run.Stands(recorded, run.LiveUnknown, fmt.Sprintf("its namespace is %s, and %s was asked", r.claim.Namespace, o.Namespace))
	}
	if v, listed := there[r.RunID]; listed {
		if s := standsBy(recorded, v.status, v.shows); s.Status != run.Interrupted {
			return s // otherwise its next epoch may have begun just now
		}
	} else if recorded.Closed() {
		return run.Stands(recorded, run.LiveUnknown, "it was not asked about: its directory says that it is over")
	}
	return o.Standing(ctx, r.claim, recorded)
}

// elsewhere is a run that has no directory here.
func elsewhere(id string, v visible) Row {
	return Row{
		RunID: id, Pipeline: v.pipeline, ThreadID: v.thread, Standing: standsBy(v.shows, v.status, v.shows), Stage: v.stage, CostUSD: v.cost, Score: v.score,
		StartedAt: run.Time(v.started), Source: v.source, Mode: v.mode,
	}
}

// chosen keeps what is wanted. What is forgotten cannot be told where only a part was asked for.
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
