package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Recovery names what is left of a run without directory and history.
type Recovery struct {
	RunID  string
	Traces []byte // of a traces.jsonl
	Dir    string // a new folder for what is recovered
}

// Recovered is the result of a recovery. It is written to recovered.json in the new folder, unless the directory is
// complete again.
type Recovered struct {
	Version    int          `json:"version"`
	RunID      string       `json:"run_id"`
	Directory  string       `json:"directory"`
	Whole      bool         `json:"whole"`      // the directory is identical to the run's
	Events     int64        `json:"events"`     // number of events in segments of the store
	LastSeen   int64        `json:"last_seen"`  // the last event that traces or checkpoints mention
	Checkpoint string       `json:"checkpoint"` // the newest valid one, from which a fork can start; empty: none
	AsOf       int64        `json:"as_of"`      // the last event before it
	State      *run.State   `json:"state"`      // of the checkpoint
	Calls      []calls.Call `json:"calls"`
	Prompts    int          `json:"prompts"`
	Replies    int          `json:"replies"`
	USD        float64      `json:"usd"` // of all calls, as the agents reported it
	Files      []string     `json:"files"`
	Missing    []string     `json:"missing"` // what could not be recovered
}

// RecoveredFile is the name of the report in the new folder.
const RecoveredFile = "recovered.json"

// Recover restores what traces and store still contain of a run without directory and history (requirement 004). If
// the segments in the store reach the last known event, the directory is rebuilt. Otherwise the new folder is not a run
// directory: it contains the evidence, the newest known state, and a report of what is missing. No event is invented.
func Recover(ctx context.Context, s *store.Store, r Recovery) (Recovered, error) {
	rows, skipped := rundir.ReadTraces(r.Traces)
	rec := &recovering{store: s, dir: r.Dir, rows: rows}
	rec.out = Recovered{Version: 1, RunID: r.RunID, Directory: r.Dir, Calls: []calls.Call{}, Files: []string{},
		Missing: []string{}}
	if err := projector.Vacant(r.Dir); err != nil {
		return rec.out, err
	}
	if skipped > 0 {
		rec.lacks("%d lines of the traces: they cannot be read", skipped)
	}
	head, lines, err := newestSegments(ctx, s, r.RunID)
	if err != nil {
		return rec.out, err
	}
	rec.out.Events = int64(len(lines))
	marks, err := rec.newestCheckpoint(ctx)
	if err != nil {
		return rec.out, err
	}
	if len(rows) == 0 && marks == 0 && head == "" {
		return rec.out, refusedRecovery("neither the traces nor the store %s mention run %s", s.URL(), r.RunID)
	}
	if known, err := registration(ctx, s, r.RunID); err == nil && rec.out.Events >= rec.lastSeen() &&
		rec.out.Events > 0 {
		_, err = projector.At(r.Dir).Rebuild(ctx, blobs.Of(s),
			projector.Source{Claim: known.Claim, Store: s.URL(), Head: head})
		rec.out.Whole = err == nil
		return rec.out, err
	} else if err != nil && !errors.Is(err, store.ErrMissing) {
		rec.lacks("the record of the run in the store: %v", err)
	}
	return rec.out, rec.evidence(ctx, lines)
}

func refusedRecovery(format string, args ...any) error {
	return &RefusedError{Verb: "rebuild --from-traces", Why: fmt.Sprintf(format, args...)}
}

// recovering runs one recovery.
type recovering struct {
	store *store.Store
	dir   string
	rows  []rundir.TraceRow
	start *run.RunStart
	out   Recovered
}

func (r *recovering) lacks(format string, args ...any) {
	r.out.Missing = append(r.out.Missing, fmt.Sprintf(format, args...))
}

// lastSeen returns the last event that is mentioned anywhere.
func (r *recovering) lastSeen() int64 {
	for _, row := range r.rows {
		r.out.LastSeen = max(r.out.LastSeen, row.Seq)
	}
	return max(r.out.LastSeen, r.out.AsOf, r.out.Events)
}

// newestSegments finds the longest part of a run's journal that the store contains from the first event on.
func newestSegments(ctx context.Context, s *store.Store, runID string) (head string, lines []string, err error) {
	var found []store.Digest
	err = s.Walk(ctx, func(o store.Object) error {
		if o.Digest == "" {
			return nil
		}
		look := &heading{}
		if err := s.Copy(ctx, o.Digest, look); err != nil && !errors.Is(err, errPlain) &&
			!errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrMissing) {
			return err
		}
		if journal.SegmentOf(look.head) == runID {
			found = append(found, o.Digest)
		}
		return nil
	})
	for _, d := range found {
		if got, err := journal.Segments(ctx, blobs.Of(s), string(d)); err == nil && len(got) > len(lines) {
			head, lines = string(d), got
		}
	}
	return head, lines, err
}

