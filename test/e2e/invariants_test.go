package e2e_test

import (
	"bytes"
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

	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/invariants"
)

// instant is what is on disk at one moment: right after a kill, or at the end.
type instant struct {
	Journal []byte
	Events  []run.Event           // its complete lines
	Meta    *rundir.Meta          // nil: not written yet
	Book    *rundir.PipelineState // nil: not written yet
	Files   map[string]string     // digests of all files of the directory
	Calls   []callLine            // of the agent's log
}

// look reads an instant, and wants of it what must hold at every one: both state files can be read, complete lines are
// events in order.
func look(dir, log string) (instant, error) {
	var i instant
	var err error
	if i.Journal, err = os.ReadFile(filepath.Join(dir, rundir.EventsFile)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i.Events, err = invariants.Events(i.Journal); err != nil {
		return i, violated(3, err)
	}
	d := rundir.At(dir)
	if m, err := d.Meta(); err == nil {
		i.Meta = &m
	} else if !errors.Is(err, fs.ErrNotExist) {
		return i, violated(1, err)
	}
	if b, err := rundir.Records(d); err == nil {
		i.Book = &b
	} else if !errors.Is(err, fs.ErrNotExist) {
		return i, violated(1, err)
	}
	if i.Meta != nil && (i.Meta.Events.Seq > int64(len(i.Events)) || i.Book == nil ||
		i.Meta.Events.Seq > i.Book.LastSeq) {
		return i, violated(1, fmt.Errorf("meta.json is at event %d, events.jsonl at %d", i.Meta.Events.Seq,
			len(i.Events)))
	}
	if i.Files, err = digests(dir); err != nil {
		return i, err
	}
	i.Calls, err = readCalls(log)
	return i, err
}

// outcome is what a run is to give, whatever happens to it.
type outcome struct {
	Artifact string // digest
	Tree     string // digest of the workspace's tree; empty: the run has none
	// what does not depend on times: artifact, workspace, snapshots, notes, prompts, replies, backups
	Files   map[string]string
	Calls   []string // names in the call log, each answered once
	Points  []string // ids of the named checkpoints, in their order
	Changes []change // rows of provenance of a run that works on a tree
}

// outcomeOf reads it from an undisturbed run.
func outcomeOf(dir string, i instant) (outcome, error) {
	o := outcome{Artifact: i.Files["artifact.html"], Tree: treeOf(i), Files: works(i.Files)}
	for _, c := range i.Calls {
		if c.Event == "answered" {
			o.Calls = append(o.Calls, c.At)
		}
	}
	slices.Sort(o.Calls)
	o.Points = pointsOf(i)
	var err error
	if o.Tree != "" {
		o.Changes, err = changesOf(dir, i)
	}
	return o, err
}

// treeOf is the digest of the workspace's tree; empty: there is none.
func treeOf(i instant) string {
	if i.Meta == nil || i.Meta.Workspace == nil {
		return ""
	}
	return i.Meta.Workspace.Tree
}

// pointsOf are the ids of the named checkpoints.
func pointsOf(i instant) []string {
	var ids []string
	for _, c := range i.Book.Checkpoints {
		ids = append(ids, c.ID)
	}
	return ids
}

// works are the files of a directory that are about the work and not about how it went.
func works(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, digest := range files {
		if strings.HasPrefix(name, "snapshots/") {
			out[name] = digest
			continue
		}
		about := func(folder string) bool { return strings.HasPrefix(name, "_orchestrator/"+folder+"/") }
		if about("logs") || about("checkpoints") || about("torn") || strings.HasSuffix(name, ".json") ||
			strings.HasSuffix(name, ".jsonl") {
			continue
		}
		out[name] = digest
	}
	return out
}

// violation is the error for an invariant of recovery that does not hold.
type violation struct {
	Invariant int
	Err       error
}

func (v violation) Error() string { return fmt.Sprintf("invariant %d: %v", v.Invariant, v.Err) }
func (v violation) Unwrap() error { return v.Err }

// violated marks an error; nil stays nil.
func violated(invariant int, err error) error {
	if err == nil {
		return nil
	}
	return violation{invariant, err}
}

// invariants checks all ten of a run that came to its end after some deaths. bystanders are processes that had to live
// on.
func (s *site) invariants(want outcome, bystanders ...process.Identity) error {
	now, err := look(s.dir, s.log)
	if err != nil {
		return err
	}
	if now.Meta == nil || now.Meta.Status != string(run.Done) {
		return fmt.Errorf("the run is not done: %+v", now.Meta)
	}
	return errors.Join(
		violated(1, s.watch.over()),
		violated(2, invariants.WholeLines(s.dir)),
		violated(3, s.prefixes(now)),
		violated(4, callCounts(want, s.deaths, now)),
		violated(5, s.unchanged(now)),
		violated(6, errors.Join(costsAgree(s.dir, now), s.ledgerAgrees(now))),
		violated(7, sameOutcome(want, now)),
		violated(8, errors.Join(processes(now, bystanders), nobodyIn(s.root))),
		violated(9, provenanceOf(s.dir, want, now)),
		violated(10, oneEnd(now)),
		checked(s.dir),
	)
}

// checked wants the product's own check to find nothing.
func checked(dir string) error {
	r, err := rundir.Check(context.Background(), rundir.At(dir), rundir.CheckOptions{})
	if err == nil && !r.OK {
		err = fmt.Errorf("the check finds %+v", r.Issues)
	}
	return err
}

// prefixes wants what was in the journal at each death to be its beginning still; a piece of a line may have been moved
// aside (3).
func (s *site) prefixes(now instant) error {
	for i, d := range s.deaths {
		_, rest := lines(d.Left.Journal)
		kept := d.Left.Journal[:len(d.Left.Journal)-len(rest)]
		if !bytes.HasPrefix(now.Journal, kept) {
			return fmt.Errorf("the journal no longer begins with what death %d left", i+1)
		}
	}
	return nil
}

// callCounts wants every call answered once, a settled or answered one never started again, and an interrupted one once
// more at most for each death (4).
func callCounts(want outcome, deaths []death, now instant) error {
	starts, answers := counts(now.Calls)
	if got := slices.Sorted(maps.Keys(answers)); !slices.Equal(want.Calls, got) {
		return fmt.Errorf("calls that were answered: %v, want %v", got, want.Calls)
	}
	for at, n := range starts {
		if answers[at] != 1 {
			return fmt.Errorf("call %s was answered %d times, started %d times", at, answers[at], n)
		}
		if n > 1+len(deaths) {
			return fmt.Errorf("call %s was started %d times with %d deaths", at, n, len(deaths))
		}
	}
	for i, d := range deaths {
		then, answered := counts(d.Left.Calls)
		for _, p := range of[run.PassEnd](d.Left.Events, run.KindPassEnd) {
			answered[atOf(p.Pass)]++
		}
		for at := range answered {
			if starts[at] != then[at] {
				return fmt.Errorf("call %s was answered before death %d, and started again after it", at, i+1)
			}
		}
	}
	return nil
}

// counts returns how often each call was started and answered.
func counts(calls []callLine) (starts, answers map[string]int) {
	starts, answers = map[string]int{}, map[string]int{}
	for _, c := range calls {
		if c.Event == "start" {
			starts[c.At]++
		} else {
			answers[c.At]++
		}
	}
	return starts, answers
}

// atOf is a pass's name in the call log.
func atOf(p run.Pass) string {
	switch {
	case p.Number > 0:
		return fmt.Sprintf("%03d", p.Number)
	case p.Member != "":
		return fmt.Sprintf("%s-%d", p.Member, p.Round)
	}
	return fmt.Sprintf("%s-%d", p.Role, p.Round)
}

// unchanged wants the checkpoints that a death found committed, and the evidence of the passes before it, to be as they
// were (5).
func (s *site) unchanged(now instant) error {
	for i, d := range s.deaths {
		if d.Left.Book == nil {
			continue
		}
		var folders []string
		for _, c := range d.Left.Book.Checkpoints {
			folders = append(folders, c.CheckpointDir+"/")
		}
		for _, r := range d.Left.Book.PassRecords {
			folders = append(folders, filepath.Dir(r.PromptPath)+"/")
		}
		for name, digest := range d.Left.Files {
			inside := slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f) }) ||
				isManifest(name)
			if inside && now.Files[name] != digest {
				return fmt.Errorf("%s was settled at death %d, and is another file now", name, i+1)
			}
		}
	}
	return nil
}

