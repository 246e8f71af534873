package rundir_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// fakeBlobs is a store in memory.
type fakeBlobs map[string][]byte

// blobsMu guards all stores: tests in parallel use those of their fixtures.
var blobsMu sync.Mutex

func (f fakeBlobs) Get(_ context.Context, digest string) ([]byte, error) {
	blobsMu.Lock()
	defer blobsMu.Unlock()
	data, ok := f[digest]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", digest, fs.ErrNotExist)
	}
	return data, nil
}

func (f fakeBlobs) Put(_ context.Context, data []byte) (string, error) {
	blobsMu.Lock()
	defer blobsMu.Unlock()
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	f[name] = data
	return name, nil
}

func (f fakeBlobs) Name(_ context.Context, name string, data []byte) error {
	blobsMu.Lock()
	defer blobsMu.Unlock()
	if _, there := f[name]; !there {
		f[name] = data
	}
	return nil
}

func (f fakeBlobs) Replace(_ context.Context, name string, data []byte) error {
	blobsMu.Lock()
	defer blobsMu.Unlock()
	f[name] = data
	return nil
}

func (f fakeBlobs) ReadName(ctx context.Context, name string) ([]byte, error) {
	return f.Get(ctx, name)
}

func (f fakeBlobs) ListNames(_ context.Context, prefix string) ([]string, error) {
	blobsMu.Lock()
	defer blobsMu.Unlock()
	var out []string
	for name := range f {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out, nil
}

// Manifest of a tree that is kept as a text.
func (f fakeBlobs) Manifest(ctx context.Context, tree string) ([]byte, error) {
	text, err := f.Get(ctx, tree)
	return fmt.Appendf(nil, "{\"version\":1,\n\"tree\":\"%s\",\n\"entries\":[\n%q\n]}\n", tree, text), err
}

// PutTree takes a manifest of such a tree back to its text.
func (f fakeBlobs) PutTree(ctx context.Context, manifest []byte) error {
	var m struct {
		Entries []string `json:"entries"`
	}
	if json.Unmarshal(manifest, &m) != nil || len(m.Entries) != 1 {
		return disk.ErrDamaged
	}
	_, err := f.Put(ctx, []byte(m.Entries[0]))
	return err
}

// LayDown lays the text down as the one file of its tree.
func (f fakeBlobs) LayDown(ctx context.Context, tree, dir string) error {
	text, err := f.Get(ctx, tree)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "file.txt"), text, 0o644)
}

func (f fakeBlobs) keep(text string) run.Blob {
	name, _ := f.Put(context.Background(), []byte(text))
	return run.Blob{Digest: name, Size: int64(len(text)), Chars: len([]rune(text))}
}

// story writes a journal as the workflow does, in batches: what ended, then what begins.
type story struct {
	t       testing.TB
	blobs   fakeBlobs
	state   run.State
	lines   []string
	batches []rundir.Batch
	from    int       // first line of the open batch
	chain   run.Chain // over the lines before it
	phase   string
	id      string // of the run
	salt    string // distinguishes its prompts and replies from those of another run

	cost   func(p run.Pass) run.Spend // of a call; nil: spend
	change func(end *run.PassEnd)     // of a settled pass; nil: nothing
}

func (s *story) spend(p run.Pass) run.Spend {
	if s.cost == nil {
		return spend()
	}
	return s.cost(p)
}

func newStory(t testing.TB) *story { return &story{t: t, blobs: fakeBlobs{}, id: "run-1"} }

func (s *story) add(kind run.Kind, payload any) {
	s.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(s.t, err)
	e := run.Event{Seq: s.state.Seq + 1, TS: moment(s.state.Seq + 1), Kind: kind, Payload: raw}
	if s.phase != "" {
		e.Phase = &s.phase
	}
	s.state = run.Apply(s.state, e)
	require.Empty(s.t, s.state.InvalidTransition)
	line, err := e.Line()
	require.NoError(s.t, err)
	s.lines = append(s.lines, line)
}