// newestCheckpoint finds the newest valid checkpoint and the inputs of the run.
func (r *recovering) newestCheckpoint(ctx context.Context) (known int, err error) {
	names := blobs.Of(r.store)
	marks, err := projector.Marks(ctx, names, r.out.RunID)
	if err != nil {
		return 0, err
	}
	for _, m := range slices.Backward(marks) {
		r.out.LastSeen = max(r.out.LastSeen, m.Seq)
		if r.out.Checkpoint != "" {
			continue
		}
		c, err := blobs.Checkpoint(ctx, r.store, r.out.RunID, m.ID)
		if err != nil {
			r.lacks("checkpoint %s: %v", m.ID, err)
			continue
		}
		r.out.Checkpoint, r.out.AsOf, r.out.State = c.ID, c.Seq, &c.State
	}
	if len(marks) > 0 {
		if first, err := projector.LoadCheckpoint(ctx, names, r.out.RunID, marks[0].ID); err == nil {
			r.start = first.Start
		}
	}
	return len(marks), nil
}

// evidence writes what exists into the new folder, and the report last.
func (r *recovering) evidence(ctx context.Context, lines []string) error {
	last := r.lastSeen()
	r.out.LastSeen = last
	if n := int64(len(lines)); n > 0 {
		if err := r.write("events-1-to-"+fmt.Sprint(n)+".jsonl", []byte(strings.Join(lines, "\n")+"\n")); err != nil {
			return err
		}
		r.lacks("events %d to %d of the journal: no segment in the store contains them", n+1, last)
	} else {
		r.lacks("the journal, events 1 to %d at least: the store contains no segment", last)
	}
	for _, step := range []func(context.Context) error{r.given, r.calls, r.state} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	raw, err := json.MarshalIndent(r.out, "", "  ")
	if err != nil {
		return err
	}
	return durable.Disk{}.In(r.dir).WriteFile(filepath.Join(r.dir, RecoveredFile), append(raw, '\n'), layout.FilePerm)
}

// write writes a file into the new folder, named with slashes.
func (r *recovering) write(name string, data []byte) error {
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		r.lacks("%s: its name leads out of the folder", name)
		return nil
	}
	err := durable.Disk{}.In(r.dir).WriteAll([]durable.File{{Path: file, Data: data,
		Perm: layout.FilePerm, DirPerm: layout.DirPerm}})
	if err == nil {
		r.out.Files = append(r.out.Files, name)
	}
	return err
}

