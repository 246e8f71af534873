package rundir

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// keep stores a text and returns its reference.
func (b blobStore) keep(t *testing.T, text string) run.Blob {
	t.Helper()
	digest, err := b.Put(t.Context(), []byte(text))
	require.NoError(t, err)
	return run.Blob{Digest: digest, Size: int64(len(text))}
}

// event is one event outside of a journal.
func event(t *testing.T, seq int64, kind run.Kind, payload any) run.Event {
	t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(t, err)
	return run.Event{Seq: seq, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: raw}
}

// set are the files that a fold has set, by name, with their digests, trees or links.
func set(f *Fold) map[string]string {
	files := map[string]string{}
	for name := range f.changed {
		file := f.Files[name]
		files[name] = file.Digest + file.Tree + file.Link
	}
	return files
}

// listed is a source with the lists of a store, and no journal.
type listed struct{ blobStore }

func (l listed) Lines(int64) ([]string, error)      { return nil, nil }
func (l listed) List(digest string) ([]byte, error) { return l.Get(context.Background(), digest) }

func blob(digest string) *run.Blob { return &run.Blob{Digest: digest} }

// TestFilesOfEvents: which files follow from an event, with the digests of their contents.
func TestFilesOfEvents(t *testing.T) {
	store := blobStore{}
	inputs := store.keep(t, `{"version":1,"files":[{"path":"in/a.md","digest":"a"},{"path":"b.md","digest":"b"}]}`).Digest
	shots := store.keep(t, `[{"name":"one.png","digest":"1"},{"name":"two.png","digest":"2"}]`).Digest
	numbered := run.Pass{Step: "007", Number: 7, Gives: "artifact"}
	report := run.Pass{Step: "008", Number: 8, Gives: "report"}
	noted := []run.Notes{{Name: "log", File: "log.md", Whole: run.Blob{Digest: "note"}}, {Name: "new", File: "new.md"}}
	const pass7, pass8 = PassesDir + "/pass-007", PassesDir + "/pass-008"
	for name, row := range map[string]struct {
		kind          run.Kind
		payload       any
		before, after run.State
		want          map[string]string
	}{
		"a start": {kind: run.KindRunStart, payload: run.RunStart{Definition: "d", Plan: "p", Policy: "o", Inputs: inputs,
			Brief: blob("brief"), Artifact: &run.ArtifactRef{File: "page.html", Seed: run.Blob{Digest: "seed"}},
			Workspace: &run.Workspace{Tree: run.Blob{Digest: "tree"}}},
			after: run.State{Artifact: blob("other")},
			want: map[string]string{DefinitionFile: "d", PlanFile: "p", PolicyFile: "o",
				InputsFile: inputs, InputsDir + "/in/a.md": "a", InputsDir + "/b.md": "b",
				ParentFile: "brief", "page.html": "seed", SnapshotManifest(0): "tree"}},
		"a start without anything": {kind: run.KindRunStart, payload: run.RunStart{}, want: map[string]string{}},
		"a start from the state of another run": {kind: run.KindRunStart, payload: run.RunStart{Plan: "p",
			Artifact: &run.ArtifactRef{File: "page.html", Seed: run.Blob{Digest: "seed"}}, State: &run.State{}},
			after: run.State{Artifact: blob("carried"), Notes: noted},
			want: map[string]string{PlanFile: "p", "page.html": "carried", Orchestrator + "/log.md": "note",
				Orchestrator + "/new.md": ""}},
		"an amendment": {kind: run.KindRunAmended, payload: run.RunAmended{New: run.PlanRef{Definition: "d", Plan: "p",
			Policy: "o", Inputs: inputs}},
			want: map[string]string{AmendedDir(9) + "/pipeline.yaml": "d", AmendedDir(9) + "/plan.json": "p",
				AmendedDir(9) + "/policy.json": "o", AmendedDir(9) + "/inputs.json": inputs,
				AmendedDir(9) + "/inputs/in/a.md": "a", AmendedDir(9) + "/inputs/b.md": "b"}},
		"a pass with an artifact": {kind: run.KindPassStart, payload: run.PassStart{Pass: numbered,
			Prompt: run.Blob{Digest: "prompt"}, Before: "page"},
			want: map[string]string{pass7 + "/prompt.md": "prompt", pass7 + "/artifact-backup.html": "page"}},
		"a pass with a report": {kind: run.KindPassStart, payload: run.PassStart{Pass: report,
			Prompt: run.Blob{Digest: "prompt"}, Before: "page"}, want: map[string]string{pass8 + "/prompt.md": "prompt"}},
		"a failed attempt, the third": {kind: run.KindPassAttempt, payload: run.PassAttempt{Pass: numbered,
			Category: run.CategoryOutputTruncated, Output: blob("out"), Prompt: blob("asked"), Envelope: blob("meta")},
			want: map[string]string{pass7 + "/raw-output-FAILED-3.txt": "out", pass7 + "/prompt-FAILED-3.md": "asked",
				pass7 + "/agent-FAILED-3.jsonl": "meta"}},
		"an attempt without output": {kind: run.KindPassAttempt, payload: run.PassAttempt{Pass: numbered,
			Category: run.CategoryAgentTimeout}, after: run.State{Artifact: blob("page")}, want: map[string]string{}},
		"a lost worker": {kind: run.KindPassAttempt, payload: run.PassAttempt{Pass: numbered, Category: run.CategoryLost,
			Output: blob("out")}, after: run.State{Artifact: blob("page")}, want: map[string]string{"page.html": "page"}},
		"a lost worker of a run without an artifact": {kind: run.KindPassAttempt, payload: run.PassAttempt{
			Category: run.CategoryLost}, want: map[string]string{}},
		"a reply": {kind: run.KindPassEnd, payload: run.PassEnd{Pass: report, Outcome: run.CategoryOK,
			Reply: blob("reply"), Envelope: blob("meta"), Findings: &run.Findings{Digest: "verdict"},
			Found: &run.Found{Findings: run.Findings{Digest: "found"}}},
			want: map[string]string{pass8 + "/raw-output.txt": "reply", pass8 + "/agent.jsonl": "meta",
				pass8 + "/verdict.json": "verdict", pass8 + "/findings.json": "found"}},
		"a reply of a turn": {kind: run.KindPassEnd, payload: run.PassEnd{Pass: run.Pass{Number: 8, Gives: "changes"},
			Outcome: run.CategoryOK, Reply: blob("reply"), Tree: blob("after")}, before: run.State{Tree: blob("before")},
			want: map[string]string{pass8 + "/raw-output.txt": "reply", SnapshotManifest(5): "after"}},
		"a failed pass": {kind: run.KindPassEnd, payload: run.PassEnd{Pass: report, Outcome: run.CategoryAgentTimeout,
			Reply: blob("reply")}, want: map[string]string{}},
		"an artifact": {kind: run.KindArtifactUpdated, payload: run.ArtifactUpdated{Artifact: run.Blob{Digest: "new"}},
			before: run.State{Artifact: blob("old")}, want: map[string]string{"page.html": "new"}},
		"an edit": {kind: run.KindArtifactUpdated, payload: run.ArtifactUpdated{Cause: "edited",
			Artifact: run.Blob{Digest: "new"}}, before: run.State{Artifact: blob("old")},
			want: map[string]string{"page.html": "new", EditsDir + "/before-9.html": "old"}},
		"an edit of a run without an artifact": {kind: run.KindArtifactUpdated, payload: run.ArtifactUpdated{
			Cause: "edited", Artifact: run.Blob{Digest: "new"}}, want: map[string]string{"page.html": "new"}},
		"a note": {kind: run.KindNoteAppended, payload: run.NoteAppended{File: "log.md", Entry: run.Blob{Digest: "entry"},
			Whole: run.Blob{Digest: "whole"}}, want: map[string]string{Orchestrator + "/log.md": "whole"}},
		"pictures": {kind: run.KindScreenshots, payload: run.Screenshots{Dir: "shots/cycle-1", Redo: 2, Count: 2,
			Manifest: run.Blob{Digest: shots}},
			want: map[string]string{Orchestrator + "/shots/cycle-1-redo-2/manifest.json": shots,
				Orchestrator + "/shots/cycle-1-redo-2/one.png": "1",
				Orchestrator + "/shots/cycle-1-redo-2/two.png": "2"}},
		"no pictures": {kind: run.KindScreenshots, payload: run.Screenshots{Manifest: run.Blob{Digest: "gone"}},
			want: map[string]string{}},
		"an interruption of a call": {kind: run.KindRunInterrupted, payload: run.RunInterrupted{},
			before: run.State{InFlight: []run.InFlightCall{{Step: "007"}}}, after: run.State{Artifact: blob("page")},
			want: map[string]string{"page.html": "page"}},
		"an interruption between calls": {kind: run.KindRunInterrupted, payload: run.RunInterrupted{},
			after: run.State{Artifact: blob("page")}, want: map[string]string{}},
		"a question about a delivery": {kind: run.KindDeliveryRequested, payload: run.Question{Digest: "patch"},
			want: map[string]string{DeliveryPatch: "patch"}},
		"a delivery": {kind: run.KindDeliveryCompleted, payload: run.DeliveryCompleted{Diff: "patch"},
			want: map[string]string{DeliveryPatch: "patch"}},
		"a delivery without changes": {kind: run.KindDeliveryCompleted, payload: run.DeliveryCompleted{},
			want: map[string]string{}},
		"a pause": {kind: run.KindRunPaused, payload: run.RunPaused{}, after: run.State{Artifact: blob("page")},
			want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFold(listed{store})
			f.Header.State, f.State.CurrentArtifactPath, f.State.Turns = row.after, "page.html", 4
			f.State.FailedOutputs = map[string]int{FailedKey(numbered): 2}
			require.NoError(t, f.derive(event(t, 9, row.kind, row.payload), row.before))
			if row.kind == run.KindRunStart {
				row.want[SpendFile] = CostLog
			}
			require.Equal(t, row.want, set(f))
		})
	}
}

