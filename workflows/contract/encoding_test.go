package contract

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestLinesStayAsTheyAre: a line of a batch has the same bytes after Temporal has stored it, whatever it contains.
func TestLinesStayAsTheyAre(t *testing.T) {
	for _, line := range []string{
		`{"seq":1,"payload":{"a":"ä \u2028 \u003c"}}`, `{"seq":1,"a":"<b> & c"}`, "{\"a\":\"\u2028\"}", `{"seq": 1}`,
		`{"a":1} `, `{"a":`, `[1]`, `"text"`, `text`, ``, `{"n":1e400,"m":1.0,"n":2}`,
	} {
		raw, err := json.Marshal(ProjectInput{Lines: Lines{line, `{"b":2}`}})
		require.NoError(t, err)
		var got ProjectInput
		require.NoError(t, json.Unmarshal(raw, &got))
		require.Equal(t, Lines{line, `{"b":2}`}, got.Lines, string(raw))
	}
	raw, err := json.Marshal(Lines{`{"a":1}`, `{"a":"<"}`})
	require.NoError(t, err)
	require.Equal(t, `[{"a":1},"{\"a\":\"\u003c\"}"]`, string(raw))
	var got Lines
	require.NoError(t, json.Unmarshal([]byte(`["{\"a\":1}"]`), &got), "of an earlier release")
	require.Equal(t, Lines{`{"a":1}`}, got)
	require.Error(t, json.Unmarshal([]byte(`{"a":1}`), &got))
	require.Error(t, json.Unmarshal([]byte(`[1, 2`), &got))
}

// turnOf is a turn whose last event is the start of its call.
func turnOf(t *testing.T) TurnInput {
	t.Helper()
	prompt := run.Blob{Digest: "d", Size: 3, Chars: 2, Raw: "r"}
	pass := run.Pass{Number: 1, Set: "S1", Order: "A", Role: "builder"}
	payload, err := run.Payload(run.PassStart{Pass: pass, Call: "r/g0.001.1.-.2", Attempt: 2, Prompt: prompt,
		Before: "before"})
	require.NoError(t, err)
	line, err := run.Event{Seq: 4, TS: "2026-01-02T03:04:05.000Z", Kind: run.KindPassStart, Payload: payload}.Line()
	require.NoError(t, err)
	return TurnInput{
		Project: ProjectInput{Target: Target{RunID: "r", Dir: "/d", Store: "file:///s", Epoch: 1}, First: 4, Prev: "c",
			Lines: Lines{line}},
		Call: PassInput{RunID: "r", Store: "file:///s", Call: "r/g0.001.1.-.2", Attempt: 2, Prompt: prompt,
			Heading: "## Pass 1 (S1, Rotation A, builder)", TimeoutMS: 7, HeartbeatMS: 10_000,
			Artifact: &run.Blob{Digest: "before", Size: 9}},
	}
}

func TestTurnsStateEachFactOnce(t *testing.T) {
	in := turnOf(t)
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	var call struct{ Call map[string]any }
	require.NoError(t, json.Unmarshal(raw, &call))
	for _, name := range []string{"run_id", "store", "call", "attempt", "prompt", "heading", "heartbeat_ms"} {
		require.NotContains(t, call.Call, name)
	}
	require.EqualValues(t, 7, call.Call["timeout_ms"])
	require.Equal(t, map[string]any{"digest": "", "size": 9.0}, call.Call["artifact"])
	require.Equal(t, "before", in.Call.Artifact.Digest, "the value itself stays")
	decoded := func(raw []byte) (got TurnInput) {
		require.NoError(t, json.Unmarshal(raw, &got))
		return got
	}
	require.Equal(t, in, decoded(raw))

	type earlier TurnInput // all parts are stated
	raw, err = json.Marshal(earlier(in))
	require.NoError(t, err)
	require.Equal(t, in, decoded(raw))

	for name, change := range map[string]func(*TurnInput){
		"another run":       func(in *TurnInput) { in.Call.RunID = "other" },
		"another store":     func(in *TurnInput) { in.Call.Store = "s3://b" },
		"another call":      func(in *TurnInput) { in.Call.Call = "r/g0.002.1.-.1" },
		"another attempt":   func(in *TurnInput) { in.Call.Attempt = 3 },
		"another prompt":    func(in *TurnInput) { in.Call.Prompt.Raw = "" },
		"another heartbeat": func(in *TurnInput) { in.Call.HeartbeatMS = 500 },
		"another epoch":     func(in *TurnInput) { in.Project.Epoch = 2 },
		"another number":    func(in *TurnInput) { in.Project.First = 9 },
		"another heading":   func(in *TurnInput) { in.Call.Heading = "## Write, round 2 (builder)" },
		"another artifact":  func(in *TurnInput) { in.Call.Artifact = &run.Blob{Digest: "other"} },
		"no artifact":       func(in *TurnInput) { in.Call.Artifact = nil },
		"another event":     func(in *TurnInput) { in.Project.Lines = Lines{`{"kind":"pass.end","payload":{"call":"x"}}`} },
		"no event":          func(in *TurnInput) { in.Project.Lines = nil },
		"a damaged event":   func(in *TurnInput) { in.Project.Lines = Lines{"{"} },
	} {
		in := turnOf(t)
		change(&in)
		raw, err := json.Marshal(in)
		require.NoError(t, err)
		require.Equal(t, in, decoded(raw), name)
	}
	require.Error(t, json.Unmarshal([]byte(`{"project": 1}`), &in))
}