// send closes the batch.
func (s *story) send() {
	if s.from == len(s.lines) {
		return
	}
	b := rundir.Batch{Epoch: 1, First: int64(s.from) + 1, Prev: s.chain, Lines: s.lines[s.from:]}
	s.batches, s.from, s.chain = append(s.batches, b), len(s.lines), s.chain.Over(b.Lines)
}

// batch is the piece of a journal from one line to another, both included.
func batch(lines []string, first, last int) rundir.Batch {
	return rundir.Batch{Epoch: 1, First: int64(first), Prev: run.Chain("").Over(lines[:first-1]),
		Lines: lines[first-1 : last]}
}

func moment(seq int64) string {
	return run.Time(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seq) * time.Second))
}

func (s *story) start() {
	inputs, err := json.Marshal(rundir.Inputs{Version: 1,
		Files: []rundir.InputFile{{Path: "corpus/a.md", Digest: s.blobs.keep("a corpus").Digest}}})
	require.NoError(s.t, err)
	threshold := 3.5
	s.add(run.KindRunStart, run.RunStart{
		Task: "page", RunKind: "pipeline", Pipeline: "page", RunID: "run-1", ThreadID: "thread-1", Epoch: 1,
		CreatedAt: moment(0), ConfigHash: "0123456789abcdef",
		Definition: s.blobs.keep("stages: []\n").Digest, Plan: s.blobs.keep("{}").Digest,
		Inputs:   s.blobs.keep(string(inputs)).Digest,
		Artifact: &run.ArtifactRef{File: "artifact.html", Seed: s.blobs.keep("<html>seed</html>")},
		Notes: []run.NoteRef{{Name: "conviction", File: "conviction-layer.md"},
			{Name: "discovery", File: "discovery-log.md"}},
		Budget: run.Budget{CapUSD: 1000, WarnUSD: 800}, TotalPasses: 4, MaxRounds: 6, Threshold: &threshold,
	})
	s.phase = "write"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
}

func spend() run.Spend {
	return run.Spend{USD: 0.25, Tokens: run.Tokens{Input: 100, Output: 20, CacheRead: 3, CacheWrite: 4}, Model: "m"}
}

// about is a numbered pass: builders at odd numbers.
func about(i int) run.Pass {
	p := run.Pass{
		Step: fmt.Sprintf("%03d", i), Number: i, InRound: (i-1)%2 + 1, OfRound: 2, Set: fmt.Sprintf("S%d", (i+1)/2),
		Round: (i + 1) / 2, Order: "A",
		Role: "builder", Gives: "artifact", Title: fmt.Sprintf("pass %d", i), Description: "a pass",
		Files: []string{"a"}, References: []string{"b"},
	}
	if i%2 == 0 {
		p.Role, p.Gives = "verifier", "report"
	}
	return p
}

// call is the id of an attempt's call.
func (s *story) call(p run.Pass, attempt int) string {
	return fmt.Sprintf("%s/g%d.%s.%d.%s.r%d-%d", s.id, s.state.Generation, p.Step, p.Round, p.Member, p.Redo, attempt)
}

func (s *story) prompt(p run.Pass) run.Blob {
	return s.blobs.keep(fmt.Sprintf("%sprompt of %s%s%d, redo %d", s.salt, p.Step, p.Member, p.Round, p.Redo))
}

// envelope is what an agent reported beside its reply.
func (s *story) envelope(p run.Pass, attempt int) *run.Blob {
	b := s.blobs.keep(fmt.Sprintf(`{"type":"result","num_turns":3,"session_id":"%s at %d"}`, s.call(p, attempt),
		s.state.Seq) + "\n")
	return &b
}

func (s *story) begin(p run.Pass, attempt int) {
	s.add(run.KindPassStart, run.PassStart{
		Pass: p, Agent: "agent", Call: s.call(p, attempt), Attempt: attempt, Attempts: 3, Prompt: s.prompt(p),
		Before: s.state.Artifact.Digest,
	})
	s.send()
}