// blob writes a blob under a name, or records that it is missing. ok: it exists.
func (r *recovering) blob(ctx context.Context, name, what, digest string) (ok bool, err error) {
	if digest == "" {
		return false, nil
	}
	raw, err := r.store.Get(ctx, store.Digest(digest))
	if errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrDamaged) {
		r.lacks("%s: %v", what, err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, r.write(name, raw)
}

// given writes the inputs of the run.
func (r *recovering) given(ctx context.Context) error {
	if r.start == nil {
		r.lacks("the definition, the plan and the inputs: the store has no first checkpoint of the run, which names " +
			"them")
		return nil
	}
	for _, f := range []struct{ name, digest string }{{"given/pipeline.yaml", r.start.Definition},
		{"given/plan.json", r.start.Plan}} {
		if _, err := r.blob(ctx, f.name, f.name, f.digest); err != nil {
			return err
		}
	}
	if r.start.Inputs == "" {
		return nil
	}
	var in rundir.Inputs
	if err := r.store.GetJSON(ctx, store.Digest(r.start.Inputs), &in); err != nil {
		r.lacks("the list of inputs: %v", err)
		return nil
	}
	for _, f := range in.Files {
		if _, err := r.blob(ctx, path.Join("given/inputs", f.Path), "input "+f.Path, f.Digest); err != nil {
			return err
		}
	}
	return nil
}

// calls writes prompts and answers: of each traced call, and of other calls in the store.
func (r *recovering) calls(ctx context.Context) error {
	byID, err := r.storedCalls(ctx)
	if err != nil {
		return err
	}
	for _, row := range r.rows {
		c, there := newestOf(byID, row.Call)
		folder := callFolder(row.Call)
		if !there && row.Outcome != run.CategorySuperseded {
			who := row.Role
			if row.Step != "" { // earlier releases recorded none
				who = row.Step + ", " + who
			}
			r.lacks("call %s (%s): the store has neither claim nor answer of it", row.Call, who)
		}
		if ok, err := r.blob(ctx, folder+"/prompt.md", "the prompt of call "+row.Call, c.Prompt); err != nil {
			return err
		} else if ok {
			r.out.Prompts++
		} else if c.Prompt == "" && there {
			r.lacks("the prompt of call %s: its claim does not name it", row.Call)
		}
		ok, err := r.blob(ctx, folder+"/reply.txt", "the reply of call "+row.Call, row.Reply)
		if err != nil {
			return err
		}
		if ok {
			r.out.Replies++
		}
		if err := r.envelope(ctx, folder, c); err != nil {
			return err
		}
	}
	return r.writeUntraced(ctx)
}

// writeUntraced writes the answers of calls without traces.
func (r *recovering) writeUntraced(ctx context.Context) error {
	for _, c := range r.out.Calls {
		for _, what := range c.Lost {
			r.lacks("call %s: %s", c.ID, what)
		}
		if c.USD != nil {
			r.out.USD = run.Cents(r.out.USD + *c.USD)
		} else if c.Answered {
			r.lacks("the cost of call %s: its agent did not report it", c.ID)
		}
		if slices.ContainsFunc(r.rows, func(row rundir.TraceRow) bool {
			return strings.HasPrefix(c.ID,
				row.Call+".")
		}) {
			continue
		}
		folder := callFolder(c.ID)
		if ok, err := r.blob(ctx, folder+"/prompt.md", "the prompt of call "+c.ID, c.Prompt); err != nil {
			return err
		} else if ok {
			r.out.Prompts++
		}
		if !c.Answered {
			r.lacks("the answer of call %s: it was claimed, and its outcome is unknown", c.ID)
			continue
		}
		if err := r.write(folder+"/reply.txt", []byte(c.Reply)); err != nil {
			return err
		}
		r.out.Replies++
		if err := r.envelope(ctx, folder, c); err != nil {
			return err
		}
	}
	return nil
}

// envelope writes the report of the agent.
func (r *recovering) envelope(ctx context.Context, folder string, c calls.Call) error {
	_, err := r.blob(ctx, folder+"/agent.jsonl", "what the agent reported in call "+c.ID, run.DigestOf(c.Envelope))
	return err
}

// storedCalls reads the calls of the run, and of the runs that its traces name.
func (r *recovering) storedCalls(ctx context.Context) (map[string]calls.Call, error) {
	roots := []string{r.out.RunID}
	for _, row := range r.rows {
		if root, _, ok := strings.Cut(row.Call, "/"); ok && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	byID := map[string]calls.Call{}
	for _, root := range roots {
		all, err := calls.List(ctx, r.store, root)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			byID[c.ID] = c
			r.out.Calls = append(r.out.Calls, c)
		}
	}
	return byID, nil
}

// newestOf returns the answer to a traced call. If an id has several questions, the last answered one counts.
func newestOf(calls map[string]calls.Call, id string) (newest calls.Call, there bool) {
	for _, c := range calls {
		if strings.HasPrefix(c.ID, id+".") && (!there || c.Answered && !newest.Answered ||
			c.Answered == newest.Answered && c.At > newest.At) {
			newest, there = c, true
		}
	}
	return newest, there
}

func callFolder(id string) string {
	return "calls/" + strings.NewReplacer("/", "_", ":", "_").Replace(id)
}

// state writes what the newest checkpoint refers to: the artifact, the notes, the workspace.
func (r *recovering) state(ctx context.Context) error {
	s := r.out.State
	if s == nil {
		r.lacks("artifact, notes and workspace: the store has no valid checkpoint of the run")
		return nil
	}
	if s.Artifact != nil {
		name := "artifact"
		if r.start != nil && r.start.Artifact != nil {
			name = r.start.Artifact.File
		}
		if _, err := r.blob(ctx, name, "the artifact", s.Artifact.Digest); err != nil {
			return err
		}
	}
	for _, n := range s.Notes {
		if _, err := r.blob(ctx, "notes/"+n.File, "notes "+n.File, n.Whole.Digest); err != nil {
			return err
		}
	}
	if s.Tree != nil {
		if _, err := tree.Checkout(ctx, r.store, store.Digest(s.Tree.Digest), filepath.Join(r.dir, layout.WorkspaceDir),
			tree.Rules{}); err != nil {
			r.lacks("the workspace: %v", err)
		} else {
			r.out.Files = append(r.out.Files, layout.WorkspaceDir+"/")
		}
	}
	if r.out.AsOf < r.out.LastSeen {
		r.lacks("artifact, notes and workspace after events %d to %d: the newest valid checkpoint is older",
			r.out.AsOf+1,
			r.out.LastSeen)
	}
	return nil
}