// isManifest reports whether a file is the manifest of a turn's tree: whenever it is there, it is settled.
func isManifest(name string) bool {
	return strings.HasPrefix(name, "snapshots/turn-") && strings.Count(name, "/") == 2 &&
		strings.HasSuffix(name, "/manifest.json")
}

// costsAgree requires the same costs in the log, both state files and the journal (6).
func costsAgree(dir string, now instant) error {
	return invariants.Costs(rundir.At(dir), *now.Meta, *now.Book, now.Events)
}

// yesterday is the time of a ledger whose day has all calls of a test, also of one that lasts past midnight.
func yesterday() time.Time { return time.Now().Add(-24 * time.Hour) }

// ledgerAgrees wants at the gate of the host what the journal of its only run counts (6).
func (s *site) ledgerAgrees(now instant) error {
	l := gate.Open(s.op.Settings.StateDir, s.op.Host, gate.Options{Now: yesterday})
	damages := l.Damaged(time.Time{})
	sum, err := l.Today()
	if err != nil {
		return err
	}
	want := now.Meta.State.Spent
	if got := sum.Known; sum.Reserved.Calls > 0 || len(damages) > 0 || got.USD != want.USD ||
		got.Tokens != want.Tokens || got.Unknown != want.Unknown {
		return fmt.Errorf("the ledger has %+v and %v, the run %+v", sum, damages, want)
	}
	return nil
}