// fail is an attempt that did not settle its pass.
func (s *story) fail(p run.Pass, attempt int) {
	cost, asked, out := s.spend(p), s.prompt(p), s.blobs.keep(fmt.Sprintf("%shalf of %s%s, attempt %d at %d", s.salt,
		p.Step, p.Member, attempt, s.state.Seq))
	s.add(run.KindPassAttempt, run.PassAttempt{
		Pass: p, Call: s.call(p, attempt), Attempt: attempt, Category: "output-truncated",
		Message: "it ends in the middle", Output: &out, Prompt: &asked,
		Envelope: s.envelope(p, attempt), Judged: true, RetryInMS: 1, Spend: &cost,
	})
}

func (s *story) end(p run.Pass, outcome run.Category, attempts int) {
	reply := s.blobs.keep(fmt.Sprintf("%sreply of %s%s%d, redo %d", s.salt, p.Step, p.Member, p.Round, p.Redo))
	end := run.PassEnd{
		Pass: p, Call: s.call(p, attempts), Outcome: outcome, StartedAt: s.state.TS, CompletedAt: s.state.TS,
		DurationMS: 5, Attempts: attempts, Reply: &reply,
		Envelope: s.envelope(p, attempts), Attempted: outcome != "ok",
		Before: s.state.Artifact.Digest, Validation: run.Validation{Passed: outcome == "ok",
			Checks: []run.Check{{Name: "whole", Passed: true}}, Warnings: []string{}},
		Spend: s.spend(p), LastInRound: p.Number > 0 && p.Number%2 == 0, Next: &run.Place{Round: 1, Step: p.Number},
	}
	if p.Gives == "artifact" && outcome == "ok" {
		a := s.blobs.keep(s.salt + "<html>" + p.Step + fmt.Sprint(p.Round) + "</html>")
		end.Artifact, end.Modified = &a, true
	}
	if p.Number > 0 && outcome == "ok" {
		end.Notes = []run.Added{{Name: "conviction", File: "conviction-layer.md", Chars: 3}}
	}
	if s.change != nil {
		s.change(&end)
	}
	s.add(run.KindPassEnd, end)
	if end.Artifact != nil {
		s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: p.Step, Artifact: *end.Artifact})
	}
	for _, n := range end.Notes {
		old, _ := s.state.Note(n.Name)
		entry := "## " + p.Title + "\n" + s.salt + "said\n"
		s.add(run.KindNoteAppended, run.NoteAppended{
			Note: n.Name, File: n.File, Step: p.Step, Heading: "## " + p.Title, Entry: s.blobs.keep(entry),
			Whole: s.blobs.keep(string(s.blobs[old.Whole.Digest]) + entry),
		})
	}
}

func (s *story) pass(i int) {
	s.begin(about(i), 1)
	s.end(about(i), "ok", 1)
	if i%2 == 0 {
		s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", i/2), AtPass: i,
			USD: s.state.Total()})
	}
}

// cycle is one round of a repeated stage: pictures, two auditors, a weaver, a refiner unless the score is met.
func (s *story) cycle(n int, score float64) {
	s.phase = "harden"
	dir := fmt.Sprintf("screenshots/cycle-%d", n)
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "harden", Title: "Harden", Round: n, Dir: dir})
	shots, err := json.Marshal([]run.Shot{{Name: "full-10x10.png", Digest: s.blobs.keep(s.salt + "a picture").Digest}})
	require.NoError(s.t, err)
	s.add(run.KindScreenshots, run.Screenshots{Step: "shots", Round: n, Dir: dir, Manifest: s.blobs.keep(string(shots)),
		Count: 1, Attempts: 1})
	inCycle := func(member, role, gives string) run.Pass {
		return run.Pass{Step: role, Member: member, Role: role, Gives: gives, Round: n, Dir: dir, Title: role,
			Description: role}
	}
	a, b := inCycle("auditor-A", "auditor", "report"), inCycle("auditor-B", "auditor", "report")
	s.begin(a, 1)
	s.begin(b, 1)
	s.fail(b, 1)
	s.fail(a, 1)
	s.begin(b, 2)
	s.begin(a, 2)
	s.end(a, "ok", 2)
	s.end(b, "ok", 2)
	s.begin(inCycle("", "weaver", "report"), 1)
	s.end(inCycle("", "weaver", "report"), "ok", 1)
	met := score >= 3.5
	s.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Step: "weaver", Round: n, Score: &score, Met: met})
	if !met {
		s.begin(inCycle("", "refine", "artifact"), 1)
		s.end(inCycle("", "refine", "artifact"), "ok", 1)
	}
	s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "harden", Title: "Harden", Outcome: "ok", Round: n, Repeats: true})
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: fmt.Sprintf("cp-PA-%d", n), AtPass: 4, AtRound: n})
}