func TestResultsOfTurnsStateEachFactOnce(t *testing.T) {
	page := run.Blob{Digest: "page", Size: 4, Chars: 4}
	other := run.Blob{Digest: "other", Size: 4}
	same, written := page, ProjectResult{Outcome: run.ProjectionWritten}
	decoded := func(raw []byte) (got TurnResult) {
		require.NoError(t, json.Unmarshal(raw, &got))
		return got
	}
	type earlier TurnResult // all parts are stated
	for name, r := range map[string]TurnResult{
		"an artifact":      {Project: written, Pass: &PassResult{Reply: &page, Artifact: &same}},
		"another artifact": {Project: written, Pass: &PassResult{Reply: &page, Artifact: &other}},
		"no artifact":      {Project: written, Pass: &PassResult{Reply: &page}},
		"no reply":         {Project: written, Pass: &PassResult{Artifact: &page}},
		"recovered errors": {Project: ProjectResult{Outcome: run.ProjectionWritten, Recovered: []RecoveredError{{}}},
			Pass: &PassResult{}},
		"another outcome":     {Project: ProjectResult{Outcome: run.ProjectionNewer}},
		"nothing was written": {},
	} {
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, r, decoded(raw), name)
		if name == "an artifact" {
			require.Equal(t, 1, bytes.Count(raw, []byte("page")), string(raw))
			require.NotContains(t, string(raw), "written")
			require.Equal(t, "page", r.Pass.Artifact.Digest, "the value itself stays")
		}
		raw, err = json.Marshal(earlier(r))
		require.NoError(t, err)
		require.Equal(t, r, decoded(raw), name)
	}
	require.Error(t, json.Unmarshal([]byte(`{"project": 1}`), &TurnResult{}))
}

func TestTailOfABatch(t *testing.T) {
	in := turnOf(t).Project
	require.Equal(t, run.Tail{Seq: 4, Chain: in.Prev.Over(in.Lines)}, in.Tail())
	require.NotEqual(t, in.Prev, in.Tail().Chain)
}

func TestRoundsStateEachRoleOnce(t *testing.T) {
	a, b := Role{Name: "builder", Notes: []string{"n"}, Limits: pipeline.Limits{Attempts: 3}}, Role{Name: "verifier"}
	other := a
	other.Limits.Attempts = 5
	in := Round{Stage: "write", Title: "Write", Rounds: 2, Steps: []Step{
		{PlanStep: pipeline.PlanStep{Key: "001", Kind: pipeline.KindRole, Role: "builder"}, Roles: []Role{a}},
		{PlanStep: pipeline.PlanStep{Key: "001b", Kind: pipeline.KindRole, Role: "verifier"}, Roles: []Role{b}},
		{PlanStep: pipeline.PlanStep{Key: "002", Kind: pipeline.KindTogether}, Roles: []Role{a, b}},
		{PlanStep: pipeline.PlanStep{Key: "003", Kind: pipeline.KindRole, Role: "builder"}, Roles: []Role{other}},
		{PlanStep: pipeline.PlanStep{Key: "004", Kind: pipeline.KindAsk}},
	}}
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(raw), `"name":"builder"`), string(raw))
	require.Contains(t, string(raw), `{"key":"001b","in_round":0,"role":"verifier","description":""`, "no kind")
	require.Equal(t, 3, strings.Count(string(raw), `"uses"`), "the name names the only verifier")
	var got Round
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Equal(t, in, got)

	// A later round of the same stage leaves out the roles that the workflow has.
	next := in
	next.Steps = []Step{
		{PlanStep: pipeline.PlanStep{Key: "005"}, Roles: []Role{a}},
		{PlanStep: pipeline.PlanStep{Key: "006", Kind: pipeline.KindRole, Role: "verifier"}, Roles: []Role{b}},
		{PlanStep: pipeline.PlanStep{Key: "007"}, Roles: []Role{other, a}},
	}
	want := next.Steps
	known, err := in.EncodedRoles()
	require.NoError(t, err)
	require.NoError(t, next.LeaveRoles(known))
	require.True(t, next.KnownRoles)
	raw, err = json.Marshal(next)
	require.NoError(t, err)
	require.NotContains(t, string(raw), `"roles"`)
	require.NoError(t, json.Unmarshal(raw, &got))
	require.NoError(t, got.Complete(in))
	require.Equal(t, want, got.Steps)
	require.NoError(t, next.LeaveRoles(known[:2]))
	require.False(t, next.KnownRoles, "the workflow lacks one of them")
	require.NoError(t, json.Unmarshal(raw, &got))
	require.ErrorContains(t, got.Complete(Round{Steps: in.Steps[:1]}), "step 006: the round has no role verifier")

	require.ErrorContains(t, json.Unmarshal([]byte(`{"steps":[{"key":"001","uses":[1]}],"roles":[{}]}`), &got),
		"step 001: the round has no role 1, only 1 roles")
	require.Error(t, json.Unmarshal([]byte(`{"steps":[{"uses":[-1]}]}`), &got))
}