// sameOutcome wants the work of an undisturbed run (7).
func sameOutcome(want outcome, now instant) error {
	if got := now.Files["artifact.html"]; got != want.Artifact {
		return fmt.Errorf("the artifact is %s, undisturbed it is %s", got, want.Artifact)
	}
	if got := treeOf(now); got != want.Tree {
		return fmt.Errorf("the tree is %s, undisturbed it is %s", got, want.Tree)
	}
	if got := pointsOf(now); !slices.Equal(got, want.Points) {
		return fmt.Errorf("checkpoints are %v, undisturbed they are %v", got, want.Points)
	}
	return differences(want.Files, works(now.Files))
}

// differences names the files that are not the same.
func differences(want, got map[string]string) error {
	var other []string
	for name, digest := range want {
		if got[name] != digest {
			other = append(other, name)
		}
	}
	for name := range got {
		if want[name] == "" {
			other = append(other, name)
		}
	}
	if len(other) == 0 {
		return nil
	}
	slices.Sort(other)
	return fmt.Errorf("files that differ, or are only in one of both: %s", strings.Join(other, ", "))
}

// processes wants no agent of the run alive, and every bystander (8).
func processes(now instant, bystanders []process.Identity) error {
	for _, c := range now.Calls {
		if _, alive := agentOf(c); alive {
			return fmt.Errorf("the agent of call %s survives (pid %d)", c.At, c.PID)
		}
	}
	for _, id := range bystanders {
		if !id.Alive() {
			return fmt.Errorf("a stranger (pid %d) is gone", id.PID)
		}
	}
	return nil
}

// provenance wants the last row about the artifact to name the call that last changed it, and every row to continue
// where the one before ended (9).
func provenance(dir string, now instant) error {
	type row struct {
		Turn   int    `json:"turn"`
		Call   string `json:"call"`
		Path   string `json:"path"`
		Before string `json:"hash_before"`
		After  string `json:"hash_after"`
	}
	rows, skipped, err := rundir.Rows[row](rundir.At(dir), rundir.ProvenanceFile)
	if err != nil {
		return err
	}
	if skipped > 0 || len(rows) == 0 {
		return fmt.Errorf("%d rows, and %d that cannot be read", len(rows), skipped)
	}
	changed, after := "", "" // by the journal's passes
	for _, p := range of[run.PassEnd](now.Events, run.KindPassEnd) {
		if p.Artifact != nil && p.Modified {
			changed, after = p.Call, p.Artifact.Digest
		}
	}
	last := rows[len(rows)-1]
	if last.Call != changed || last.After != after || after != now.Files["artifact.html"] {
		return fmt.Errorf("%s was last changed by call %s to %s; the last row has call %s, %s", last.Path, changed,
			after, last.Call, last.After)
	}
	for i := range rows[1:] {
		at, next := rows[i], rows[i+1] // a change by hand or by a revert belongs to the turn before
		if at.Call != "" && at.Turn < 1 || next.Turn < at.Turn || next.Call != "" && next.Turn == at.Turn {
			return fmt.Errorf("row %d is of turn %d, row %d of turn %d", i+2, rows[i+1].Turn, i+1, rows[i].Turn)
		}
		if rows[i+1].Before != rows[i].After {
			return fmt.Errorf("row %d begins with %s, row %d ended with %s", i+2, rows[i+1].Before, i+1, rows[i].After)
		}
	}
	return nil
}

// oneEnd requires one terminal event in each epoch, and the last event to be one (10).
func oneEnd(now instant) error {
	if last := now.Events[len(now.Events)-1]; last.Kind != run.KindRunEnd {
		return fmt.Errorf("the last event is %s", last.Kind)
	}
	return invariants.OneEnd(now.Events, false)
}