// whole is a run with everything in it: a retried pass, one that was given up, two cycles, an end.
func whole(t testing.TB) *story {
	s := newStory(t)
	s.start()
	s.pass(1)
	s.begin(about(2), 1)
	s.fail(about(2), 1)
	s.begin(about(2), 2)
	s.end(about(2), "ok", 2)
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 2, USD: s.state.Total()})
	s.begin(about(3), 1)
	asked, out := s.prompt(about(3)), s.blobs.keep("no page")
	s.add(run.KindPassAttempt, run.PassAttempt{
		Pass: about(3), Call: s.call(about(3), 1), Attempt: 1, Category: "output-no-artifact", Message: "no page",
		Output: &out, Prompt: &asked,
		Envelope: s.envelope(about(3), 1), Judged: true,
	})
	s.end(about(3), "output-no-artifact", 1)
	s.pass(4)
	s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "write", Title: "Write", Outcome: "ok", Round: 1})
	s.cycle(1, 2.5)
	s.cycle(2, 3.5)
	s.phase = ""
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	s.send()
	return s
}

func (s *story) twoPasses() {
	s.start()
	s.pass(1)
	s.pass(2)
}

// asks runs two passes and requests a hand-off.
func (s *story) asks() {
	s.twoPasses()
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "write",
		Type: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved})
}

// pause ends the story with a pause.
func (s *story) pause() { s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested}) }

// finish ends the story with this status.
func (s *story) finish(status run.Status) {
	s.phase = ""
	s.add(run.KindRunEnd, run.RunEnd{Status: status})
	s.send()
}

// checkpoint is one that a pass creates.
func (s *story) checkpoint(id string, pass int) {
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: id, AtPass: pass, USD: s.state.Total()})
}

// revert goes back to an earlier state: what is in between is abandoned.
func (s *story) revert(to run.State) {
	s.send()
	s.add(run.KindRunReverted, run.RunReverted{To: to.Seq, Cause: "reset",
		Abandoned: run.Range{First: to.Seq + 1, Last: s.state.Seq}, State: &to})
}

// worksOn begins a run on a workspace.
func (s *story) worksOn(snapshots string) {
	s.add(run.KindRunStart, run.RunStart{
		Task: "work", RunKind: "pipeline", Pipeline: "work", RunID: "run-1", ThreadID: "thread-1", Epoch: 1,
		CreatedAt: moment(0), Snapshots: snapshots,
		Workspace: &run.Workspace{Kind: "dir", Source: "/elsewhere", Tree: s.blobs.keep("tree 0")},
	})
	s.phase = "turns"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "turns", Title: "Turns", Round: 1})
	s.send()
}

// turn is one pass of a role that outputs changes. No tree: it changed nothing.
func (s *story) turn(n int, outcome run.Category, tree string) {
	p := run.Pass{Step: "turns/1", Role: "worker", Gives: "changes", Round: n, InRound: 1, OfRound: 1, Title: "turn",
		Description: "a turn"}
	call := fmt.Sprintf("call %d", n)
	s.add(run.KindPassStart, run.PassStart{Pass: p, Call: call, Agent: "agent", Attempt: 1, Attempts: 3,
		Prompt: s.blobs.keep("prompt")})
	s.send()
	end := run.PassEnd{Pass: p, Call: call, Outcome: outcome, StartedAt: s.state.TS, CompletedAt: s.state.TS,
		Attempts: 1, Spend: spend(), Next: &run.Place{Round: n, Step: 1}}
	if tree == "" {
		s.add(run.KindPassEnd, end)
		return
	}
	b := s.blobs.keep(tree)
	end.Tree = &b
	s.add(run.KindPassEnd, end)
	s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: p.Step, Call: call, Tree: b, Changed: 3})
}