// TestListsOfFilesThatAreLost: the file with a lost list is expected nevertheless, and a list that is not one is
// an error.
func TestListsOfFilesThatAreLost(t *testing.T) {
	store := blobStore{}
	bad := store.keep(t, "{").Digest
	for kind, row := range map[run.Kind]struct {
		payload func(list string) any
		damaged string
		lost    map[string]string
	}{
		run.KindRunStart: {func(list string) any { return run.RunStart{Inputs: list, Plan: "p"} },
			"list of inputs: unexpected end",
			map[string]string{PlanFile: "p", InputsFile: "gone", SpendFile: CostLog}},
		run.KindScreenshots: {func(list string) any {
			return run.Screenshots{Count: 1, Dir: "shots", Manifest: run.Blob{Digest: list}}
		}, "list of pictures: unexpected end", map[string]string{Orchestrator + "/shots/manifest.json": "gone"}},
	} {
		f := newFold(listed{store})
		require.NoError(t, f.derive(event(t, 1, kind, row.payload("gone")), run.State{}))
		require.Equal(t, row.lost, set(f))
		require.ErrorContains(t, f.derive(event(t, 1, kind, row.payload(bad)), run.State{}), row.damaged)
	}
}

// TestFilesOfStates: files that follow from the state after an event, and not from its payload.
func TestFilesOfStates(t *testing.T) {
	f := newFold(listed{})
	f.Header.State.Projects = []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "web"}, Outcome: run.ProjectDone}}
	pause := event(t, 3, run.KindRunPaused, run.RunPaused{})
	require.NoError(t, f.derive(pause, run.State{}))
	require.Equal(t, map[string]string{CrossFile: ""}, set(f))
	var cross CrossCheckpoint
	require.NoError(t, json.Unmarshal(f.Files[CrossFile].Text, &cross))
	require.Equal(t, map[string]string{"web": string(run.ProjectDone)}, cross.SubStatus)
	clear(f.changed)
	require.NoError(t, f.derive(pause, run.State{}))
	require.Empty(t, set(f), "it is the same")

	f = newFold(listed{})
	f.State.CurrentArtifactPath, f.Tail = "page.html", run.Tail{Seq: 7, Chain: "seven"}
	end := event(t, 7, run.KindRunEnd, run.RunEnd{Status: run.Failed})
	f.Header.State = run.State{RunID: "r", Status: run.Failed, Seq: 7, Artifact: blob("page")}
	require.NoError(t, f.derive(end, run.State{}))
	require.Empty(t, set(f), "only a run that is done has a result")
	f.Header.State.Status = run.Done
	require.NoError(t, f.derive(end, run.State{}))
	var got Result
	require.NoError(t, json.Unmarshal(f.Files[ResultFile].Text, &got))
	require.Equal(t, "page.html", got.Name)
	require.Equal(t, run.Chain("seven"), got.Chain)
}

// TestFileOfDecision: an accepted decision has a file, and no other.
func TestFileOfDecision(t *testing.T) {
	f := newFold(listed{})
	f.Header.RunID = "r"
	decided := event(t, 4, run.KindHandoffDecided, map[string]string{"decided_at": "2026-01-02T03:04:05.000Z",
		"decided_by": "an operator"})
	require.NoError(t, f.derive(decided, run.State{}))
	f.Header.State.Decided = &run.Decided{ID: "h-1", Phase: "write", Action: run.ActionRetryFeedback, Feedback: "shorter",
		Note: "mine"}
	f.Header.State.InvalidTransition = "handoff.decided while running"
	require.NoError(t, f.derive(decided, run.State{}))
	require.Empty(t, set(f))
	f.Header.State.InvalidTransition = ""
	require.NoError(t, f.derive(decided, run.State{}))
	var got Decision
	require.NoError(t, json.Unmarshal(f.Files[DecisionFile("h-1")].Text, &got))
	require.Equal(t, Decision{RunID: "r", HandoffID: "h-1", Phase: "write", Action: run.ActionRetryFeedback,
		Feedback: "shorter", Note: "mine", DecidedAt: "2026-01-02T03:04:05.000Z", DecidedBy: "an operator"}, got)
}
